package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

// kill publishes an event and has it die.
func kill(t *testing.T, q *dueq.Queue, st *stage, cause string, opts ...dueq.PublishOption) (id string) {
	t.Helper()
	id = publish(t, q, topic, "x", past(), opts...)
	st.next().end(dueq.SkipRetry(errors.New(cause)))
	awaitState(t, q, topic, id, dueq.StateDead)
	return id
}

func requeue(t *testing.T, q *dueq.Queue, f dueq.Filter, at time.Time, want int) {
	t.Helper()
	if n, err := q.Requeue(t.Context(), topic, f, at); n != want || err != nil {
		t.Errorf("Requeue %+v = %d, %v; want %d", f, n, err, want)
	}
}

// What is dead and meant starts anew, in every lane and whatever process's
// bucket count; the rest stays.
func TestRequeue(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q, other := newQueue(t, env, dueq.Options{Buckets: 7}), newQueue(t, env, dueq.Options{Partitions: 3, Buckets: 5})
		st, atOther := newStage(t), newStage(t)
		subscribe(t, q, topic, st)
		first := kill(t, q, st, "no route", dueq.WithID("first"))
		second := kill(t, q, st, "refused", dueq.WithID("second"))
		third := kill(t, q, st, "no route", dueq.WithID("third"))
		requeue(t, q, dueq.Filter{Error: "nothing like it"}, time.Now(), 0)
		requeue(t, q, dueq.Filter{Until: get(t, q, topic, first).DiedAt}, time.Now(), 0)
		later := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		requeue(t, q, dueq.Filter{Error: "no route", IDPrefix: "f"}, later, 1)
		if e := get(t, q, topic, first); e.State != dueq.StateScheduled || !e.Due.Equal(later) || !e.EffectTime.Equal(later) || e.Attempts != 0 || e.LastError != "" {
			t.Errorf("requeued %+v", e)
		}
		requeue(t, q, dueq.Filter{}, time.Now(), 2)
		for range 2 {
			a := st.next()
			if a.ID != second && a.ID != third || a.Attempt != 1 || string(a.Body) != "x" {
				t.Errorf("delivered %+v", a.Event)
			}
			a.end(nil)
		}
		awaitGone(t, q, topic, second)
		if s := stats(t, q, topic); s.Rescheduled != 3 || s.Dead != 0 || s.Scheduled != 1 {
			t.Errorf("stats %+v", s)
		}
		shutDown(t, q)

		subscribe(t, other, topic, atOther)
		var ids []string
		for range 9 {
			ids = append(ids, publish(t, other, topic, "x", past()))
			atOther.next().end(dueq.SkipRetry(errBroken))
		}
		eventually(t, "nine are dead", func() bool { return stats(t, other, topic).Dead == 9 })
		afresh := newQueue(t, env, dueq.Options{Buckets: 11})
		requeue(t, afresh, dueq.Filter{Since: past()}, time.Now(), 9)
		for range 9 {
			a := atOther.next()
			if !slices.Contains(ids, a.ID) {
				t.Errorf("delivered %+v", a.Event)
			}
			a.end(nil)
		}
		eventually(t, "all handled", func() bool { return stats(t, other, topic).Acked == 10+1 })
		conserved(t, env, topic)
	})
}

// One event is requeued if it is dead, and stays as it is if not, wherever it lies.
func TestRequeueEvent(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q, st := newQueue(t, env, dueq.Options{Concurrency: 1}), newStage(t)
		operator := newQueue(t, env, dueq.Options{Partitions: 3, Buckets: 5})
		subscribe(t, q, topic, st)
		dead := kill(t, q, st, "no route")
		leased := publish(t, q, topic, "x", past())
		held := st.next()
		pause(t, q)
		ready := publish(t, q, topic, "x", past())
		due := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		scheduled := publish(t, q, topic, "x", due)
		refused := func(id, state string) {
			t.Helper()
			err := operator.RequeueEvent(t.Context(), topic, id, time.Now())
			if !errors.Is(err, dueq.ErrNotDead) || !strings.HasSuffix(err.Error(), "is not dead but "+state) {
				t.Errorf("requeue of what is %s: %v", state, err)
			}
		}
		refused(leased, "leased")
		refused(ready, "ready")
		refused(scheduled, "scheduled")
		if e := get(t, q, topic, scheduled); !e.Due.Equal(due) || !e.EffectTime.Equal(due) {
			t.Errorf("it was moved to %v", e.Due)
		}
		if err := operator.RequeueEvent(t.Context(), topic, "nobody", due); !errors.Is(err, dueq.ErrNotFound) {
			t.Errorf("no event: %v", err)
		}
		if err := operator.RequeueEvent(t.Context(), topic, dead, time.Time{}); !errors.Is(err, dueq.ErrEventInvalid) {
			t.Errorf("no time: %v", err)
		}

		// Of many who requeue it at once, one does.
		const operators = 20
		errs := make([]error, operators)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				errs[i] = operator.RequeueEvent(t.Context(), topic, dead, due.Add(time.Duration(i)*time.Minute))
			})
		}
		all.Wait()
		won := slices.Index(errs, nil)
		for i, err := range errs {
			if (err == nil) != (i == won) || err != nil && !errors.Is(err, dueq.ErrNotDead) {
				t.Errorf("operator %d: %v; %d has requeued it", i, err, won)
			}
		}
		e := get(t, q, topic, dead)
		if want := due.Add(time.Duration(won) * time.Minute); e.State != dueq.StateScheduled || !e.Due.Equal(want) || e.Attempts != 0 || e.LastError != "" {
			t.Errorf("requeued %+v, want it due %v", e, want)
		}
		if n := operator.Metrics().Topics[topic].Rescheduled; n != 1 || stats(t, q, topic).Rescheduled != 1 {
			t.Errorf("%d counted, want 1; stats %+v", n, stats(t, q, topic))
		}
		held.end(nil)
		awaitGone(t, q, topic, leased)
		conserved(t, env, topic)
	})
}

