package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/readyqueue"
)

const (
	theKey = "the key"
	topic  = "topic"
)

// ghost claims the key, which is due, for a process that never shows up again. Its lease
// is over at once, but stands until some subscriber notices.
func ghost(t *testing.T, env *redistest.Env) {
	t.Helper()
	lane := key.NewLane(env.Namespace, topic, 0, 1, 16)
	claim := readyqueue.Claim{Session: "ghost", Lease: time.Millisecond, Extend: true, Limit: 1, HighWater: 1}
	found, err := claim.Run(t.Context(), env.Client, lane)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Leases) != 1 || found.Leases[0].ID != theKey {
		t.Fatalf("the ghost claimed %+v, want one lease of %q", found.Leases, theKey)
	}
}

// past is a time at which an event is due already: the present is rounded up.
func past() time.Time { return time.Now().Add(-time.Second) }

// publishKey publishes the key with a policy.
func publishKey(t *testing.T, q *dueq.Queue, body string, due time.Time, policy dueq.KeyPolicy) {
	t.Helper()
	publish(t, q, topic, body, due, dueq.WithID(theKey), dueq.WithKeyPolicy(policy))
}

// rejected fails the test unless the key is taken.
func rejected(t *testing.T, q *dueq.Queue) {
	t.Helper()
	for _, opts := range [][]dueq.PublishOption{
		{dueq.WithID(theKey)},
		{dueq.WithID(theKey), dueq.WithKeyPolicy(dueq.KeyReject)},
	} {
		id, err := q.PublishEvent(t.Context(), topic, []byte("refused"), time.Now(), opts...)
		if !errors.Is(err, dueq.ErrDuplicateID) || id != "" {
			t.Errorf("publish = %q, %v; want ErrDuplicateID", id, err)
		}
	}
}

// bury publishes the key so that it dies with the error errBroken.
func bury(t *testing.T, q *dueq.Queue, st *stage) {
	t.Helper()
	publish(t, q, topic, "old", time.Now(), dueq.WithID(theKey), dueq.WithMaxAttempts(1))
	st.next().end(errBroken)
	awaitState(t, q, topic, theKey, dueq.StateDead)
}

// sameTime fails the test unless got is want, rounded up to the millisecond.
func sameTime(t *testing.T, what string, got, want time.Time) {
	t.Helper()
	if d := got.Sub(want); d < 0 || d >= time.Millisecond {
		t.Errorf("%s is %v, want %v rounded up to the millisecond", what, got, want)
	}
}

func TestKeyWhileScheduled(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		due := time.Now().Add(time.Hour)
		publishKey(t, q, "old", due, dueq.KeyKeep)
		rejected(t, q)
		publishKey(t, q, "kept out", time.Now(), dueq.KeyKeep)
		info := get(t, q, topic, theKey)
		if string(info.Body) != "old" || info.State != dueq.StateScheduled {
			t.Errorf("after KeyKeep: %q, %s", info.Body, info.State)
		}
		sameTime(t, "kept due time", info.Due, due)

		due = due.Add(time.Hour)
		publishKey(t, q, "new", due, dueq.KeyReplace)
		info = get(t, q, topic, theKey)
		if string(info.Body) != "new" || info.State != dueq.StateScheduled {
			t.Errorf("after KeyReplace: %q, %s", info.Body, info.State)
		}
		sameTime(t, "replaced due time", info.Due, due)
		sameTime(t, "replaced effect time", info.EffectTime, due)
		conserved(t, env, topic)

		publishKey(t, q, "now", time.Now(), dueq.KeyReplace)
		st := newStage(t)
		subscribe(t, q, topic, st)
		a := st.next()
		a.want(t, theKey, "now", 1)
		a.end(nil)
		awaitGone(t, q, topic, theKey)
		st.none()
		conserved(t, env, topic)
	})
}

func TestKeyWhileReady(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		publishKey(t, q, "old", past(), dueq.KeyReject)
		rejected(t, q)
		publishKey(t, q, "kept out", past(), dueq.KeyKeep)
		if info := get(t, q, topic, theKey); string(info.Body) != "old" || info.State != dueq.StateReady {
			t.Errorf("after KeyKeep: %q, %s", info.Body, info.State)
		}
		publishKey(t, q, "new", past(), dueq.KeyReplace)
		if info := get(t, q, topic, theKey); string(info.Body) != "new" || info.State != dueq.StateReady {
			t.Errorf("after KeyReplace: %q, %s", info.Body, info.State)
		}
		conserved(t, env, topic)
		later := time.Now().Add(time.Hour)
		publishKey(t, q, "later", later, dueq.KeyReplace)
		info := get(t, q, topic, theKey)
		if string(info.Body) != "later" || info.State != dueq.StateScheduled {
			t.Errorf("after KeyReplace to later: %q, %s", info.Body, info.State)
		}
		sameTime(t, "due time", info.Due, later)
		conserved(t, env, topic)
	})
}

