package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// Handlers that panic, end their goroutine, hang or are slow do not stop the
// events beside them.
func TestBadHandlersStopNobody(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const bad, good = 20, 200
		q := newQueue(t, env, dueq.Options{
			Concurrency: 8, HandlerTimeout: 50 * time.Millisecond, MaxAttempts: 2,
			Backoff: func(int, error) time.Duration { return time.Millisecond },
		})
		var done atomic.Int32
		subscribe(t, q, "a", dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
			switch string(e.Body) {
			case "panic":
				panic("as published")
			case "exit":
				runtime.Goexit()
			case "hang":
				<-ctx.Done()
				return ctx.Err()
			}
			done.Add(1)
			return nil
		}))
		var events []dueq.NewEvent
		now := faultTime(t, env.Client)
		for i := range bad {
			for _, what := range []string{"panic", "exit", "hang"} {
				events = append(events, dueq.NewEvent{Body: []byte(what), EffectTime: now})
			}
			for range good / bad {
				events = append(events, dueq.NewEvent{Body: []byte("good"), EffectTime: now.Add(time.Duration(i) * time.Millisecond)})
			}
		}
		if _, err := q.PublishEvents(t.Context(), "a", events); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the bad are dead and the good are done", func() bool {
			s := stats(t, q, "a")
			return s.Dead == 3*bad && s.Acked == good && done.Load() == good
		})
		conserved(t, env, "a")
	})
}

// A handler that ignores its ctx keeps its slot, and only that.
func TestHangingHandlersKeepTheirSlots(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		rdb := env.NewClient()
		hook := faultHooked(rdb)
		q := newQueueOn(t, env, rdb, dueq.Options{Concurrency: 3, Lease: 3 * time.Second})
		hung := newStage(t)
		got := make(seen, 50)
		subscribe(t, q, "a", dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
			if string(e.Body) == "hang" {
				return hung.HandleEvent(ctx, e)
			}
			return got.HandleEvent(ctx, e)
		}))
		publish(t, q, "a", "hang", time.Now())
		publish(t, q, "a", "hang", time.Now())
		first, second := hung.next(), hung.next()
		for range 50 {
			publish(t, q, "a", "x", time.Now())
		}
		for range 50 {
			receive(t, got)
		}
		eventually(t, "they hang for longer than a lease", func() bool { return hook.count("extend") > 3 })
		for _, a := range []*act{first, second} {
			if a.ctx.Err() != nil {
				t.Errorf("the ctx of a handler that runs for long ended: %v", context.Cause(a.ctx))
			}
			a.end(nil)
		}
		awaitEmpty(t, q, "a")
		hung.none()
	})
}

// partitions are the ways in which a process can lose its server for longer than
// a lease.
var partitions = map[string]func(h *faultHook) (heal func()){
	"refused": func(h *faultHook) func() {
		h.disconnect()
		return h.connect
	},
	"stalled": func(h *faultHook) func() {
		_, release := h.hold("")
		return release
	},
}

// A process that is cut off for longer than its lease loses its event to
// another. Whatever its handler returns then changes nothing; its handler's ctx
// ends; and when the process can talk again it works on.
func TestTakeover(t *testing.T) {
	t.Parallel()
	for name, cut := range partitions {
		for _, late := range []error{nil, errBroken} {
			t.Run(fmt.Sprint(name, " ", late), func(t *testing.T) {
				t.Parallel()
				redistest.Each(t, func(t *testing.T, env *redistest.Env) { testTakeover(t, env, cut, late) })
			})
		}
	}
}

