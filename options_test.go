package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/pool"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	env := redistest.Mini(t)
	q, err := dueq.New(env.NewClient(), dueq.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shutDown(t, q)
	lane := key.NewLane("dueq", topic, 0, 1, 16)
	largest := strings.Repeat("x", 1<<20)
	publish(t, q, topic, largest, past())
	if _, err := q.PublishEvent(t.Context(), topic, []byte(largest+"x"), past()); !errors.Is(err, dueq.ErrBodyTooLarge) {
		t.Errorf("publish of more than MaxBody = %v", err)
	}
	publishMany(t, q, 99, past())
	if n, err := env.Client.LLen(t.Context(), lane.Ready).Result(); err != nil || n != 100 {
		t.Errorf("%d ready, %v", n, err)
	}
	if counts := env.Client.HGet(t.Context(), lane.Meta, "buckets").Val(); counts != "16" {
		t.Errorf("bucket counts %q", counts)
	}
	st := newStage(t)
	subscribe(t, q, topic, st)
	var acts []*act
	for range 64 {
		acts = append(acts, st.next())
	}
	eventually(t, "as many leased as Concurrency allows", func() bool { return stats(t, q, topic).Leased == 64 })
	st.none()
	deadline := time.UnixMilli(int64(env.Client.ZRangeWithScores(t.Context(), lane.Sessions, 0, 0).Val()[0].Score))
	if lease := time.Until(deadline); lease < 5*time.Second || lease > 15*time.Second {
		t.Errorf("the lease has %v left", lease)
	}
	ends, ok := acts[0].ctx.Deadline()
	if left := time.Until(ends); !ok || left > 30*time.Minute || left < 29*time.Minute {
		t.Errorf("the handler has %v left", left)
	}
	if acts[0].MaxAttempts != 10 {
		t.Errorf("%d attempts", acts[0].MaxAttempts)
	}
	for _, a := range acts {
		a.end(nil)
	}
	for range 36 {
		st.next().end(nil)
	}
}

func TestNamespaces(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		var queues []*dueq.Queue
		var handlers []*stage
		for _, suffix := range []string{"", "2", " 3"} { // one's name begins like the other's
			q := newQueue(t, env, dueq.Options{Namespace: env.Namespace + suffix})
			st := newStage(t)
			subscribe(t, q, topic, st)
			queues, handlers = append(queues, q), append(handlers, st)
		}
		for i, q := range queues {
			publish(t, q, topic, fmt.Sprint(i), past(), dueq.WithID(theKey)) // the same id in each
			publish(t, q, fmt.Sprint("of ", i), "x", time.Now().Add(time.Hour))
		}
		for i, st := range handlers {
			a := st.next()
			a.want(t, theKey, fmt.Sprint(i), 1)
			if names, err := queues[i].Topics(t.Context()); err != nil || !slices.Equal(names, []string{fmt.Sprint("of ", i), topic}) {
				t.Errorf("topics %q, %v", names, err)
			}
			if s := stats(t, queues[i], topic); s.Published != 1 || s.Leased != 1 {
				t.Errorf("stats %+v", s)
			}
			a.end(nil)
		}
		for i, st := range handlers {
			awaitEmpty(t, queues[i], topic)
			st.none()
		}
	})
}