// A publish with KeyKeep just before the event is claimed is served by that run.
func TestKeepWhileReadyRunsOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		publishKey(t, q, "old", past(), dueq.KeyKeep)
		publishKey(t, q, "kept out", past(), dueq.KeyKeep)
		st := newStage(t)
		subscribe(t, q, topic, st)
		a := st.next()
		a.want(t, theKey, "old", 1)
		a.end(nil)
		awaitGone(t, q, topic, theKey)
		st.none()
		conserved(t, env, topic)
	})
}

func TestKeyWhileHandled(t *testing.T) {
	for _, c := range []struct {
		policy dueq.KeyPolicy
		body   string // of the run that follows
	}{{dueq.KeyKeep, "old"}, {dueq.KeyReplace, "new"}} {
		t.Run(c.policy.String(), func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				q := newQueue(t, env, dueq.Options{})
				st := newStage(t)
				subscribe(t, q, topic, st)
				publishKey(t, q, "old", time.Now(), dueq.KeyReject)
				a := st.next()
				a.want(t, theKey, "old", 1)
				rejected(t, q)
				due := time.Now().Add(50 * time.Millisecond)
				publishKey(t, q, "new", due, c.policy)
				rejected(t, q)
				if info := get(t, q, topic, theKey); info.State != dueq.StateLeased {
					t.Errorf("state %s, want leased", info.State)
				}
				conserved(t, env, topic)
				a.end(nil)

				a = st.next()
				a.want(t, theKey, c.body, 1)
				sameTime(t, "effect time", a.EffectTime, due)
				a.notBefore(t, due)
				a.end(nil)
				awaitGone(t, q, topic, theKey)
				st.none()
				conserved(t, env, topic)
			})
		})
	}
}

// Several publishes while the event is handled make one more run.
func TestKeysWhileHandledRunOnceMore(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		st := newStage(t)
		subscribe(t, q, topic, st)
		publishKey(t, q, "old", time.Now(), dueq.KeyReject)
		a := st.next()
		publishKey(t, q, "kept out", time.Now(), dueq.KeyKeep)
		publishKey(t, q, "one", time.Now().Add(time.Hour), dueq.KeyReplace)
		publishKey(t, q, "two", time.Now(), dueq.KeyReplace)
		publishKey(t, q, "kept out", time.Now().Add(time.Hour), dueq.KeyKeep)
		a.end(nil)
		a = st.next()
		a.want(t, theKey, "two", 1)
		a.end(nil)
		awaitGone(t, q, topic, theKey)
		st.none()
		conserved(t, env, topic)
	})
}

// What a publish asks for while the event is handled happens however that ends.
func TestKeyWhileHandledThatFails(t *testing.T) {
	stored := func(context.Context, *dueq.Event, error) error { return nil }
	for _, c := range []struct {
		name    string
		policy  dueq.KeyPolicy
		persist dueq.PersistFn
		max     int
		end     error
		body    string
		attempt int // of the run that follows
	}{
		{"keep, fails", dueq.KeyKeep, nil, 5, errBroken, "old", 2}, // the retry serves the publish, too
		{"keep, out of attempts", dueq.KeyKeep, nil, 1, errBroken, "old", 1},
		{"keep, no more attempts", dueq.KeyKeep, nil, 5, dueq.SkipRetry(errBroken), "old", 1},
		{"keep, persisted", dueq.KeyKeep, stored, 1, errBroken, "old", 1},
		{"replace, fails", dueq.KeyReplace, nil, 5, errBroken, "new", 1},
		{"replace, out of attempts", dueq.KeyReplace, nil, 1, errBroken, "new", 1},
		{"replace, no more attempts", dueq.KeyReplace, nil, 5, dueq.SkipRetry(errBroken), "new", 1},
		{"replace, persisted", dueq.KeyReplace, stored, 1, errBroken, "new", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				q := newQueue(t, env, dueq.Options{
					MaxAttempts: c.max, PersistFn: c.persist,
					Backoff: func(int, error) time.Duration { return 0 },
				})
				st := newStage(t)
				subscribe(t, q, topic, st)
				publishKey(t, q, "old", time.Now(), dueq.KeyReject)
				a := st.next()
				publishKey(t, q, "new", time.Now(), c.policy)
				a.end(c.end)
				a = st.next()
				a.want(t, theKey, c.body, c.attempt)
				a.end(nil)
				awaitGone(t, q, topic, theKey)
				st.none()
				conserved(t, env, topic)
			})
		})
	}
}

