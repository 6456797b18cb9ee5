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

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// never is a backoff that tests do not wait for.
func never(int, error) time.Duration { return time.Hour }

// noPause is a backoff of none.
func noPause(int, error) time.Duration { return 0 }

func TestCancel(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Backoff: never})
		cancelled := 0
		cancel := func(id string) {
			t.Helper()
			if err := q.Cancel(t.Context(), topic, id); err != nil {
				t.Errorf("cancel: %v", err)
			}
			if err := q.Cancel(t.Context(), topic, id); !errors.Is(err, dueq.ErrNotFound) {
				t.Errorf("second cancel = %v, want ErrNotFound", err)
			}
			if _, err := q.Get(t.Context(), topic, id); !errors.Is(err, dueq.ErrNotFound) {
				t.Errorf("get = %v, want ErrNotFound", err)
			}
			cancelled++
			if s := stats(t, q, topic); s.Cancelled != cancelled {
				t.Errorf("%d counted, want %d", s.Cancelled, cancelled)
			}
			conserved(t, env, topic)
		}
		if err := q.Cancel(t.Context(), topic, "no such id"); !errors.Is(err, dueq.ErrNotFound) {
			t.Errorf("cancel = %v, want ErrNotFound", err)
		}
		cancel(publish(t, q, topic, "scheduled", time.Now().Add(time.Hour)))
		cancel(publish(t, q, topic, "ready", past()))

		st := newStage(t)
		subscribe(t, q, topic, st)
		id := publish(t, q, topic, "leased", past())
		a := st.next()
		if err := q.Cancel(t.Context(), topic, id); !errors.Is(err, dueq.ErrLeased) {
			t.Errorf("cancel = %v, want ErrLeased", err)
		}
		a.end(errBroken)
		awaitState(t, q, topic, id, dueq.StateScheduled)
		cancel(id)

		id = publish(t, q, topic, "dead", past(), dueq.WithMaxAttempts(1))
		st.next().end(errBroken)
		awaitState(t, q, topic, id, dueq.StateDead)
		cancel(id)
		st.none()
		if s := stats(t, q, topic); s.Scheduled+s.Ready+s.Leased+s.Dead != 0 {
			t.Errorf("left over: %+v", s)
		}
	})
}

func TestRescheduleEarlier(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Fallback: time.Hour}) // nothing but the alarm wakes it
		st := newStage(t)
		subscribe(t, q, topic, st)
		for _, d := range []time.Duration{-time.Hour, 0, 50 * time.Millisecond} {
			id := publish(t, q, topic, "x", time.Now().Add(time.Hour))
			due := time.Now().Add(d)
			reschedule(t, q, id, due)
			a := st.next()
			a.want(t, id, "x", 1)
			sameTime(t, "effect time", a.EffectTime, due)
			a.notBefore(t, due)
			a.end(nil)
			awaitGone(t, q, topic, id)
		}
		conserved(t, env, topic)
	})
}

// 1970 is as good a past as any: a score of 0 is a time, too.
func TestRescheduleToTheEpoch(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Fallback: time.Hour})
		st := newStage(t)
		subscribe(t, q, topic, st)
		for _, due := range []time.Time{time.Unix(0, 0), time.Unix(0, -1), time.Unix(-1, 0), time.Unix(-1<<40, 0)} {
			id := publish(t, q, topic, "x", time.Now().Add(time.Hour))
			reschedule(t, q, id, due)
			a := st.next()
			a.want(t, id, "x", 1)
			a.end(nil)
			awaitGone(t, q, topic, id)
		}
	})
}

func TestRescheduleLater(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Fallback: time.Hour})
		st := newStage(t)
		subscribe(t, q, topic, st)
		soon := time.Now().Add(3 * time.Second) // long enough to be rescheduled before
		id := publish(t, q, topic, "x", soon)
		due := soon.Add(200 * time.Millisecond)
		reschedule(t, q, id, due)
		info := get(t, q, topic, id)
		sameTime(t, "due", info.Due, due)
		sameTime(t, "effect time", info.EffectTime, due)
		a := st.next()
		a.want(t, id, "x", 1)
		a.notBefore(t, due)
		a.end(nil)
		awaitGone(t, q, topic, id)
	})
}

