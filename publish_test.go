package dueq_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// onMoves makes a client whose round trips with moves go through do, which
// may run them by calling next.
func onMoves(env *redistest.Env, do func(cmds []redis.Cmder, next func() error) error) *redis.Client {
	rdb := env.NewClient()
	rdb.AddHook(&hook{
		command: func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
			if !isMove(cmd) {
				return next(ctx, cmd)
			}
			return do([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
		},
		pipeline: func(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
			if !slices.ContainsFunc(cmds, isMove) {
				return next(ctx, cmds)
			}
			return do(cmds, func() error { return next(ctx, cmds) })
		},
	})
	return rdb
}

// fail sets the error of all commands.
func fail(cmds []redis.Cmder, err error) error {
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
	return err
}

// refusal is an error reply.
type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

func TestPublishEvent(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		got := make(seen, 100)
		subscribe(t, q, topic, got)
		ids := map[string]bool{}
		for _, c := range []struct {
			body string
			due  time.Time
		}{
			{"", time.Now()},
			{"\n", past()},
			{"a\r\n\x00\xff{}", time.Now().Add(20 * time.Millisecond)},
			{"{\"v\":1,\"at\":5}\n", time.Unix(0, 0)},
			{"the year 1", time.Unix(-1<<35, 0)},
			{"elsewhere", time.Now().In(time.FixedZone("", 3600))},
		} {
			id := publish(t, q, topic, c.body, c.due)
			if len(id) != 14 || ids[id] {
				t.Errorf("id %q", id)
			}
			ids[id] = true
			e := receive(t, got)
			if e.ID != id || e.Topic != topic || string(e.Body) != c.body || e.Attempt != 1 || e.MaxAttempts != 10 || e.Metadata != nil {
				t.Errorf("delivered %+v, want %q", e, c.body)
			}
			if c.due.Unix() > 0 {
				sameTime(t, "effect time", e.EffectTime, c.due)
			}
			if time.Now().Before(c.due) {
				t.Errorf("%q came early", c.body)
			}
		}
		awaitEmpty(t, q, topic)
		conserved(t, env, topic)
	})
}

// By the server's clock no event comes before its time, to the microsecond.
func TestNeverEarly(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const n = 400
		var queues []*dueq.Queue
		early := make(chan time.Duration, n)
		for range 2 {
			q := newQueue(t, env, dueq.Options{})
			subscribe(t, q, topic, dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
				now, err := env.Client.Time(ctx).Result()
				if err != nil {
					return err
				}
				due, err := time.Parse(time.RFC3339Nano, string(e.Body))
				if err != nil {
					return err
				}
				early <- due.Sub(now)
				return nil
			}))
			queues = append(queues, q)
		}
		start := time.Now()
		for i := range n {
			due := start.Add(time.Duration(i) * 737 * time.Microsecond)
			publish(t, queues[i%2], topic, due.Format(time.RFC3339Nano), due)
		}
		for range n {
			if d := receive(t, early); d > 0 {
				t.Errorf("came %v early", d)
			}
		}
	})
}

// While one batch is on its way, what comes in waits and travels together.
func TestPublishesTravelTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 64
		var calls, events atomic.Int64
		release := make(chan struct{})
		serve := func(cmd redis.Cmder) {
			if c, ok := cmd.(interface{ SetVal(any) }); ok && isMove(cmd) {
				calls.Add(1)
				for _, arg := range cmd.Args() {
					if text, ok := arg.(*string); ok && strings.HasPrefix(*text, `{"v":1,`) {
						events.Add(1)
					}
				}
				c.SetVal([]any{"ok", ""})
			}
		}
		rdb := redis.NewClient(&redis.Options{Addr: "192.0.2.1:1"}) // never dialled
		defer func() { _ = rdb.Close() }()
		rdb.AddHook(&hook{
			command: func(_ context.Context, cmd redis.Cmder, _ redis.ProcessHook) error {
				if isMove(cmd) {
					<-release
				}
				serve(cmd)
				return nil
			},
			pipeline: func(_ context.Context, cmds []redis.Cmder, _ redis.ProcessPipelineHook) error {
				<-release
				for _, cmd := range cmds {
					serve(cmd)
				}
				return nil
			},
		})
		q, err := dueq.New(rdb, dueq.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if _, err := q.PublishEvent(t.Context(), topic, nil, past()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // the first is on its way, all others wait
		close(release)
		wg.Wait()
		if calls.Load() > 5 || events.Load() != n {
			t.Errorf("%d events went in %d calls", events.Load(), calls.Load())
		}
	})
}