func TestKeyWhileHeldByTheDead(t *testing.T) {
	for _, c := range []struct {
		policy  dueq.KeyPolicy
		body    string
		attempt int
	}{{dueq.KeyKeep, "old", 2}, {dueq.KeyReplace, "new", 1}} {
		t.Run(c.policy.String(), func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				q := newQueue(t, env, dueq.Options{})
				publishKey(t, q, "old", past(), dueq.KeyReject)
				ghost(t, env)
				due := time.Now().Add(100 * time.Millisecond)
				publishKey(t, q, "new", due, c.policy)
				conserved(t, env, topic)
				st := newStage(t)
				subscribe(t, q, topic, st)
				a := st.next()
				a.want(t, theKey, c.body, c.attempt)
				if c.policy == dueq.KeyReplace {
					a.notBefore(t, due)
				}
				a.end(nil)
				awaitGone(t, q, topic, theKey)
				st.none()
				conserved(t, env, topic)
			})
		})
	}
}

// A holder that is shut down gives its event back; what replaced it meanwhile
// keeps its own time.
func TestReplaceWhileHolderShutsDown(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		publishKey(t, q, "old", time.Now(), dueq.KeyReject)
		holder := newQueue(t, env, dueq.Options{})
		held := make(chan struct{})
		subscribe(t, holder, topic, dueq.HandlerFunc(func(ctx context.Context, _ *dueq.Event) error {
			close(held)
			<-ctx.Done()
			return ctx.Err()
		}))
		receiveClosed(t, held)
		due := time.Now().Add(300 * time.Millisecond)
		publishKey(t, q, "new", due, dueq.KeyReplace)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := holder.ShutDown(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("ShutDown = %v", err)
		}
		info := get(t, q, topic, theKey)
		if info.State != dueq.StateScheduled {
			t.Errorf("state %s, want scheduled", info.State)
		}
		sameTime(t, "due time", info.Due, due)
		st := newStage(t)
		subscribe(t, q, topic, st)
		a := st.next()
		a.want(t, theKey, "new", 1)
		a.notBefore(t, due)
		a.end(nil)
		awaitGone(t, q, topic, theKey)
		conserved(t, env, topic)
	})
}

func TestKeyWhileDead(t *testing.T) {
	for _, policy := range []dueq.KeyPolicy{dueq.KeyKeep, dueq.KeyReplace} {
		t.Run(policy.String(), func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				q := newQueue(t, env, dueq.Options{})
				st := newStage(t)
				subscribe(t, q, topic, st)
				bury(t, q, st)
				rejected(t, q)
				due := time.Now().Add(50 * time.Millisecond)
				publishKey(t, q, "new", due, policy)
				if info := get(t, q, topic, theKey); info.Attempts != 0 || info.LastError != "" || info.MaxAttempts != 0 {
					t.Errorf("revived with %d attempts of %d, last error %q", info.Attempts, info.MaxAttempts, info.LastError)
				}
				conserved(t, env, topic)
				a := st.next()
				a.want(t, theKey, "new", 1)
				sameTime(t, "effect time", a.EffectTime, due)
				a.end(nil)
				awaitGone(t, q, topic, theKey)
				conserved(t, env, topic)
			})
		})
	}
}

// The id is free the moment its event is gone, whatever took it.
func TestKeyIsFreeAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{
			MaxAttempts: 1,
			PersistFn:   func(context.Context, *dueq.Event, error) error { return nil },
		})
		st := newStage(t)
		subscribe(t, q, topic, st)
		for _, end := range []error{nil, errBroken} { // acked, persisted
			publishKey(t, q, "x", time.Now(), dueq.KeyReject)
			st.next().end(end)
			awaitGone(t, q, topic, theKey)
		}
		for range 2 {
			publishKey(t, q, "x", time.Now().Add(time.Hour), dueq.KeyReject)
			if err := q.Cancel(t.Context(), topic, theKey); err != nil {
				t.Fatal(err)
			}
		}
		publishKey(t, q, "last", time.Now(), dueq.KeyReject)
		a := st.next()
		a.want(t, theKey, "last", 1)
		a.end(nil)
		awaitGone(t, q, topic, theKey)
		conserved(t, env, topic)
	})
}

