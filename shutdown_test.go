package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/readyqueue"
)

// faultSoon is how long another process may take to get what one gives back:
// next to nothing, but for a machine with much else to do.
const faultSoon = 20 * time.Second

// slowly are options with which nothing but a signal can bring an event to
// another process within the test.
func slowly(concurrency int) dueq.Options {
	return dueq.Options{Lease: time.Hour, Fallback: time.Hour, Concurrency: concurrency}
}

// hoarding makes a queue hold more of n events of topic a than it runs: its
// handlers, fast so far, are held up by the stage.
func hoarding(t *testing.T, q *dueq.Queue, n, running int) *stage {
	t.Helper()
	held := newStage(t)
	subscribe(t, q, "a", dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
		if string(e.Body) == "fast" {
			return nil
		}
		return held.HandleEvent(ctx, e)
	}))
	fast := make([]dueq.NewEvent, 500)
	for i := range fast {
		fast[i] = dueq.NewEvent{Body: []byte("fast"), EffectTime: time.Now()}
	}
	slow := make([]dueq.NewEvent, n)
	for i := range slow {
		slow[i] = dueq.NewEvent{Body: []byte("slow"), EffectTime: time.Now()}
	}
	for _, events := range [][]dueq.NewEvent{fast, slow} {
		if _, err := q.PublishEvents(t.Context(), "a", events); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the fast ones are done", func() bool { return stats(t, q, "a").Acked == len(fast) })
	}
	eventually(t, "handlers run", func() bool { return stats(t, q, "a").Leased >= running })
	t.Logf("of %d events %d are held, %d of them run", n, stats(t, q, "a").Leased, running)
	return held
}

// shutDownSoon shuts a queue down, giving its handlers so long.
func shutDownSoon(t *testing.T, q *dueq.Queue, within time.Duration) (ended <-chan error) {
	t.Helper()
	errs := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		errs <- q.ShutDown(ctx)
	}()
	return errs
}

// ShutDown lets what runs finish, and gives back at once what has not started.
func TestShutDownGivesBack(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const n, running = 40, 2
		first, second := newQueue(t, env, slowly(running)), newQueue(t, env, slowly(n))
		held := hoarding(t, first, n, running)
		elsewhere := newStage(t)
		subscribe(t, second, "a", elsewhere)
		acts := []*act{held.next(), held.next()}
		ids := map[string]bool{acts[0].ID: true, acts[1].ID: true}

		start := time.Now()
		ended := shutDownSoon(t, first, time.Hour)
		for range n - running {
			a := elsewhere.next()
			if a.Attempt != 1 {
				t.Errorf("event %s, given back unstarted, comes with attempt %d", a.ID, a.Attempt)
			}
			if ids[a.ID] {
				t.Errorf("event %s runs twice", a.ID)
			}
			ids[a.ID] = true
			a.end(nil)
		}
		if took := time.Since(start); took > faultSoon {
			t.Errorf("what was given back came elsewhere after %v", took)
		}
		publish(t, second, "a", "new", time.Now())
		elsewhere.next().end(nil)
		select {
		case err := <-ended:
			t.Errorf("ShutDown did not wait for the handlers: %v", err)
		default:
		}
		for _, a := range acts {
			if a.ctx.Err() != nil {
				t.Errorf("the ctx of a running handler ended: %v", context.Cause(a.ctx))
			}
			a.do(func() error {
				_, err := first.PublishEvent(t.Context(), "b", nil, time.Now()) // still may
				return err
			})
		}
		if err := receive(t, ended); err != nil {
			t.Errorf("ShutDown: %v", err)
		}
		held.none()
		awaitEmpty(t, second, "a")
		if s := stats(t, second, "b"); s.Published != running {
			t.Errorf("the handlers published %d events while shutting down", s.Published)
		}
		if _, err := first.PublishEvent(t.Context(), "b", nil, time.Now()); !errors.Is(err, dueq.ErrShutDown) {
			t.Errorf("publish after ShutDown: %v", err)
		}
		conserved(t, env, "a")
	})
}

// At ShutDown's deadline the handlers' contexts end, and their events go back as
// if they had not run, whether the handlers heed it or not.
func TestShutDownDeadline(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		first, second := newQueue(t, env, slowly(2)), newQueue(t, env, slowly(2))
		atFirst, atSecond := newStage(t), newStage(t)
		subscribe(t, first, "a", dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
			if string(e.Body) == "heeds" {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return atFirst.HandleEvent(ctx, e)
		}))
		publish(t, first, "a", "ignores", time.Now())
		publish(t, first, "a", "heeds", time.Now())
		a := atFirst.next()
		eventually(t, "both run", func() bool { return stats(t, first, "a").Leased == 2 })
		subscribe(t, second, "a", atSecond)

		err := receive(t, shutDownSoon(t, first, 100*time.Millisecond))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ShutDown: %v, want DeadlineExceeded", err)
		}
		if cause := context.Cause(a.ctx); !errors.Is(cause, dueq.ErrStopping) {
			t.Errorf("the handler's ctx ended with %v, want ErrStopping", cause)
		}
		bodies := map[string]bool{}
		for range 2 {
			b := atSecond.next()
			if b.Attempt != 1 {
				t.Errorf("%q comes with attempt %d", b.Body, b.Attempt)
			}
			bodies[string(b.Body)] = true
			b.end(nil)
		}
		if !bodies["heeds"] || !bodies["ignores"] {
			t.Errorf("given back: %v", bodies)
		}
		a.end(nil) // changes nothing
		awaitEmpty(t, second, "a")
		atSecond.none()
		conserved(t, env, "a")
	})
}