// publishMany publishes n events, enough of them to hit every bucket.
func publishMany(t *testing.T, q *dueq.Queue, n int, due time.Time) (ids []string) {
	t.Helper()
	events := make([]dueq.NewEvent, n)
	for i := range events {
		events[i] = dueq.NewEvent{Body: []byte("x"), EffectTime: due}
	}
	ids, err := q.PublishEvents(t.Context(), topic, events)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// handleAll takes the deliveries of all the ids, in any order, and acks them.
func handleAll(t *testing.T, st *stage, ids []string) {
	t.Helper()
	left := make(map[string]bool)
	for _, id := range ids {
		left[id] = true
	}
	for len(left) > 0 {
		a := st.next()
		if !left[a.ID] {
			t.Errorf("unexpected delivery of %q", a.ID)
		}
		delete(left, a.ID)
		a.end(nil)
	}
}

// Processes with different bucket counts share one topic.
func TestBucketCounts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		counts := []int{16, 1, 1024, 7}
		var queues []*dueq.Queue
		var ids []string
		for _, n := range counts {
			q := newQueue(t, env, dueq.Options{Buckets: n, Fallback: time.Hour})
			queues = append(queues, q)
			ids = append(ids, publishMany(t, q, 20, time.Now().Add(time.Hour))...)
		}
		for _, q := range queues {
			for _, id := range ids {
				if info := get(t, q, topic, id); info.State != dueq.StateScheduled {
					t.Fatalf("state %s, want scheduled", info.State)
				}
			}
			if s := stats(t, q, topic); s.Scheduled != len(ids) || s.Published != 80 {
				t.Errorf("stats %+v, want %d scheduled", s, len(ids))
			}
			last := len(ids) - 1
			if err := q.Cancel(t.Context(), topic, ids[last]); err != nil {
				t.Errorf("cancel: %v", err)
			}
			ids = ids[:last]
			conserved(t, env, topic)
		}
		st := newStage(t)
		subscribe(t, queues[1], topic, st)
		for i, id := range ids {
			reschedule(t, queues[i%len(queues)], id, time.Now().Add(50*time.Millisecond))
		}
		ids = append(ids, publishMany(t, queues[2], 50, time.Now())...)
		handleAll(t, st, ids)
		awaitEmpty(t, queues[3], topic)
		conserved(t, env, topic)
	})
}

// A process whose count Redis has not heard of puts nothing where others would
// not look.
func TestBucketCountOfWhoReschedules(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Fallback: time.Hour})
		ids := publishMany(t, q, 50, time.Now().Add(time.Hour))
		other := newQueue(t, env, dueq.Options{Buckets: 100})
		for _, id := range ids {
			reschedule(t, other, id, time.Now().Add(2*time.Hour))
		}
		for _, id := range ids {
			if info := get(t, q, topic, id); info.State != dueq.StateScheduled {
				t.Fatalf("state %s, want scheduled", info.State)
			}
		}
		if s := stats(t, q, topic); s.Scheduled != len(ids) {
			t.Errorf("%d scheduled, want %d", s.Scheduled, len(ids))
		}
		st := newStage(t)
		subscribe(t, q, topic, st)
		for _, id := range ids {
			reschedule(t, other, id, past())
		}
		handleAll(t, st, ids)
		awaitEmpty(t, q, topic)
	})
}

func TestBucketCountOfWhoRetries(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Fallback: time.Hour})
		other := newQueue(t, env, dueq.Options{Buckets: 100, Backoff: never})
		subscribe(t, other, topic, dueq.HandlerFunc(func(context.Context, *dueq.Event) error { return errBroken }))
		ids := publishMany(t, q, 50, past())
		eventually(t, "all retried", func() bool { return stats(t, other, topic).Retried == len(ids) })
		shutDown(t, other)
		for _, id := range ids {
			if info := get(t, q, topic, id); info.State != dueq.StateScheduled {
				t.Fatalf("state %s, want scheduled", info.State)
			}
			reschedule(t, q, id, past())
		}
		st := newStage(t)
		subscribe(t, q, topic, st)
		handleAll(t, st, ids)
		awaitEmpty(t, q, topic)
	})
}

// A process that expires another's session may not yet know of all buckets.
func TestBucketCountOfWhoExpires(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Buckets: 1000})
		publishKey(t, q, "old", past(), dueq.KeyReject)
		ghost(t, env)
		due := time.Now().Add(100 * time.Millisecond)
		publishKey(t, q, "new", due, dueq.KeyReplace)
		other := newQueue(t, env, dueq.Options{Buckets: 1})
		st := newStage(t)
		subscribe(t, other, topic, st)
		a := st.next()
		a.want(t, theKey, "new", 1)
		a.notBefore(t, due)
		a.end(nil)
		awaitGone(t, q, topic, theKey)
		conserved(t, env, topic)
	})
}