// Many are requeued in steps, large ones in more of them.
func TestRequeueMany(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const small, large = 1700, 12
		q := newQueue(t, env, dueq.Options{})
		publishMany(t, q, small, time.Now().Add(time.Hour))
		for range large {
			publish(t, q, topic, string(make([]byte, 1<<20)), time.Now().Add(time.Hour))
		}
		buryAll(t, env)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if n, err := q.Requeue(ctx, topic, dueq.Filter{}, past()); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %d, %v", n, err)
		}
		requeue(t, q, dueq.Filter{}, time.Now().Add(time.Hour), small+large)
		conserved(t, env, topic)
		if s := stats(t, q, topic); s.Scheduled != small+large || s.Dead != 0 || s.Rescheduled != small+large {
			t.Errorf("stats %+v", s)
		}
		if report, err := q.Check(t.Context(), topic); err != nil || len(report.Findings) != 0 {
			t.Errorf("check: %+v, %v", report, err)
		}
	})
}

// buryAll moves all that is scheduled to dead.
func buryAll(t *testing.T, env *redistest.Env) {
	t.Helper()
	lane := key.NewLane(env.Namespace, topic, 0, 1, 16)
	names := []string{lane.Dead}
	for i := range lane.Buckets() {
		names = append(names, lane.Bucket(i))
	}
	if err := env.Client.Eval(t.Context(), `
		for i = 2, #KEYS do
			for _, id in ipairs(redis.call('ZRANGE', KEYS[i], 0, -1)) do redis.call('ZADD', KEYS[1], 1732184350000 + i, id) end
			redis.call('DEL', KEYS[i])
		end`, names).Err(); err != nil && err.Error() != "redis: nil" {
		t.Fatal(err)
	}
}

// A step of a requeue has happened or not; which it was is said.
func TestRequeueLostReply(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		rdb := env.NewClient()
		hook := faultHooked(rdb)
		q := newQueueOn(t, env, rdb, dueq.Options{})
		publishMany(t, q, 3, time.Now().Add(time.Hour))
		buryAll(t, env)
		hook.loseReplies("publish", 1) // so it names all that begin with the pool
		if n, err := q.Requeue(t.Context(), topic, dueq.Filter{}, time.Now()); n != 0 || !errors.Is(err, dueq.ErrOutcomeUnknown) {
			t.Errorf("%d, %v", n, err)
		}
		requeue(t, q, dueq.Filter{}, time.Now(), 0)
		if s := stats(t, q, topic); s.Scheduled != 3 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestPurgeStates(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Partitions: 2})
		want := func(n int, err error, wanted, scheduled, ready, dead int) {
			t.Helper()
			s := stats(t, q, topic)
			if n != wanted || err != nil || s.Scheduled != scheduled || s.Ready != ready || s.Dead != dead {
				t.Errorf("purged %d, %v; left %d scheduled, %d ready, %d dead; want %d; %d, %d, %d",
					n, err, s.Scheduled, s.Ready, s.Dead, wanted, scheduled, ready, dead)
			}
			conserved(t, env, topic)
		}
		lay := func() {
			st := newStage(t)
			dying := newQueue(t, env, dueq.Options{Partitions: 2})
			subscribe(t, dying, topic, st)
			for range 4 {
				publish(t, q, topic, "x", past())
				st.next().end(dueq.SkipRetry(errBroken))
			}
			eventually(t, "four are dead", func() bool { return stats(t, q, topic).Dead == 4 })
			shutDown(t, dying)
			publishMany(t, q, 600, time.Now().Add(time.Hour))
			publishMany(t, q, 7, past())
		}
		purge := func(states ...dueq.State) (int, error) { return q.Purge(t.Context(), topic, states...) }
		lay()
		n, err := purge(dueq.StateReady)
		want(n, err, 7, 600, 0, 4)
		n, err = purge(dueq.StateDead)
		want(n, err, 4, 600, 0, 0)
		n, err = purge(dueq.StateScheduled)
		want(n, err, 600, 0, 0, 0)
		lay()
		n, err = purge(dueq.StateDead, dueq.StateScheduled, dueq.StateDead)
		want(n, err, 604, 0, 7, 0)
		n, err = purge()
		want(n, err, 7, 0, 0, 0)
	})
}

func TestForecast(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Buckets: 300})
		three := newQueue(t, env, dueq.Options{Partitions: 3})
		want := make([]int, 100)
		ahead := make([]time.Duration, len(want))
		for i := range ahead {
			ahead[i] = time.Duration(i+1) * time.Hour
			for n := range i % 3 {
				publish(t, []*dueq.Queue{q, three}[n], topic, "x", time.Now().Add(ahead[i]-time.Minute))
				want[i]++
			}
		}
		for _, some := range []int{1, 2, len(ahead)} {
			got, err := three.Forecast(t.Context(), topic, ahead[:some]...)
			if err != nil || !slices.Equal(got, want[:some]) {
				t.Errorf("%d ahead: %v, %v, want %v", some, got, err, want[:some])
			}
		}
		publish(t, q, topic, "x", time.Now().Add(30*time.Second))
		if got, err := q.Forecast(t.Context(), topic, time.Minute, 1000*time.Hour); err != nil || fmt.Sprint(got) != "[1 99]" {
			t.Errorf("%v, %v", got, err)
		}
		if got, err := q.Forecast(t.Context(), "never used", time.Second); err != nil || fmt.Sprint(got) != "[0]" {
			t.Errorf("an unused topic: %v, %v", got, err)
		}
	})
}