// What a claim brings that was under way when ShutDown began goes back at once,
// too.
func TestShutDownDuringClaim(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]int{"told": 0, "lost": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				rdb := env.NewClient()
				hook := faultHooked(rdb)
				first, second := newQueueOn(t, env, rdb, slowly(1)), newQueue(t, env, slowly(1))
				atFirst, atSecond := newStage(t), newStage(t)
				subscribe(t, first, "a", atFirst)
				publish(t, second, "a", "first", time.Now())
				atFirst.next().end(nil)
				awaitEmpty(t, second, "a")

				reached, release := hook.hold("claim")
				defer release()
				id := publish(t, second, "a", "x", time.Now())
				<-reached
				hook.loseReplies("claim", lost)
				ended := shutDownSoon(t, first, time.Hour)
				eventually(t, "ShutDown has begun", func() bool {
					return errors.Is(first.Subscribe("b", atFirst), dueq.ErrShutDown)
				})
				release()
				if err := receive(t, ended); err != nil {
					t.Errorf("ShutDown: %v", err)
				}
				start := time.Now()
				subscribe(t, second, "a", atSecond)
				b := atSecond.next()
				b.want(t, id, "x", 1)
				if took := time.Since(start); took > faultSoon {
					t.Errorf("the event came elsewhere after %v", took)
				}
				b.end(nil)
				awaitEmpty(t, second, "a")
				atFirst.none()
			})
		})
	}
}

// A bell that a process hears as it shuts down is heard by another.
func TestShutDownHandsBellOn(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		rdb, other := env.NewClient(), env.NewClient()
		hook, otherHook := faultHooked(rdb), faultHooked(other)
		first, second := newQueueOn(t, env, rdb, slowly(1)), newQueueOn(t, env, other, slowly(1))
		atFirst, atSecond := newStage(t), newStage(t)
		subscribe(t, first, "a", atFirst)
		publish(t, second, "a", "first", time.Now())
		atFirst.next().end(nil)
		awaitEmpty(t, second, "a")
		eventually(t, "the first process sleeps, or is about to", func() bool { return hook.listens() > 0 })
		subscribe(t, second, "a", atSecond)
		eventually(t, "the second, too", func() bool { return otherHook.listens() > 0 })

		begin := sync.OnceFunc(func() {
			select {
			case err := <-shutDownSoon(t, first, time.Hour):
				if err != nil {
					t.Errorf("ShutDown: %v", err)
				}
			case <-time.After(patience):
				t.Error("ShutDown waits for a call that Redis does not answer")
			}
		})
		hook.then("listen", func() { // it has taken the bell's token, and does not know yet
			if env.Client.LLen(t.Context(), faultLane(env.Namespace).Ready).Val() > 0 {
				begin()
			}
		})
		id := publish(t, second, "a", "x", time.Now().Add(-time.Second)) // straight to ready
		a := atSecond.next()
		a.want(t, id, "x", 1)
		a.end(nil)
		awaitEmpty(t, second, "a")
		atFirst.none()
	})
}

// ShutDown ends in time whatever Redis does.
func TestShutDownWithoutRedis(t *testing.T) {
	t.Parallel()
	const within = 12 * time.Second // a second for handlers, five for the last outcomes, and some
	for name, breakIt := range map[string]func(t *testing.T, s *redistest.Server){
		"down": func(_ *testing.T, s *redistest.Server) { s.Kill() },
		"full": func(t *testing.T, s *redistest.Server) {
			if err := s.Client().ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
				t.Fatal(err)
			}
		},
		"hung": func(t *testing.T, s *redistest.Server) { faultFreeze(t, s.Client()) },
	} {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " busy ", busy), func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				env := server.Env()
				q, err := dueq.New(env.Client, dueq.Options{Namespace: env.Namespace})
				if err != nil {
					t.Fatal(err)
				}
				got := newStage(t)
				subscribe(t, q, "a", got)
				publish(t, q, "a", "first", time.Now())
				a := got.next()
				if !busy {
					a.end(nil)
					eventually(t, "the process knows that the ack has reached Redis", func() bool { return q.Metrics().Topics["a"].Acked == 1 })
				}
				breakIt(t, server)
				start := time.Now()
				ended := shutDownSoon(t, q, 200*time.Millisecond)
				if busy {
					eventually(t, "the handler's ctx ends", func() bool { return a.ctx.Err() != nil })
					a.end(nil)
				}
				var shutErr error
				select {
				case shutErr = <-ended:
				case <-time.After(4 * within):
					t.Fatal("ShutDown does not end")
				}
				t.Logf("ShutDown took %v: %v", time.Since(start), shutErr)
				if took := time.Since(start); took > within {
					t.Errorf("ShutDown took %v", took)
				}
				if busy && name != "full" && !errors.Is(shutErr, dueq.ErrOutcomeUnknown) {
					t.Errorf("ShutDown said nothing of an outcome that did not reach Redis: %v", shutErr)
				}
				if !busy && name != "hung" && shutErr != nil {
					t.Errorf("ShutDown with nothing to do: %v", shutErr)
				}
			})
		}
	}
}