func TestRescheduleInEachState(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Backoff: never})
		hour := time.Now().Add(time.Hour)
		if err := q.Reschedule(t.Context(), topic, "no such id", hour); !errors.Is(err, dueq.ErrNotFound) {
			t.Errorf("reschedule = %v, want ErrNotFound", err)
		}
		ready := publish(t, q, topic, "ready", past())
		reschedule(t, q, ready, hour)
		sameTime(t, "due", awaitState(t, q, topic, ready, dueq.StateScheduled).Due, hour)
		conserved(t, env, topic)

		st := newStage(t)
		subscribe(t, q, topic, st)
		id := publish(t, q, topic, "x", past(), dueq.WithMaxAttempts(2))
		a := st.next()
		if err := q.Reschedule(t.Context(), topic, id, hour); !errors.Is(err, dueq.ErrLeased) {
			t.Errorf("reschedule = %v, want ErrLeased", err)
		}
		a.end(errBroken)
		awaitState(t, q, topic, id, dueq.StateScheduled)
		reschedule(t, q, id, past()) // the retry, brought forward
		a = st.next()
		a.want(t, id, "x", 2)
		a.end(errBroken)
		if info := awaitState(t, q, topic, id, dueq.StateDead); info.Attempts != 2 || info.LastError != errBroken.Error() {
			t.Errorf("died after %d attempts of %q", info.Attempts, info.LastError)
		}
		reschedule(t, q, id, past()) // the dead start anew
		a = st.next()
		a.want(t, id, "x", 1)
		a.end(nil)
		awaitGone(t, q, topic, id)
		conserved(t, env, topic)
	})
}

func TestGet(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Backoff: never})
		if info, err := q.Get(t.Context(), topic, "no such id"); !errors.Is(err, dueq.ErrNotFound) || info != nil {
			t.Errorf("get = %v, %v; want ErrNotFound", info, err)
		}
		due := time.Now().Add(time.Hour)
		body := "binary \x00\xff\n{\"v\":2}\n"
		id := publish(t, q, topic, body, due, dueq.WithMaxAttempts(2), dueq.WithMetadata(map[string]string{"a": "ä\n\"<"}))
		check := func(state dueq.State, effect, at time.Time, attempts int, cause string) {
			t.Helper()
			info := awaitState(t, q, topic, id, state)
			if info.ID != id || info.Topic != topic || string(info.Body) != body || info.MaxAttempts != 2 ||
				len(info.Metadata) != 1 || info.Metadata["a"] != "ä\n\"<" {
				t.Errorf("%s: %+v", state, info)
			}
			if info.Attempts != attempts || info.LastError != cause {
				t.Errorf("%s: %d attempts, last error %q; want %d, %q", state, info.Attempts, info.LastError, attempts, cause)
			}
			sameTime(t, string(state)+": effect time", info.EffectTime, effect)
			if info.Due.IsZero() != (state != dueq.StateScheduled) || info.DiedAt.IsZero() != (state != dueq.StateDead) {
				t.Errorf("%s: due %v, died at %v", state, info.Due, info.DiedAt)
			}
			if state == dueq.StateScheduled && info.Due.Before(at) || state == dueq.StateDead && info.DiedAt.Before(at) {
				t.Errorf("%s: due %v, died at %v; want not before %v", state, info.Due, info.DiedAt, at)
			}
		}
		check(dueq.StateScheduled, due, due, 0, "")
		due = past()
		reschedule(t, q, id, due)
		carry(t, env)
		check(dueq.StateReady, due, time.Time{}, 0, "")

		st := newStage(t)
		subscribe(t, q, topic, st)
		a := st.next()
		check(dueq.StateLeased, due, time.Time{}, 0, "")
		retry := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		a.end(fmt.Errorf("first: %w", errBroken))
		check(dueq.StateScheduled, due, retry, 1, "first: broken")
		due = past()
		reschedule(t, q, id, due)
		died := time.Now().Truncate(time.Millisecond)
		st.next().end(errBroken)
		check(dueq.StateDead, due, died, 2, "broken")
	})
}

func TestLastErrorIsBounded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{MaxAttempts: 1})
		subscribe(t, q, topic, dueq.HandlerFunc(func(context.Context, *dueq.Event) error {
			return errors.New(strings.Repeat("ä|", 5000))
		}))
		id := publish(t, q, topic, "x", past())
		cause := awaitState(t, q, topic, id, dueq.StateDead).LastError
		if len(cause) < 4000 || len(cause) > 4096 || !strings.HasPrefix(cause, "ä|ä|") {
			t.Errorf("last error of %d bytes: %.20q…", len(cause), cause)
		}
	})
}