func TestManyPublishers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const goroutines, each = 64, 40
		var trips atomic.Int64
		q := newQueueOn(t, env, onMoves(env, func(_ []redis.Cmder, next func() error) error {
			trips.Add(1)
			return next()
		}), dueq.Options{})
		var ids sync.Map
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for i := range each {
					id, err := q.PublishEvent(t.Context(), topic, fmt.Append(nil, g, i), time.Now().Add(time.Hour))
					if err != nil {
						t.Error(err)
						return
					}
					if _, double := ids.LoadOrStore(id, fmt.Sprint(g, i)); double {
						t.Errorf("id %q twice", id)
					}
				}
			})
		}
		wg.Wait()
		if n := trips.Load(); n > goroutines*each/2 {
			t.Errorf("%d events took %d round trips", goroutines*each, n)
		}
		if s := stats(t, q, topic); s.Scheduled != goroutines*each || s.Published != goroutines*each {
			t.Errorf("stats %+v", s)
		}
		conserved(t, env, topic)
		checked := 0
		ids.Range(func(id, body any) bool {
			if info := get(t, q, topic, id.(string)); string(info.Body) != body {
				t.Errorf("id %q has body %q, want %q", id, info.Body, body)
			}
			checked++
			return checked < 100
		})
	})
}

// A publish whose ctx ends says whether it may have been stored.
func TestPublishWhoseCtxEnds(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		entered, release := make(chan struct{}, 100), make(chan struct{})
		q := newQueueOn(t, env, onMoves(env, func(_ []redis.Cmder, next func() error) error {
			entered <- struct{}{}
			<-release
			return next()
		}), dueq.Options{})
		try := func(body string) (cancel context.CancelFunc, result <-chan error) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := q.PublishEvent(ctx, topic, []byte(body), time.Now().Add(time.Hour), dueq.WithID(body))
				done <- err
			}()
			return cancel, done
		}
		cancel, sent := try("sent")
		receive(t, entered)
		cancelled, waited := try("waited")
		cancelled()
		if err := receive(t, waited); !errors.Is(err, context.Canceled) || errors.Is(err, dueq.ErrOutcomeUnknown) {
			t.Errorf("publish that waited = %v", err)
		}
		cancel()
		if err := receive(t, sent); !errors.Is(err, context.Canceled) || !errors.Is(err, dueq.ErrOutcomeUnknown) {
			t.Errorf("publish that was sent = %v, want ErrOutcomeUnknown", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := q.PublishEvent(ended, topic, nil, time.Now()); !errors.Is(err, context.Canceled) || errors.Is(err, dueq.ErrOutcomeUnknown) {
			t.Errorf("publish with an ended ctx = %v", err)
		}
		close(release)
		awaitState(t, q, topic, "sent", dueq.StateScheduled)
		publish(t, q, topic, "x", time.Now().Add(time.Hour)) // behind the other
		if _, err := q.Get(t.Context(), topic, "waited"); !errors.Is(err, dueq.ErrNotFound) {
			t.Errorf("get of what was not sent = %v", err)
		}
		if s := stats(t, q, topic); s.Published != 2 {
			t.Errorf("%d published, want 2", s.Published)
		}
	})
}