// Processes with different partition counts share one topic.
func TestPartitionCounts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		opts := dueq.Options{Fallback: 100 * time.Millisecond}
		var queues []*dueq.Queue
		for _, n := range []int{1, 3, 64} {
			opts.Partitions = n
			queues = append(queues, newQueue(t, env, opts))
		}
		hour := time.Now().Add(time.Hour)
		var ids []string
		for i, q := range queues {
			if i == 2 { // this one comes when the others are subscribed to
				break
			}
			for range 8 {
				ids = append(ids, publish(t, q, topic, "x", hour))
			}
		}
		for _, q := range queues {
			if s := stats(t, q, topic); s.Scheduled != len(ids) {
				t.Errorf("%d scheduled, want %d", s.Scheduled, len(ids))
			}
			for _, id := range ids {
				if info := get(t, q, topic, id); info.State != dueq.StateScheduled {
					t.Fatalf("state %s, want scheduled", info.State)
				}
			}
			if _, err := q.Get(t.Context(), topic, "no such id"); !errors.Is(err, dueq.ErrNotFound) {
				t.Errorf("get = %v, want ErrNotFound", err)
			}
		}
		if err := queues[0].Cancel(t.Context(), topic, ids[15]); err != nil {
			t.Errorf("cancel: %v", err)
		}
		ids = ids[:15]
		st := newStage(t)
		subscribe(t, queues[0], topic, st)
		for i, id := range ids {
			reschedule(t, queues[i%3], id, past())
		}
		handleAll(t, st, ids)
		handleAll(t, st, publishMany(t, queues[2], 100, time.Now()))
		awaitEmpty(t, queues[1], topic)
		conserved(t, env, topic)
	})
}

// A topic that this process has published to before it subscribes to it, after
// another one, has lanes of other partition counts, too.
func TestPartitionCountsOfASecondTopic(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Fallback: 100 * time.Millisecond})
		split := newQueue(t, env, dueq.Options{Partitions: 3})
		id := publish(t, split, topic, "x", past())
		own := publish(t, q, topic, "x", past())
		first := make(seen, 1)
		subscribe(t, q, "other", first)
		publish(t, newQueue(t, env, dueq.Options{Partitions: 2}), "other", "x", past())
		receive(t, first) // now it has read the set of topics
		st := newStage(t)
		subscribe(t, q, topic, st)
		handleAll(t, st, []string{id, own})
	})
}

// Publishing goes on while lanes of other partition counts come up.
func TestPartitionCountsFoundWhilePublishing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		publish(t, q, topic, "x", past())
		published := make(chan error)
		go func() {
			for range 100 {
				if _, err := q.PublishEvent(t.Context(), topic, nil, past()); err != nil {
					published <- err
					return
				}
			}
			published <- nil
		}()
		for n := 2; n < 10; n++ {
			publish(t, newQueue(t, env, dueq.Options{Partitions: n}), topic, "x", past())
			stats(t, q, topic)
		}
		if err := receive(t, published); err != nil {
			t.Error(err)
		}
	})
}

func TestConcurrency(t *testing.T) {
	for _, partitions := range []int{1, 4} { // of which only some have room at a time
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, env *redistest.Env) { testConcurrency(t, env, partitions) })
		})
	}
}

func testConcurrency(t *testing.T, env *redistest.Env, partitions int) {
	const limit = 3
	q := newQueue(t, env, dueq.Options{Concurrency: limit, Partitions: partitions, Fallback: time.Hour})
	st := newStage(t)
	var running, most atomic.Int32
	subscribe(t, q, topic, dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
		if n := running.Add(1); n > most.Load() {
			most.Store(n) // while the first ones run, nobody else writes it
		}
		defer running.Add(-1)
		return st.HandleEvent(ctx, e)
	}))
	publishMany(t, q, 200, past())
	var acts []*act
	for range limit {
		acts = append(acts, st.next())
	}
	eventually(t, "no more than the limit claimed", func() bool {
		s := stats(t, q, topic)
		return s.Leased == limit && s.Ready+s.Scheduled == 200-limit
	})
	st.none()
	// A topic has its own slots.
	other := newStage(t)
	subscribe(t, q, "other", other)
	publish(t, q, "other", "x", past())
	other.next().end(nil)
	for _, a := range acts {
		a.end(nil)
	}
	for range 200 - limit {
		st.next().end(nil)
	}
	awaitEmpty(t, q, topic)
	if n := most.Load(); n != limit {
		t.Errorf("%d handlers at once, want %d", n, limit)
	}
	conserved(t, env, topic)
}

