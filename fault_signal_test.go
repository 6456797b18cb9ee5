package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/pool"
)

// faultClock makes a miniredis's clock run by the given difference from ours.
func faultClock(t *testing.T, env *redistest.Env, off time.Duration) {
	t.Helper()
	env.Mini.SetTime(time.Now().Add(off))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				env.Mini.SetTime(time.Now().Add(off))
			}
		}
	})
	t.Cleanup(wg.Wait)
	t.Cleanup(cancel)
}

// Only the server's clock decides what is due, however far off ours is.
func TestServerClockDecides(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(fmt.Sprint("server ", off), func(t *testing.T) {
			t.Parallel()
			env := redistest.Mini(t)
			faultClock(t, env, off)
			q := newQueue(t, env, dueq.Options{Fallback: 300 * time.Millisecond})
			ran := make(chan time.Duration, 10) // after the event's time, by the server's clock
			failures := 1
			subscribe(t, q, "a", dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
				ran <- faultTime(t, env.Client).Sub(e.EffectTime)
				if string(e.Body) == "retry" && e.Attempt <= failures {
					return dueq.RetryAfter(200*time.Millisecond, errBroken)
				}
				return nil
			}))
			far := publish(t, q, "a", "far", time.Now().Add(off+30*time.Minute))
			publish(t, q, "a", "soon", faultTime(t, env.Client).Add(200*time.Millisecond))
			if late := receive(t, ran); late < 0 {
				t.Errorf("delivered %v early", -late)
			}
			publish(t, q, "a", "now", faultTime(t, env.Client))
			if late := receive(t, ran); late < 0 {
				t.Errorf("delivered %v early", -late)
			}
			publish(t, q, "a", "retry", faultTime(t, env.Client))
			first := receive(t, ran)
			if second := receive(t, ran); second-first < 200*time.Millisecond {
				t.Errorf("retried after %v by the server's clock, want 200ms or more", second-first)
			}
			if info := get(t, q, "a", far); info.State != dueq.StateScheduled {
				t.Errorf("an event due in 30 minutes is %s", info.State)
			}
		})
	}
}

// While the server's clock stands still nothing becomes due.
func TestServerClockStands(t *testing.T) {
	t.Parallel()
	env := redistest.Mini(t)
	start := time.Now().Truncate(time.Second)
	env.Mini.SetTime(start)
	rdb := env.NewClient()
	hook := faultHooked(rdb)
	q := newQueueOn(t, env, rdb, dueq.Options{Fallback: time.Hour})
	got := newStage(t)
	subscribe(t, q, "a", got)

	id := publish(t, q, "a", "1", start.Add(50*time.Millisecond))
	eventually(t, "the process looks for the event several times", func() bool { return hook.count("claim") > 5 })
	env.Mini.SetTime(start.Add(49 * time.Millisecond))
	seen := hook.count("claim")
	eventually(t, "the process looks again", func() bool { return hook.count("claim") > seen+3 })
	got.none()
	env.Mini.SetTime(start.Add(50 * time.Millisecond))
	a := got.next()
	a.want(t, id, "1", 1)
	a.end(nil)
	awaitEmpty(t, q, "a")
}

// When the server's clock jumps, or ours has stood still, what became due by it
// is delivered within about the fallback interval.
func TestServerClockJumps(t *testing.T) {
	t.Parallel()
	env := redistest.Mini(t)
	start := time.Now().Truncate(time.Second)
	env.Mini.SetTime(start)
	rdb := env.NewClient()
	hook := faultHooked(rdb)
	q := newQueueOn(t, env, rdb, dueq.Options{Fallback: 300 * time.Millisecond})
	got := newStage(t)
	subscribe(t, q, "a", got)
	far := publish(t, q, "a", "far", start.Add(2*time.Hour))
	id := publish(t, q, "a", "1", start.Add(time.Hour))
	eventually(t, "the process has found that it missed nothing", func() bool { return hook.count("exists") > 1 })
	claims := hook.count("claim")
	env.Mini.SetTime(start.Add(time.Hour))
	a := got.next()
	a.want(t, id, "1", 1)
	a.end(nil)
	awaitGone(t, q, "a", id)
	awaitState(t, q, "a", far, dueq.StateScheduled)
	got.none()
	if more := hook.count("claim") - claims; more > 5 {
		t.Errorf("%d claims for one event", more)
	}
}