// What ran before the publish must run again after it: a handler that had
// succeeded earlier in the same event has not seen what was published since.
func TestKeepRunsHandlersThatHadSucceeded(t *testing.T) {
	for name, publishAt := range map[string]string{
		"while the other fails":    "handled",
		"while the retry waits":    "scheduled",
		"while the retry is ready": "ready",
		"while a dead process has": "dead process",
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				never := func(int, error) time.Duration { return time.Hour }
				first := newQueue(t, env, dueq.Options{Backoff: never})
				a, b := newStage(t), newStage(t)
				subscribe(t, first, topic, a, b)
				publishKey(t, first, "old", time.Now(), dueq.KeyKeep)
				a.next().end(nil)
				failing := b.next()
				if publishAt == "handled" {
					publishKey(t, first, "old", time.Now(), dueq.KeyKeep)
				}
				failing.end(errBroken)
				awaitState(t, first, topic, theKey, dueq.StateScheduled)
				shutDown(t, first)

				q := newQueue(t, env, dueq.Options{})
				switch publishAt {
				case "scheduled":
					publishKey(t, q, "old", time.Now(), dueq.KeyKeep)
				case "ready", "dead process":
					reschedule(t, q, theKey, past())
					carry(t, env)
					awaitState(t, q, topic, theKey, dueq.StateReady)
					if publishAt == "dead process" {
						ghost(t, env)
					}
					publishKey(t, q, "old", time.Now(), dueq.KeyKeep)
				}
				if get(t, q, topic, theKey).State == dueq.StateScheduled {
					reschedule(t, q, theKey, time.Now())
				}
				subscribe(t, q, topic, a, b)
				a.next().end(nil)
				b.next().end(nil)
				awaitGone(t, q, topic, theKey)
				a.none()
				b.none()
				conserved(t, env, topic)
			})
		})
	}
}

// carry moves what is due to ready without claiming it.
func carry(t *testing.T, env *redistest.Env) {
	t.Helper()
	lane := key.NewLane(env.Namespace, topic, 0, 1, 16)
	claim := readyqueue.Claim{Session: "carrier", HighWater: 1000, Lease: time.Second}
	for i := range lane.Buckets() {
		claim.Due = append(claim.Due, i)
	}
	if _, err := claim.Run(t.Context(), env.Client, lane); err != nil {
		t.Fatal(err)
	}
}

func reschedule(t *testing.T, q *dueq.Queue, id string, due time.Time) {
	t.Helper()
	if err := q.Reschedule(t.Context(), topic, id, due); err != nil {
		t.Fatalf("reschedule: %v", err)
	}
}

func receiveClosed(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("it never happened")
	}
}