// A publish that fails says whether it may have been stored.
func TestPublishThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		run     bool
		err     error
		unknown bool
	}{
		"refused":         {false, refusal("OOM command not allowed"), false},
		"not dialled":     {false, &net.OpError{Op: "dial", Err: errBroken}, false},
		"reply lost":      {true, &net.OpError{Op: "read", Err: errBroken}, true},
		"lost on the way": {false, &net.OpError{Op: "write", Err: errBroken}, true},
		"closed":          {false, redis.ErrClosed, false},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				var failing atomic.Bool
				q := newQueueOn(t, env, onMoves(env, func(cmds []redis.Cmder, next func() error) error {
					if !failing.Load() {
						return next()
					}
					if c.run {
						_ = next()
					}
					return fail(cmds, c.err)
				}), dueq.Options{})
				publish(t, q, topic, "good", past())
				failing.Store(true)
				_, err := q.PublishEvent(t.Context(), topic, nil, time.Now(), dueq.WithID(theKey))
				if err == nil || errors.Is(err, dueq.ErrOutcomeUnknown) != c.unknown || !errors.Is(err, c.err) {
					t.Errorf("publish = %v; outcome unknown: want %t", err, c.unknown)
				}
				ids, err := q.PublishEvents(t.Context(), topic, []dueq.NewEvent{{EffectTime: past()}, {EffectTime: past()}})
				var failed *dueq.BatchError
				if !errors.As(err, &failed) || failed.Stored != 0 || len(failed.Errs) != 2 || errors.Is(err, dueq.ErrOutcomeUnknown) != c.unknown {
					t.Errorf("publish events = %q, %v", ids, err)
				}
				failing.Store(false)
				want := 1
				if c.run {
					want += 3
				}
				if s := stats(t, q, topic); s.Published != want {
					t.Errorf("%d published, want %d", s.Published, want)
				}
				conserved(t, env, topic)
			})
		})
	}
}

func TestPublishEvents(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		if ids, err := q.PublishEvents(t.Context(), topic, nil); err != nil || len(ids) != 0 {
			t.Errorf("publish of nothing = %q, %v", ids, err)
		}
		n := 100_000
		if env.Mini != nil {
			n = 10_000 // its Lua is slow
		}
		events := make([]dueq.NewEvent, n)
		hour := time.Now().Add(time.Hour)
		for i := range events {
			events[i] = dueq.NewEvent{Body: fmt.Append(nil, i), EffectTime: hour.Add(time.Duration(i) * time.Second)}
		}
		ids, err := q.PublishEvents(t.Context(), topic, events)
		if err != nil {
			t.Fatal(err)
		}
		unique := make(map[string]bool, n)
		for _, id := range ids {
			unique[id] = true
		}
		if len(ids) != n || len(unique) != n || unique[""] {
			t.Errorf("%d ids, %d of them unique", len(ids), len(unique))
		}
		for i := 0; i < n; i += 999 {
			info := get(t, q, topic, ids[i])
			if string(info.Body) != fmt.Sprint(i) {
				t.Errorf("event %d has body %q", i, info.Body)
			}
			sameTime(t, "effect time", info.EffectTime, events[i].EffectTime)
		}
		if s := stats(t, q, topic); s.Scheduled != n || s.Published != n {
			t.Errorf("stats %+v", s)
		}
		conserved(t, env, topic)
	})
}