func testTakeover(t *testing.T, env *redistest.Env, cut func(*faultHook) func(), late error) {
	opts := dueq.Options{
		Lease: 600 * time.Millisecond, Fallback: 300 * time.Millisecond,
		Backoff: func(int, error) time.Duration { return 10 * time.Millisecond },
	}
	rdb := env.NewClient()
	hook := faultHooked(rdb)
	first := newQueueOn(t, env, rdb, opts)
	opts.Lease = holds
	second := newQueue(t, env, opts)
	atFirst, atSecond := newStage(t), newStage(t)
	subscribe(t, first, "a", atFirst)
	id := publish(t, second, "a", "x", time.Now())
	a := atFirst.next()
	a.want(t, id, "x", 1)

	subscribe(t, second, "a", atSecond)
	heal := cut(hook)
	defer heal()
	b := atSecond.next()
	b.want(t, id, "x", 2)
	eventually(t, "the first handler's ctx ends", func() bool { return a.ctx.Err() != nil })
	if cause := context.Cause(a.ctx); !errors.Is(cause, dueq.ErrLeaseLost) {
		t.Errorf("the first handler's ctx ended with %v, want ErrLeaseLost", cause)
	}
	said := func() int { return hook.count("settle") + hook.count("extend") + hook.count("claim") }
	before := said()
	a.end(late)
	heal()
	eventually(t, "the first process has learned of its loss", func() bool { return said() > before })
	if info := get(t, first, "a", id); info.State != dueq.StateLeased || info.Attempts != 1 {
		t.Errorf("after the late outcome the event is %+v", info)
	}
	if err := context.Cause(b.ctx); err != nil {
		t.Errorf("the second handler's ctx ended: %v", err)
	}
	b.end(errBroken)

	// Either may have it now, for the third time.
	var c *act
	select {
	case c = <-atFirst.acts:
	case c = <-atSecond.acts:
	case <-time.After(patience):
		t.Fatal("the event is not retried")
	}
	c.want(t, id, "x", 3)
	c.end(nil)
	awaitEmpty(t, first, "a")

	shutDown(t, second)
	id = publish(t, first, "a", "y", time.Now())
	d := atFirst.next()
	d.want(t, id, "y", 1)
	d.end(nil)
	awaitEmpty(t, first, "a")
	conserved(t, env, "a")
}

// A process that the system stops for longer than its lease, and then lets go on.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	env := redistest.Start(t).Env()
	config := faultConfig{
		Addr: env.Addr, Namespace: env.Namespace, Topic: "a", Name: "stopped",
		Lease: time.Second, Fallback: time.Second, Timeout: 10 * time.Second,
	}
	w := faultStart(t, config)
	q := newQueue(t, env, dueq.Options{Lease: holds, Fallback: 300 * time.Millisecond})
	id := publish(t, q, "a", "stop", time.Now())
	eventually(t, "the process has the event", func() bool { return len(config.faultRuns(t, env.Client)) == 1 })
	w.signal(syscall.SIGSTOP)
	got := newStage(t)
	subscribe(t, q, "a", got)
	a := got.next()
	a.want(t, id, "stop", 2)

	w.signal(syscall.SIGCONT)
	if stop, err := env.Client.BLPop(t.Context(), patience, config.stops()).Result(); err != nil || stop[1] != id+" "+dueq.ErrLeaseLost.Error() {
		t.Errorf("the ctx of the stopped handler ended with %q, %v", stop, err)
	}
	env.Client.RPush(t.Context(), config.free(), "return nil")
	if info := get(t, q, "a", id); info.State != dueq.StateLeased {
		t.Errorf("the event is %s", info.State)
	}
	for range 20 { // the process works on, and its acks follow the late one
		publish(t, q, "a", "work", time.Now(), dueq.WithMaxAttempts(1<<20))
	}
	eventually(t, "the process works on", func() bool {
		for {
			select {
			case b := <-got.acts:
				b.end(dueq.RetryAfter(5*time.Millisecond, errBroken)) // not here: there
			default:
				return len(config.faultRuns(t, env.Client)) > 1
			}
		}
	})
	if info := get(t, q, "a", id); info.State != dueq.StateLeased {
		t.Errorf("the event is %s", info.State)
	}
	a.end(nil)
	awaitGone(t, q, "a", id)
	w.signal(syscall.SIGTERM)
	if err := w.wait(t); err != nil {
		t.Error(err)
	}
}