func TestStats(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Backoff: never})
		want := dueq.Stats{}
		check := func(what string) {
			t.Helper()
			eventually(t, what, func() bool {
				s := stats(t, q, topic)
				want.OldestDue, want.Lateness = s.OldestDue, s.Lateness // which other tests look at
				return s == want
			})
			conserved(t, env, topic)
		}
		check("nothing")
		hour := time.Now().Add(time.Hour)
		scheduled := publish(t, q, topic, "x", hour, dueq.WithID(theKey))
		dying := publish(t, q, topic, "x", past(), dueq.WithMaxAttempts(2))
		cancelled := publish(t, q, topic, "x", past())
		want.Published, want.Scheduled, want.Ready = 3, 1, 2
		check("published")

		rejected(t, q)
		publishKey(t, q, "kept out", hour, dueq.KeyKeep)
		publishKey(t, q, "new", hour, dueq.KeyReplace)
		want.Duplicates, want.Kept, want.Published = 2, 1, 4
		check("keys")

		if err := q.Cancel(t.Context(), topic, cancelled); err != nil {
			t.Fatal(err)
		}
		reschedule(t, q, scheduled, hour.Add(time.Hour))
		want.Cancelled, want.Rescheduled, want.Ready = 1, 1, 1
		check("moved")

		st := newStage(t)
		subscribe(t, q, topic, st)
		a := st.next()
		want.Ready, want.Leased, want.Delivered = 0, 1, 1
		check("delivered")
		a.end(errBroken)
		want.Leased, want.Scheduled, want.Retried = 0, 2, 1
		check("retried")
		reschedule(t, q, dying, past())
		st.next().end(errBroken)
		want.Scheduled, want.Dead, want.Rescheduled, want.Delivered, want.Buried = 1, 1, 2, 2, 1
		check("buried")
		reschedule(t, q, scheduled, past())
		st.next().end(nil)
		want.Scheduled, want.Rescheduled, want.Delivered, want.Acked = 0, 3, 3, 1
		check("acked")
	})
}

// Every lease that was given out ended in one way, or has not ended.
func TestStatsAddUp(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Backoff: noPause})
		check := func(what string) {
			t.Helper()
			eventually(t, what, func() bool {
				s := stats(t, q, topic)
				return s.Delivered == s.Acked+s.Retried+s.Released+s.Expired+s.Buried+s.Leased
			})
		}
		publishKey(t, q, "x", past(), dueq.KeyReject)
		ghost(t, env)
		st := newStage(t)
		subscribe(t, q, topic, st)
		a := st.next()
		check("expired")
		for _, end := range []error{nil, errBroken, dueq.SkipRetry(errBroken)} {
			for _, policy := range []dueq.KeyPolicy{dueq.KeyKeep, dueq.KeyReplace} {
				publishKey(t, q, "x", past(), policy)
				a.end(end)
				a = st.next()
				check(fmt.Sprintf("%v, then %v", policy, end))
			}
		}
		a.end(nil)
		awaitGone(t, q, topic, theKey)
		check("acked")
	})
}

func TestOldestDue(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		check := func(want time.Time) {
			t.Helper()
			if got := stats(t, q, topic).OldestDue; want.IsZero() != got.IsZero() {
				t.Errorf("oldest due is %v, want %v", got, want)
			} else if !want.IsZero() {
				sameTime(t, "oldest due", got, want)
			}
		}
		check(time.Time{})
		now := time.Now()
		id := publish(t, q, topic, "x", now.Add(time.Hour))
		check(time.Time{})
		reschedule(t, q, id, now.Add(-time.Minute)) // stays in its bucket: nobody carries
		check(now.Add(-time.Minute))
		publish(t, q, topic, "x", now.Add(-time.Second))
		check(now.Add(-time.Minute))
		publish(t, q, topic, "x", now.Add(-time.Hour))
		if err := q.Cancel(t.Context(), topic, id); err != nil {
			t.Fatal(err)
		}
		check(now.Add(-time.Second)) // at the head of ready, where they lie as they came
	})
}