// A PublishEvents that fails half way says exactly what was stored.
func TestPublishEventsThatFailHalfWay(t *testing.T) {
	for name, c := range map[string]struct {
		run bool
		err error
	}{
		"not stored": {false, refusal("OOM command not allowed")},
		"unknown":    {true, &net.OpError{Op: "read", Err: errBroken}},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				var trips atomic.Int64
				q := newQueueOn(t, env, onMoves(env, func(cmds []redis.Cmder, next func() error) error {
					if trips.Add(1)%3 != 0 {
						return next()
					}
					if c.run {
						_ = next()
					}
					return fail(cmds, c.err)
				}), dueq.Options{Partitions: 2})
				events := make([]dueq.NewEvent, 5_000)
				for i := range events {
					events[i] = dueq.NewEvent{ID: fmt.Sprint(i), EffectTime: time.Now().Add(time.Hour)}
				}
				ids, err := q.PublishEvents(t.Context(), topic, events)
				var failed *dueq.BatchError
				if !errors.As(err, &failed) {
					t.Fatalf("publish events = %v", err)
				}
				notStored, unknown := len(failed.Errs), 0
				if c.run {
					notStored, unknown = 0, notStored
				}
				text := fmt.Sprintf("of 5000 events %d were stored, %d were not, of %d it is unknown", failed.Stored, notStored, unknown)
				if !errors.Is(err, c.err) || errors.Is(err, dueq.ErrOutcomeUnknown) != c.run || !strings.Contains(err.Error(), text) {
					t.Errorf("error %v, want %q in it", err, text)
				}
				stored := 0
				for i, id := range ids {
					if (id == "") != (failed.Errs[i] != nil) {
						t.Fatalf("event %d has id %q and error %v", i, id, failed.Errs[i])
					}
					if id != "" {
						stored++
					}
				}
				if len(ids) != len(events) || failed.Stored != stored || stored == 0 || stored+len(failed.Errs) != len(events) {
					t.Errorf("%d ids, %d of them not empty, %d errors, Stored %d", len(ids), stored, len(failed.Errs), failed.Stored)
				}
				want := stored
				if c.run {
					want = len(events)
				}
				check := newQueue(t, env, dueq.Options{Partitions: 2})
				if s := stats(t, check, topic); s.Scheduled != want {
					t.Errorf("%d scheduled, want %d", s.Scheduled, want)
				}
				conserved(t, env, topic)
			})
		})
	}
}

func TestPublishEventsWhoseCtxEnds(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		var trips atomic.Int64
		q := newQueueOn(t, env, onMoves(env, func(_ []redis.Cmder, next func() error) error {
			if trips.Add(1) == 2 {
				cancel()
			}
			return next()
		}), dueq.Options{})
		events := make([]dueq.NewEvent, 20_000)
		for i := range events {
			events[i] = dueq.NewEvent{EffectTime: time.Now().Add(time.Hour)}
		}
		_, err := q.PublishEvents(ctx, topic, events)
		var failed *dueq.BatchError
		if !errors.As(err, &failed) || !errors.Is(err, context.Canceled) || errors.Is(err, dueq.ErrOutcomeUnknown) {
			t.Fatalf("publish events = %v", err)
		}
		if s := stats(t, q, topic); s.Scheduled != failed.Stored || s.Scheduled == 0 {
			t.Errorf("%d scheduled, %d said to be stored", s.Scheduled, failed.Stored)
		}
		conserved(t, env, topic)
	})
}

// Equal keys in one call do what they would do one after the other.
func TestKeysOfOneBatch(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		hour := time.Now().Add(time.Hour)
		event := func(id, body string, policy dueq.KeyPolicy) dueq.NewEvent {
			return dueq.NewEvent{ID: id, Body: []byte(body), EffectTime: hour, KeyPolicy: policy}
		}
		var batch []dueq.NewEvent
		for i := range 10 {
			batch = append(batch, event("kept", fmt.Sprint(i), dueq.KeyKeep))
		}
		ids, err := q.PublishEvents(t.Context(), topic, batch)
		if err != nil || ids[0] != "kept" || ids[9] != "kept" {
			t.Errorf("publish = %q, %v", ids, err)
		}
		if s := stats(t, q, topic); s.Published != 1 || s.Kept != 9 {
			t.Errorf("%d published, %d kept; want 1, 9", s.Published, s.Kept)
		}
		if info := get(t, q, topic, "kept"); string(info.Body) != "0" {
			t.Errorf("body %q, want that of the first", info.Body)
		}

		ids, err = q.PublishEvents(t.Context(), topic, []dueq.NewEvent{
			event("a", "1", dueq.KeyReject), event("a", "2", dueq.KeyReject), event("b", "1", dueq.KeyKeep),
			event("b", "2", dueq.KeyReplace), event("b", "3", dueq.KeyKeep), event("b", "4", dueq.KeyReject),
			{EffectTime: hour},
		})
		var failed *dueq.BatchError
		if !errors.As(err, &failed) || failed.Stored != 5 || len(failed.Errs) != 2 ||
			!errors.Is(failed.Errs[1], dueq.ErrDuplicateID) || !errors.Is(failed.Errs[5], dueq.ErrDuplicateID) {
			t.Errorf("publish = %q, %v", ids, err)
		}
		for id, body := range map[string]string{"a": "1", "b": "2"} {
			if info := get(t, q, topic, id); string(info.Body) != body {
				t.Errorf("%s has body %q, want %q", id, info.Body, body)
			}
		}
		conserved(t, env, topic)
	})
}