// faultByHand puts an event into the pool without dueq.
func faultByHand(t *testing.T, rdb redis.UniversalClient, l *key.Lane, id string, at time.Time) {
	t.Helper()
	record := pool.Record{EffectTime: at.UnixMilli(), Body: []byte("by hand")}
	text, err := record.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := rdb.HSet(t.Context(), l.Pool, id, text).Err(); err != nil {
		t.Fatal(err)
	}
}

// Whatever signal is lost, the event comes within about the fallback interval.
func TestLostSignals(t *testing.T) {
	t.Parallel()
	const fallback = 300 * time.Millisecond
	for name, c := range map[string]struct {
		attempt int
		put     func(t *testing.T, rdb redis.UniversalClient, l *key.Lane, id string, at time.Time) error
	}{
		"bell of ready": {1, func(t *testing.T, rdb redis.UniversalClient, l *key.Lane, id string, _ time.Time) error {
			return rdb.RPush(t.Context(), l.Ready, id).Err()
		}},
		"alarm of a bucket": {1, func(t *testing.T, rdb redis.UniversalClient, l *key.Lane, id string, at time.Time) error {
			return rdb.ZAdd(t.Context(), l.Bucket(l.Home(id)), redis.Z{Score: float64(at.UnixMilli()), Member: id}).Err()
		}},
		"alarm of a session": {2, func(t *testing.T, rdb redis.UniversalClient, l *key.Lane, id string, at time.Time) error {
			return errors.Join(rdb.SAdd(t.Context(), l.Held("ghost"), id).Err(),
				rdb.ZAdd(t.Context(), l.Sessions, redis.Z{Score: float64(at.UnixMilli()), Member: "ghost"}).Err())
		}},
		"rest of a taken session": {2, func(t *testing.T, rdb redis.UniversalClient, l *key.Lane, id string, _ time.Time) error {
			return errors.Join(rdb.SAdd(t.Context(), l.Held("!ghost"), id).Err(),
				rdb.ZAdd(t.Context(), l.Sessions, redis.Z{Member: "!ghost"}).Err())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				q := newQueue(t, env, dueq.Options{Fallback: fallback})
				got := newStage(t)
				subscribe(t, q, "a", got)
				lane := faultLane(env.Namespace)
				// After a first event all that Subscribe looks at is done with, and the
				// process sleeps.
				publish(t, q, "a", "first", time.Now())
				got.next().end(nil)
				awaitEmpty(t, q, "a")

				for i, wait := range []time.Duration{-time.Second, 100 * time.Millisecond} {
					id := fmt.Sprint("id", i)
					at := faultTime(t, env.Client).Add(wait)
					faultByHand(t, env.Client, lane, id, at)
					start := time.Now()
					if err := c.put(t, env.Client, lane, id, at); err != nil {
						t.Fatal(err)
					}
					a := got.next()
					a.want(t, id, "by hand", c.attempt)
					a.end(nil)
					if took := time.Since(start); took > wait+50*fallback {
						t.Errorf("delivered after %v, the fallback interval is %v", took, fallback)
					}
				}
				awaitEmpty(t, q, "a")
				conserved(t, env, "a")
			})
		})
	}
}