// Lanes that look for events at the same time share their topic's slots: one
// that found none free is not forgotten when the others give theirs back.
func TestPartitionsShareTheSlots(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Concurrency: 1, Partitions: 8, Fallback: time.Hour})
		for i := range 40 {
			name := fmt.Sprint("topic ", i)
			got := make(seen, 4)
			subscribe(t, q, name, got)
			for range 4 {
				publish(t, q, name, "x", past())
			}
			for range 4 {
				receive(t, got)
			}
		}
	})
}

// What no signal tells of is found within the fallback interval.
func TestFallback(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Fallback: 100 * time.Millisecond})
		st := newStage(t)
		subscribe(t, q, topic, st)
		id := publish(t, q, topic, "x", past())
		st.next().end(nil) // it is awake, and idle from here on
		awaitGone(t, q, topic, id)

		lane := key.NewLane(env.Namespace, topic, 0, 1, 16)
		record, err := (&pool.Record{EffectTime: past().UnixMilli(), Body: []byte("silent")}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		for _, silently := range []func(id string) error{
			func(id string) error { return env.Client.RPush(t.Context(), lane.Ready, id).Err() },
			func(id string) error {
				return env.Client.Do(t.Context(), "ZADD", lane.Bucket(lane.Home(id)), past().UnixMilli(), id).Err()
			},
		} {
			id := bucket.NewID(16, time.Now())
			if err := env.Client.HSet(t.Context(), lane.Pool, id, record).Err(); err != nil {
				t.Fatal(err)
			}
			if err := silently(id); err != nil {
				t.Fatal(err)
			}
			a := st.next()
			a.want(t, id, "silent", 1)
			a.end(nil)
		}
		awaitEmpty(t, q, topic)
	})
}

func TestRun(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		run := func(q *dueq.Queue) (end context.CancelFunc, ended <-chan error) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- q.Run(ctx) }()
			return cancel, done
		}
		q := newQueue(t, env, dueq.Options{})
		end, ended := run(q)
		subscribe(t, q, topic, seen(nil))
		end()
		if err := receive(t, ended); err != nil {
			t.Errorf("Run = %v", err)
		}
		if err := q.Run(t.Context()); !errors.Is(err, dueq.ErrShutDown) {
			t.Errorf("Run = %v, want ErrShutDown", err)
		}

		q = newQueue(t, env, dueq.Options{})
		end, ended = run(q)
		defer end()
		shutDown(t, q)
		if err := <-ended; err != nil && !errors.Is(err, dueq.ErrShutDown) { // the latter if it began that late
			t.Errorf("Run = %v", err)
		}
	})
}