func TestTopics(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		list := func() []string {
			t.Helper()
			names, err := q.Topics(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return names
		}
		if names := list(); len(names) != 0 {
			t.Errorf("topics of a new namespace: %q", names)
		}
		want := []string{"a", "a/", "a/+5", "a/-5", "a/b", "a/1/b", "/", "ä ö", "3", "a:b", "a*b[c]?"}
		for i := range 50 {
			want = append(want, fmt.Sprint("topic ", i))
		}
		split := newQueue(t, env, dueq.Options{Partitions: 3})
		for _, name := range want {
			publish(t, q, name, "x", time.Now().Add(time.Hour))
			if strings.HasPrefix(name, "topic") {
				publish(t, split, name, "x", time.Now().Add(time.Hour))
			}
		}
		subscribe(t, q, "subscribed", seen(nil))
		want = append(want, "subscribed")
		slices.Sort(want)
		eventually(t, "subscribed", func() bool { return slices.Contains(list(), "subscribed") })
		if got := list(); !slices.Equal(got, want) {
			t.Errorf("topics %q, want %q", got, want)
		}
		for name, n := range map[string]int{"a": 1, "a/+5": 1, "topic 7": 2, "subscribed": 0, "no such topic": 0} {
			if s := stats(t, q, name); s.Scheduled != n {
				t.Errorf("topic %q has %d events, want %d", name, s.Scheduled, n)
			}
		}
	})
}

// Without Redis every call says so, and does not blame the event.
func TestLookupWithoutRedis(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		var down atomic.Bool
		rdb := env.NewClient()
		rdb.AddHook(&hook{
			command: func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
				if down.Load() {
					return fail([]redis.Cmder{cmd}, refusal("LOADING"))
				}
				return next(ctx, cmd)
			},
			pipeline: func(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
				if down.Load() {
					return fail(cmds, refusal("LOADING"))
				}
				return next(ctx, cmds)
			},
		})
		q := newQueueOn(t, env, rdb, dueq.Options{})
		id := publish(t, q, topic, "x", time.Now().Add(time.Hour))
		down.Store(true)
		_, getErr := q.Get(t.Context(), topic, id)
		_, statsErr := q.Stats(t.Context(), topic)
		_, topicsErr := q.Topics(t.Context())
		_, publishErr := q.PublishEvent(t.Context(), "new", nil, past())
		for what, err := range map[string]error{
			"get": getErr, "stats": statsErr, "topics": topicsErr, "publish": publishErr,
			"cancel":     q.Cancel(t.Context(), topic, id),
			"reschedule": q.Reschedule(t.Context(), topic, id, past()),
		} {
			if !errors.Is(err, refusal("LOADING")) || errors.Is(err, dueq.ErrNotFound) || errors.Is(err, dueq.ErrOutcomeUnknown) {
				t.Errorf("%s = %v", what, err)
			}
		}
		down.Store(false)
		if info := get(t, q, topic, id); info.State != dueq.StateScheduled {
			t.Errorf("state %s", info.State)
		}
		publish(t, q, "new", "x", past()) // a failure to register a topic is not for ever
	})
}

// All calls at once, ShutDown among them: they succeed or say why not.
func TestAllCallsAtOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Backoff: noPause, MaxAttempts: 2, Partitions: 2})
		publish(t, newQueue(t, env, dueq.Options{Buckets: 3}), topic, "x", past())
		var handled atomic.Int64
		handler := dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
			if handled.Add(1)%10 == 0 {
				return errBroken
			}
			return nil
		})
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(g), 0))
				for range 1000 {
					id, due := fmt.Sprint(rnd.IntN(20)), time.Now().Add(time.Duration(rnd.IntN(3)-1)*time.Millisecond)
					var err error
					switch rnd.IntN(8) {
					case 0:
						err = q.Cancel(t.Context(), topic, id)
					case 1:
						err = q.Reschedule(t.Context(), topic, id, due)
					case 2:
						_, err = q.Get(t.Context(), topic, id)
					case 3:
						_, err = q.Stats(t.Context(), topic)
					case 4:
						_, err = q.Topics(t.Context())
					case 5:
						err = q.Subscribe(topic, handler)
					default:
						_, err = q.PublishEvent(t.Context(), topic, nil, due, dueq.WithID(id), dueq.WithKeyPolicy(dueq.KeyPolicy(rnd.IntN(3))))
					}
					switch {
					case errors.Is(err, dueq.ErrShutDown):
						return
					case err == nil, errors.Is(err, dueq.ErrNotFound), errors.Is(err, dueq.ErrLeased),
						errors.Is(err, dueq.ErrDuplicateID), errors.Is(err, dueq.ErrSubscription):
					default:
						t.Error(err)
						return
					}
				}
			})
		}
		eventually(t, "a few events handled", func() bool { return handled.Load() > 200 })
		shutDown(t, q)
		wg.Wait()
		other := newQueue(t, env, dueq.Options{Partitions: 2})
		if s := stats(t, other, topic); s.Leased != 0 {
			t.Errorf("%d are leased after ShutDown", s.Leased)
		}
		conserved(t, env, topic)
	})
}