// A bell that is heard by a process that dies before it claims costs no more
// than the fallback interval.
func TestBellHeardByTheDead(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		lane := faultLane(env.Namespace)
		thief, heard := env.NewClient(), make(chan error, 1)
		go func() { heard <- thief.BLPop(context.Background(), patience, lane.Bell).Err() }()
		q := newQueue(t, env, dueq.Options{Fallback: 300 * time.Millisecond})
		got := newStage(t)
		subscribe(t, q, "a", got)
		stolen := false
		for n := 1; !stolen; n++ { // the thief may come late to the first bells
			id := publish(t, q, "a", "x", time.Now().Add(-time.Second))
			a := got.next()
			a.want(t, id, "x", 1)
			a.end(nil)
			select {
			case err := <-heard:
				if err != nil {
					t.Fatal(err)
				}
				stolen = true
			default:
			}
		}
		awaitEmpty(t, q, "a")
	})
}

// A bell that is deleted while all handlers are busy is not missed: who was busy
// looks for more.
func TestBellDeleted(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Concurrency: 1, Fallback: time.Hour})
		got := newStage(t)
		subscribe(t, q, "a", got)
		lane := faultLane(env.Namespace)
		for i := range 20 {
			publish(t, q, "a", fmt.Sprint(i), time.Now().Add(-time.Second))
			if err := env.Client.Del(t.Context(), lane.Bell).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			got.next().end(nil)
		}
		awaitEmpty(t, q, "a")
	})
}

// faultCut makes the server cut all connections of a kind, but for rdb's own.
func faultCut(t *testing.T, rdb redis.UniversalClient, kind string) {
	t.Helper()
	if err := rdb.Do(t.Context(), "CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes").Err(); err != nil {
		t.Fatal(err)
	}
}

// Connections that the server cuts are made anew, and what was said meanwhile is
// found, without the fallback.
func TestConnectionsKilled(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"pubsub", "normal"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			env := server.Env()
			q := newQueue(t, env, dueq.Options{Fallback: time.Hour})
			other := newQueue(t, env, dueq.Options{})
			got := newStage(t)
			subscribe(t, q, "a", got)
			publish(t, other, "a", "first", time.Now())
			got.next().end(nil)
			for i := range 10 {
				faultCut(t, env.Client, kind)
				id, err := other.PublishEvent(t.Context(), "a", nil, time.Now().Add(rand.N(50*time.Millisecond)),
					dueq.WithID(fmt.Sprint(i)))
				if errors.Is(err, dueq.ErrOutcomeUnknown) { // its connection was cut
					id, err = other.PublishEvent(t.Context(), "a", nil, time.Now(), dueq.WithID(fmt.Sprint(i)))
				}
				if err != nil && !errors.Is(err, dueq.ErrDuplicateID) {
					t.Fatal(err)
				}
				a := got.next()
				if err == nil {
					a.want(t, id, "", 1)
				}
				a.end(nil)
			}
			awaitEmpty(t, q, "a")
		})
	}
}

// Connections of all kinds are cut again and again while events are handled.
func TestConnectionsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const n = 1000
	env := redistest.Start(t).Env()
	var mu sync.Mutex
	ran := map[string]int{}
	for range 2 {
		q := newQueue(t, env, dueq.Options{Lease: holds, Fallback: 500 * time.Millisecond, Concurrency: 8, MaxAttempts: 100})
		subscribe(t, q, "a", dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
			mu.Lock()
			defer mu.Unlock()
			ran[e.ID]++
			return nil
		}))
	}
	q := newQueue(t, env, dueq.Options{})
	ids, err := q.PublishEvents(t.Context(), "a", faultEvents(n, faultTime(t, env.Client), time.Second))
	if err != nil {
		t.Fatal(err)
	}
	lane := faultLane(env.Namespace)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; env.Client.HLen(t.Context(), lane.Pool).Val() > 0 && i < 200; i++ {
		faultCut(t, env.Client, []string{"normal", "pubsub"}[i%2])
		conserved(t, env, "a")
		<-tick.C
	}
	faultEmpty(t, env)
	mu.Lock()
	defer mu.Unlock()
	repeated := 0
	for _, id := range ids {
		if ran[id] == 0 {
			t.Errorf("id %s never ran", id)
		}
		repeated += ran[id] - 1
	}
	if repeated > 0 { // no process was silent for a lease
		t.Errorf("%d runs were repeated", repeated)
	}
}