// When the reply to a claim is lost, nobody knows that the session has the
// events: they are given back, not an attempt poorer.
func TestLostClaimReply(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		rdb := env.NewClient()
		hook := faultHooked(rdb)
		q := newQueueOn(t, env, rdb, dueq.Options{Lease: time.Hour, Fallback: time.Hour})
		got := newStage(t)
		subscribe(t, q, "a", got)
		var held *act // beside the lost ones, a lease that is known
		for _, lost := range []int{1, 2, 4} {
			hook.loseReplies("claim", lost)
			id := publish(t, q, "a", "x", time.Now())
			a := got.next()
			a.want(t, id, "x", 1)
			if held != nil {
				held.end(nil)
			}
			held = a
		}
		hook.loseReplies("claim", 1)
		id := publish(t, q, "a", "later", time.Now().Add(100*time.Millisecond)) // straight from its bucket
		a := got.next()
		a.want(t, id, "later", 1)
		a.end(nil)
		held.end(nil)
		awaitEmpty(t, q, "a")
		got.none()
		conserved(t, env, "a")
	})
}

// When the reply to an outcome is lost the outcome is sent again, and counts
// once.
func TestLostSettleReply(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		rdb := env.NewClient()
		hook := faultHooked(rdb)
		q := newQueueOn(t, env, rdb, dueq.Options{MaxAttempts: 3, Fallback: time.Hour})
		got := newStage(t)
		subscribe(t, q, "a", got)

		for attempts := 1; attempts <= 2; attempts++ {
			id := publish(t, q, "a", "ack", time.Now())
			for n := 1; n <= attempts; n++ {
				a := got.next()
				a.want(t, id, "ack", n)
				hook.loseReplies("settle", 2)
				if n < attempts {
					a.end(dueq.RetryAfter(0, errBroken))
				} else {
					a.end(nil)
				}
			}
			awaitGone(t, q, "a", id)
		}

		id := publish(t, q, "a", "bury", time.Now())
		a := got.next()
		hook.loseReplies("settle", 2)
		a.end(dueq.SkipRetry(errBroken))
		if info := awaitState(t, q, "a", id, dueq.StateDead); info.Attempts != 1 {
			t.Errorf("buried as %+v", info)
		}
		eventually(t, "all second tries are through", func() bool { return hook.count("settle") >= 4 })
		s := stats(t, q, "a")
		if s.Acked != 2 || s.Retried != 1 || s.Buried != 1 || s.Released != 0 || s.Expired != 0 {
			t.Errorf("Stats = %+v", s)
		}
		got.none()
		conserved(t, env, "a")
	})
}

// An id that is published anew right after its ack took effect, whose reply was
// lost, is another event: the second try of the ack must not end it.
func TestLostAckReplySparesSuccessor(t *testing.T) {
	t.Parallel()
	for name, lostClaims := range map[string]int{"claim told": 0, "claim lost too": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				rdb := env.NewClient()
				hook := faultHooked(rdb)
				q := newQueueOn(t, env, rdb, dueq.Options{Lease: holds, Fallback: 300 * time.Millisecond})
				other := newQueue(t, env, dueq.Options{})
				got := newStage(t)
				subscribe(t, q, "a", got)
				const id, rounds = "key", 20
				publish(t, other, "a", "0", time.Now(), dueq.WithID(id))
				for i := range rounds {
					a := got.next()
					a.want(t, id, fmt.Sprint(i), 1)
					// As soon as the ack has taken effect, but before its sender could know.
					hook.then("settle", sync.OnceFunc(func() {
						hook.loseReplies("claim", lostClaims)
						_, err := other.PublishEvent(t.Context(), "a", fmt.Append(nil, i+1), time.Now(), dueq.WithID(id))
						if err != nil {
							t.Error(err)
						}
					}))
					hook.loseReplies("settle", 1)
					a.end(nil)
				}
				a := got.next()
				a.want(t, id, fmt.Sprint(rounds), 1)
				a.end(nil)
				awaitEmpty(t, q, "a")
				got.none()
				conserved(t, env, "a")
			})
		})
	}
}