func TestShutdownTimeout(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{ShutdownTimeout: 50 * time.Millisecond})
		st := newStage(t)
		subscribe(t, q, topic, st)
		id := publish(t, q, topic, "x", past())
		a := st.next()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		ended := make(chan error, 1)
		go func() { ended <- q.Run(ctx) }()
		receiveClosed(t, a.ctx.Done())
		if cause := context.Cause(a.ctx); !errors.Is(cause, dueq.ErrStopping) {
			t.Errorf("the handler's ctx ended with %v", cause)
		}
		a.end(errBroken)
		if err := receive(t, ended); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run = %v, want a passed deadline", err)
		}
		info := get(t, newQueue(t, env, dueq.Options{}), topic, id)
		if info.State != dueq.StateReady || info.Attempts != 0 {
			t.Errorf("given back %s, with %d attempts used up", info.State, info.Attempts)
		}
		conserved(t, env, topic)
	})
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	const evicts, forgets = "this Redis may evict events", "this Redis persists nothing"
	for name, c := range map[string]struct {
		flags []string
		want  []string
	}{
		"good":    {[]string{"--appendonly", "yes"}, nil},
		"RDB":     {[]string{"--save", "3600 1"}, nil},
		"forgets": {nil, []string{forgets}},
		"evicts":  {[]string{"--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"}, []string{evicts}},
		"both":    {[]string{"--maxmemory-policy", "volatile-ttl"}, []string{evicts, forgets}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, logs := observer.New(zapcore.DebugLevel)
			q, err := dueq.New(redistest.Start(t, c.flags...).Client(), dueq.Options{Logger: zap.New(core)})
			if err != nil {
				t.Fatal(err)
			}
			defer shutDown(t, q)
			for i := range 3 {
				publish(t, q, fmt.Sprint(i), "x", past())
				subscribe(t, q, fmt.Sprint(i), make(seen, 1))
				awaitEmpty(t, q, fmt.Sprint(i))
			}
			var got []string
			for _, e := range logs.All() {
				for _, message := range []string{evicts, forgets} {
					if len(e.Message) > len(message) && e.Message[:len(message)] == message {
						got = append(got, message)
					}
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("warned of %q, want %q; all: %v", got, c.want, logs.All())
			}
		})
	}
}

// The documented least number of connections is enough for everything at once.
func TestSmallConnectionPool(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		rdb := redis.NewClient(&redis.Options{Addr: env.Addr, PoolSize: 4, PoolTimeout: patience})
		t.Cleanup(func() { _ = rdb.Close() })
		q := newQueueOn(t, env, rdb, dueq.Options{Partitions: 2})
		got := make(seen, 1000)
		subscribe(t, q, topic, got)
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				for range 5 {
					if _, err := q.PublishEvent(t.Context(), topic, nil, time.Now()); err != nil {
						t.Error(err)
					}
					if _, err := q.Stats(t.Context(), topic); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for range 200 {
			receive(t, got)
		}
		awaitEmpty(t, q, topic)
	})
}

// Processes of all kinds, events of all kinds, and nobody who looks a second
// time: whatever is published is handled.
func TestNoSignalIsMissed(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const topics, publishers, each = 3, 6, 60
		name := func(i int) string { return fmt.Sprint("topic ", i) }
		var queues []*dueq.Queue
		for i, opts := range []dueq.Options{
			{Concurrency: 1, Partitions: 3, Buckets: 4},
			{Concurrency: 2, Partitions: 3, Buckets: 4},
			{Concurrency: 3, Partitions: 3, Buckets: 9},
		} {
			opts.Fallback, opts.MaxAttempts = time.Hour, 1000
			opts.Backoff = func(int, error) time.Duration { return rand.N(5 * time.Millisecond) }
			q := newQueue(t, env, opts)
			queues = append(queues, q)
			for topic := range topics {
				if topic == i {
					continue // each topic has two subscribers
				}
				subscribe(t, q, name(topic), dueq.HandlerFunc(func(context.Context, *dueq.Event) error {
					if rand.N(4) == 0 {
						return errBroken
					}
					return nil
				}))
			}
		}
		var wg sync.WaitGroup
		for p := range publishers {
			wg.Go(func() {
				tick := time.NewTicker(time.Millisecond)
				defer tick.Stop()
				for range each {
					due := time.Now().Add(rand.N(40*time.Millisecond) - 20*time.Millisecond)
					var opts []dueq.PublishOption
					if rand.N(2) == 0 {
						opts = append(opts, dueq.WithID(fmt.Sprint(rand.N(10))), dueq.WithKeyPolicy(dueq.KeyPolicy(1+rand.N(2))))
					}
					if _, err := queues[p%3].PublishEvent(t.Context(), name(rand.N(topics)), nil, due, opts...); err != nil {
						t.Error(err)
						return
					}
					if rand.N(3) == 0 {
						<-tick.C
					}
				}
			})
		}
		for i := range 30 { // at any moment
			conserved(t, env, name(i%topics))
		}
		wg.Wait()
		for topic := range topics {
			awaitEmpty(t, queues[0], name(topic))
			conserved(t, env, name(topic))
		}
	})
}