// An event that kept killing its process, and whose PersistFn is cut off by
// ShutDown, is for PersistFn again: it does not run once more.
func TestShutDownDuringPersist(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const attempts = 3
		persists := newStage(t)
		handled := make(seen, 10)
		queue := func() *dueq.Queue {
			opts := slowly(1)
			opts.MaxAttempts = attempts
			opts.PersistFn = func(ctx context.Context, e *dueq.Event, _ error) error { return persists.HandleEvent(ctx, e) }
			q := newQueue(t, env, opts)
			subscribe(t, q, "a", handled)
			return q
		}
		lane := faultLane(env.Namespace)
		lost := readyqueue.Attempts{Count: attempts, Cause: readyqueue.LostCause}
		faultByHand(t, env.Client, lane, "id", faultTime(t, env.Client))
		env.Client.HSet(t.Context(), lane.Attempts, "id", lost.String())
		env.Client.ZAdd(t.Context(), lane.Bucket(lane.Home("id")), redis.Z{Member: "id"})

		first := queue()
		a := persists.next()
		ended := shutDownSoon(t, first, 50*time.Millisecond)
		eventually(t, "PersistFn's ctx ends", func() bool { return a.ctx.Err() != nil })
		a.end(context.Cause(a.ctx))
		_ = receive(t, ended) // the deadline
		second := queue()
		select {
		case b := <-persists.acts:
			b.end(nil)
		case <-handled:
			t.Error("the event ran once more")
		case <-time.After(patience):
			t.Error("nothing came")
		}
		awaitGone(t, second, "a", "id")
	})
}

// A process that gets SIGTERM while it runs Run.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body    string
		timeout time.Duration
		attempt int // with which the event comes elsewhere; 0: it does not
		exit    string
	}{
		{"stop", time.Hour, 0, "<nil>"},
		{"end", 200 * time.Millisecond, 1, "exit status 1"},
		{"stop", 200 * time.Millisecond, 1, "exit status 1"},
	} {
		t.Run(fmt.Sprint(c.body, " ", c.timeout), func(t *testing.T) {
			t.Parallel()
			env := redistest.Start(t).Env()
			config := faultConfig{
				Addr: env.Addr, Namespace: env.Namespace, Topic: "a", Name: "w",
				Lease: time.Hour, Fallback: time.Hour, Timeout: c.timeout, Concurrency: 1,
			}
			w := faultStart(t, config)
			q := newQueue(t, env, slowly(100))
			id := publish(t, q, "a", c.body, time.Now())
			eventually(t, "the handler runs", func() bool { return len(config.faultRuns(t, env.Client)) == 1 })
			got := newStage(t)
			subscribe(t, q, "a", got)
			for range 10 {
				publish(t, q, "a", "x", time.Now()) // the process has no room for it
				got.next().end(nil)
			}
			w.signal(syscall.SIGTERM)
			if c.attempt > 0 {
				b := got.next()
				b.want(t, id, c.body, c.attempt)
				b.end(nil)
			} else {
				publish(t, q, "a", "x", time.Now())
				got.next().end(nil)
				env.Client.RPush(t.Context(), config.free(), "return nil")
			}
			if err := w.wait(t); fmt.Sprint(err) != c.exit {
				t.Errorf("the process ended with %v, want %s", err, c.exit)
			}
			awaitEmpty(t, q, "a")
			got.none()
			if runs := config.faultRuns(t, env.Client); len(runs) != 1 {
				t.Errorf("runs in the process: %+v", runs)
			}
			conserved(t, env, "a")
		})
	}
}

// A wait for bells ends with the queue, also if it was being interrupted for
// another reason when ShutDown began.
func TestShutDownWhileParking(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		rdb := env.NewClient()
		hook := faultHooked(rdb)
		q := newQueueOn(t, env, rdb, slowly(1))
		subscribe(t, q, "a", make(seen, 1))
		eventually(t, "the process listens", func() bool { return hook.listens() > hook.count("listen") })
		reached, release := hook.hold("lpush")
		subscribe(t, q, "b", make(seen, 1)) // whose bell is to be listened to as well
		receiveClosed(t, reached)
		ended := shutDownSoon(t, q, time.Hour)
		eventually(t, "ShutDown has begun", func() bool {
			return errors.Is(q.Subscribe("c", make(seen, 1)), dueq.ErrShutDown)
		})
		release()
		if err := receive(t, ended); err != nil {
			t.Errorf("ShutDown: %v", err)
		}
		if begun, over := hook.listens(), hook.count("listen"); begun != over {
			t.Errorf("%d waits have begun, %d are over", begun, over)
		}
	})
}