// When the reply to a publish is lost, the caller is told that it is unknown
// whether the event exists; it does so at most once.
func TestLostPublishReply(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		rdb := env.NewClient()
		hook := faultHooked(rdb)
		q := newQueueOn(t, env, rdb, dueq.Options{})
		publish(t, q, "a", "first", time.Now().Add(time.Hour))

		hook.loseReplies("publish", 1)
		if _, err := q.PublishEvent(t.Context(), "a", nil, time.Now().Add(time.Hour)); !errors.Is(err, dueq.ErrOutcomeUnknown) {
			t.Errorf("error = %v, want ErrOutcomeUnknown", err)
		}
		if s := stats(t, q, "a"); s.Scheduled > 2 {
			t.Errorf("%d events after two publishes", s.Scheduled)
		}

		hook.loseReplies("publish", 1)
		again := []dueq.PublishOption{dueq.WithID("key"), dueq.WithKeyPolicy(dueq.KeyKeep)}
		if _, err := q.PublishEvent(t.Context(), "b", nil, time.Now().Add(time.Hour), again...); !errors.Is(err, dueq.ErrOutcomeUnknown) {
			t.Errorf("error = %v, want ErrOutcomeUnknown", err)
		}
		publish(t, q, "b", "", time.Now().Add(time.Hour), again...) // so one makes sure
		if s := stats(t, q, "b"); s.Scheduled != 1 {
			t.Errorf("%d events under one key", s.Scheduled)
		}

		hook.loseReplies("publish", 1)
		ids, err := q.PublishEvents(t.Context(), "c", faultEvents(1200, time.Now().Add(time.Hour), time.Second))
		var batch *dueq.BatchError
		if !errors.As(err, &batch) || !errors.Is(err, dueq.ErrOutcomeUnknown) {
			t.Fatalf("error = %v, want a BatchError of ErrOutcomeUnknown", err)
		}
		unknown := 0
		for i, id := range ids {
			if _, failed := batch.Errs[i]; failed != (id == "") {
				t.Errorf("event %d has id %q and error %v", i, id, batch.Errs[i])
			}
			if id == "" {
				unknown++
			}
		}
		if batch.Stored+unknown != 1200 || unknown == 0 || batch.Stored == 0 {
			t.Errorf("%d stored, %d unknown", batch.Stored, unknown)
		}
		if s := stats(t, q, "c"); s.Scheduled < batch.Stored || s.Scheduled > 1200 {
			t.Errorf("%d events, %d of them known", s.Scheduled, batch.Stored)
		}
		for _, topic := range []string{"a", "b", "c"} {
			conserved(t, env, topic)
		}
	})
}

// An extension of leases whose reply is lost harms nobody.
func TestLostExtendReply(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		rdb := env.NewClient()
		hook := faultHooked(rdb)
		q := newQueueOn(t, env, rdb, dueq.Options{Lease: 4 * time.Second})
		other := newQueue(t, env, dueq.Options{Fallback: 300 * time.Millisecond})
		got := newStage(t)
		subscribe(t, q, "a", got)
		id := publish(t, q, "a", "x", time.Now())
		a := got.next()
		subscribe(t, other, "a", got)
		for range 2 {
			sent := hook.count("extend")
			hook.loseReplies("extend", 1)
			eventually(t, "two extensions", func() bool { return hook.count("extend") > sent+1 })
		}
		if cause := context.Cause(a.ctx); cause != nil {
			t.Errorf("the handler's ctx ended with %v", cause)
		}
		a.end(nil)
		awaitGone(t, q, "a", id)
		got.none()
	})
}