// Of equal keys the last one wins however many batches they travel in.
func TestKeysOfOneCallKeepTheirOrder(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		var trips atomic.Int32
		overtaken := make(chan struct{})
		q := newQueueOn(t, env, onMoves(env, func(_ []redis.Cmder, next func() error) error {
			switch trips.Add(1) {
			case 1: // the first batch is slow
				select {
				case <-overtaken:
				case <-time.After(50 * time.Millisecond):
				}
			case 2:
				defer close(overtaken)
			}
			return next()
		}), dueq.Options{})
		events := make([]dueq.NewEvent, 600)
		for i := range events {
			events[i] = dueq.NewEvent{ID: theKey, KeyPolicy: dueq.KeyReplace, Body: fmt.Append(nil, i), EffectTime: time.Now().Add(time.Hour)}
		}
		if _, err := q.PublishEvents(t.Context(), topic, events); err != nil {
			t.Fatal(err)
		}
		if info := get(t, q, topic, theKey); string(info.Body) != "599" {
			t.Errorf("body %q, want that of the last", info.Body)
		}
	})
}

func TestLargeBodies(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const n, size = 100, 200_000 // several claims' worth
		q := newQueue(t, env, dueq.Options{MaxBody: size, Concurrency: 100})
		events := make([]dueq.NewEvent, n)
		for i := range events {
			events[i] = dueq.NewEvent{Body: bytes.Repeat([]byte{byte(i), '\n'}, size/2), EffectTime: past()}
		}
		ids, err := q.PublishEvents(t.Context(), topic, events)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]byte{}
		for i, id := range ids {
			want[id] = events[i].Body
		}
		got := make(seen, n)
		subscribe(t, q, topic, got)
		for range n {
			if e := receive(t, got); !bytes.Equal(want[e.ID], e.Body) {
				t.Errorf("event %q has %d bytes", e.ID, len(e.Body))
			} else {
				delete(want, e.ID)
			}
		}
		awaitEmpty(t, q, topic)
		conserved(t, env, topic)
	})
}

// A backlog stays in the buckets: ready is kept short.
func TestBacklog(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const n, most = 6_000, 4096
		q := newQueue(t, env, dueq.Options{})
		ids := publishMany(t, q, n, past())
		if s := stats(t, q, topic); s.Ready > most || s.Ready+s.Scheduled != n {
			t.Errorf("%d ready, %d scheduled", s.Ready, s.Scheduled)
		}
		conserved(t, env, topic)
		got := make(seen, n)
		subscribe(t, q, topic, got)
		left := map[string]bool{}
		for _, id := range ids {
			left[id] = true
		}
		for range n {
			e := receive(t, got)
			if !left[e.ID] {
				t.Errorf("event %q came twice", e.ID)
			}
			delete(left, e.ID)
		}
		awaitEmpty(t, q, topic)
		conserved(t, env, topic)
	})
}