// The flush pattern: a publisher counts up, then publishes the key with KeyKeep.
// After each such publish a run of each handler must begin, so the last one that
// succeeds sees the last count; and no two runs of a handler for one key overlap.
func TestKeepLosesNoFlush(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const keys, publishers, rounds, handlers = 4, 16, 40, 3
		var written [keys]atomic.Int64
		var flushed [handlers][keys]atomic.Int64
		var runs atomic.Int64
		flush := func(h int) dueq.HandlerFunc {
			var running [keys]atomic.Bool
			return func(_ context.Context, e *dueq.Event) error {
				var k int
				if _, err := fmt.Sscan(e.ID, &k); err != nil {
					return err
				}
				if running[k].Swap(true) {
					t.Errorf("handler %d of key %d runs twice at a time", h, k)
				}
				defer running[k].Store(false)
				count := written[k].Load()
				if runs.Add(1)%7 == 0 {
					return errBroken
				}
				flushed[h][k].Store(count)
				return nil
			}
		}
		opts := dueq.Options{Backoff: func(int, error) time.Duration { return time.Millisecond }, MaxAttempts: 1000}
		var each []dueq.Handler
		for h := range handlers {
			each = append(each, flush(h))
		}
		var queues []*dueq.Queue
		for range 2 {
			q := newQueue(t, env, opts)
			subscribe(t, q, topic, each...)
			queues = append(queues, q)
		}
		var wg sync.WaitGroup
		for p := range publishers {
			wg.Go(func() {
				for i := range rounds {
					k := (p + i) % keys
					written[k].Add(1)
					_, err := queues[p%2].PublishEvent(t.Context(), topic, nil, time.Now(),
						dueq.WithID(fmt.Sprint(k)), dueq.WithKeyPolicy(dueq.KeyKeep))
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		awaitEmpty(t, queues[0], topic)
		for k := range keys {
			for h := range handlers {
				if w, f := written[k].Load(), flushed[h][k].Load(); w != f {
					t.Errorf("key %d: the last run of handler %d saw %d of %d", k, h, f, w)
				}
			}
		}
		if s := stats(t, queues[0], topic); s.Published+s.Kept != publishers*rounds {
			t.Errorf("%d published, %d kept, want %d together", s.Published, s.Kept, publishers*rounds)
		}
		conserved(t, env, topic)
	})
}

// Of the versions published with KeyReplace the last one is handled, and none
// before its time.
func TestReplaceLastWins(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const keys, rounds = 8, 60
		var last [keys]atomic.Int64
		var runs atomic.Int64
		handler := dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
			now := time.Now().UnixMicro()
			var k int
			var version, due int64
			if _, err := fmt.Sscan(e.ID+" "+string(e.Body), &k, &version, &due); err != nil {
				return err
			}
			if now < due {
				t.Errorf("version %d of key %d came %d µs early", version, k, due-now)
			}
			if runs.Add(1)%5 == 0 {
				return errBroken
			}
			last[k].Store(version)
			return nil
		})
		opts := dueq.Options{Backoff: noPause}
		var queues []*dueq.Queue
		for range 2 {
			q := newQueue(t, env, opts)
			subscribe(t, q, topic, handler)
			queues = append(queues, q)
		}
		var wg sync.WaitGroup
		for k := range keys {
			wg.Go(func() {
				for version := range rounds {
					due := time.Now().Add(time.Duration(version%7-3) * time.Millisecond)
					_, err := queues[version%2].PublishEvent(t.Context(), topic, fmt.Append(nil, version, " ", due.UnixMicro()), due,
						dueq.WithID(fmt.Sprint(k)), dueq.WithKeyPolicy(dueq.KeyReplace), dueq.WithMaxAttempts(1000))
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		awaitEmpty(t, queues[0], topic)
		for k := range keys {
			if got := last[k].Load(); got != rounds-1 {
				t.Errorf("key %d: version %d was the last of %d", k, got, rounds)
			}
		}
		conserved(t, env, topic)
	})
}

// A handler may publish the key that it handles: a recurring event.
func TestRecurringKey(t *testing.T) {
	for _, policy := range []dueq.KeyPolicy{dueq.KeyKeep, dueq.KeyReplace} {
		t.Run(policy.String(), func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				const rounds = 20
				q := newQueue(t, env, dueq.Options{Fallback: time.Hour})
				runs := make(chan string, 2*rounds)
				subscribe(t, q, topic, dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
					if now := time.Now(); now.Before(e.EffectTime) {
						t.Errorf("came %v early", e.EffectTime.Sub(now))
					}
					if e.Attempt != 1 {
						t.Errorf("attempt %d", e.Attempt)
					}
					runs <- string(e.Body)
					if len(runs) == rounds {
						return nil
					}
					_, err := q.PublishEvent(ctx, topic, fmt.Append(nil, len(runs)), e.EffectTime.Add(3*time.Millisecond),
						dueq.WithID(e.ID), dueq.WithKeyPolicy(policy))
					return err
				}))
				publishKey(t, q, "0", time.Now(), dueq.KeyReject)
				awaitGone(t, q, topic, theKey)
				if len(runs) != rounds {
					t.Fatalf("%d runs, want %d", len(runs), rounds)
				}
				for i := range rounds {
					want := "0"
					if policy == dueq.KeyReplace {
						want = fmt.Sprint(i)
					}
					if body := <-runs; body != want {
						t.Errorf("run %d had body %q, want %q", i, body, want)
					}
				}
				conserved(t, env, topic)
			})
		})
	}
}

// Keys that all publishers use at once: one event each, no more.
func TestRejectLetsOneThrough(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const keys, publishers = 20, 8
		var stored [keys]atomic.Int64
		var wg sync.WaitGroup
		for range publishers {
			q := newQueue(t, env, dueq.Options{})
			wg.Go(func() {
				for k := range keys {
					_, err := q.PublishEvent(t.Context(), topic, nil, time.Now().Add(time.Hour), dueq.WithID(fmt.Sprint(k)))
					switch {
					case err == nil:
						stored[k].Add(1)
					case !errors.Is(err, dueq.ErrDuplicateID):
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for k := range keys {
			if n := stored[k].Load(); n != 1 {
				t.Errorf("key %d was stored %d times", k, n)
			}
		}
		q := newQueue(t, env, dueq.Options{})
		if s := stats(t, q, topic); s.Published != keys || s.Duplicates != keys*(publishers-1) || s.Scheduled != keys {
			t.Errorf("stats %+v", s)
		}
		conserved(t, env, topic)
	})
}
