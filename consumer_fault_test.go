package dueq_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// A process that is cut off for longer than its lease loses what it claimed, and
// is told so.
func TestClaimLeaseLost(t *testing.T) {
	t.Parallel()
	for name, cut := range partitions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				rdb := env.NewClient()
				hook := faultHooked(rdb)
				first := newQueueOn(t, env, rdb, dueq.Options{Lease: 600 * time.Millisecond, Fallback: 300 * time.Millisecond})
				second := newQueue(t, env, dueq.Options{Lease: holds, Fallback: 300 * time.Millisecond})
				atFirst := consume(t, first)
				id := publish(t, second, "a", "x", time.Now())
				lost := claimOne(t, atFirst, time.Hour, id, "x", 1)
				atSecond := consume(t, second)
				heal := cut(hook)
				defer heal()
				again := claimOne(t, atSecond, time.Hour, id, "x", 2)
				receiveClosed(t, lost.Done())
				acked := make(chan error, 1)
				go func() { acked <- lost.Ack(t.Context()) }()
				heal()
				// The first try of the ack may have been stopped on its way: then it is
				// open what became of it.
				if err := receive(t, acked); !errors.Is(err, dueq.ErrLeaseLost) && !errors.Is(err, dueq.ErrOutcomeUnknown) {
					t.Errorf("Ack of what was lost: %v", err)
				}
				if ended(again) {
					t.Error("the second delivery has ended")
				}
				if err := again.Ack(t.Context()); err != nil {
					t.Errorf("Ack of who has it: %v", err)
				}
				shutDown(t, second)
				id = publish(t, first, "a", "y", time.Now())
				if err := claimOne(t, atFirst, time.Hour, id, "y", 1).Ack(t.Context()); err != nil {
					t.Error(err)
				}
				conserved(t, env, "a")
			})
		})
	}
}

// A delivery whose lease is known to be lost is not sent anywhere.
func TestClaimLeaseTaken(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Lease: 300 * time.Millisecond})
		c := consume(t, q)
		id := publish(t, q, "a", "x", time.Now())
		d := claimOne(t, c, time.Hour, id, "x", 1)
		lane := faultLane(env.Namespace)
		if err := env.Client.Del(t.Context(), lane.Sessions).Err(); err != nil {
			t.Fatal(err)
		}
		receiveClosed(t, d.Done()) // the next extension says so
		wantLost(t, d)
	})
}

// When Redis is silent the caller's ctx decides how long to wait; the outcome
// reaches Redis all the same.
func TestClaimSettleUnknown(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		rdb := env.NewClient()
		hook := faultHooked(rdb)
		q := newQueueOn(t, env, rdb, dueq.Options{})
		c := consume(t, q)
		publish(t, q, "a", "x", time.Now())
		d := claim(t, c, 1, time.Hour)[0]
		reached, release := hook.hold("settle")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-reached
			cancel(errBroken)
		}()
		if err := d.Ack(ctx); !errors.Is(err, dueq.ErrOutcomeUnknown) || !errors.Is(err, errBroken) {
			t.Errorf("Ack while Redis is silent: %v", err)
		}
		release()
		awaitEmpty(t, q, "a")

		publish(t, q, "a", "x", time.Now())
		d = claim(t, c, 1, time.Hour)[0]
		hook.loseReplies("settle", 1)
		if err := d.Ack(t.Context()); !errors.Is(err, dueq.ErrOutcomeUnknown) {
			t.Errorf("Ack whose reply was lost: %v", err)
		}
		awaitEmpty(t, q, "a")

		publish(t, q, "a", "x", time.Now())
		d = claim(t, c, 1, time.Hour)[0]
		hook.disconnect()
		acked := make(chan error, 1)
		go func() { acked <- d.Ack(t.Context()) }()
		receiveClosed(t, d.Done())
		hook.connect()
		if err := receive(t, acked); err != nil {
			t.Errorf("Ack that was tried again: %v", err)
		}
		awaitEmpty(t, q, "a")
	})
}

// However many outcomes are in doubt, no look at their events reads many at a time.
func TestClaimManyInDoubt(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const events, most = 300, 64
		rdb := env.NewClient()
		looks := make(chan int, 10*events)
		rdb.AddHook(&hook{command: func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
			if cmd.Name() == "hmget" {
				looks <- len(cmd.Args()) - 2
			}
			return next(ctx, cmd)
		}})
		lost := faultHooked(rdb)
		q := newQueueOn(t, env, rdb, dueq.Options{Lease: time.Minute})
		c := consume(t, q)
		if _, err := q.PublishEvents(t.Context(), "a", faultEvents(events, time.Now().Add(-time.Hour), time.Minute)); err != nil {
			t.Fatal(err)
		}
		var got []*dueq.Delivery
		for len(got) < events {
			got = append(got, claim(t, c, events, time.Hour)...)
		}
		lost.loseReplies("settle", 1_000_000)
		var acks sync.WaitGroup
		for _, d := range got {
			acks.Go(func() {
				if err := d.Ack(t.Context()); !errors.Is(err, dueq.ErrOutcomeUnknown) {
					t.Errorf("Ack whose reply was lost: %v", err)
				}
			})
			receiveClosed(t, d.Done())
		}
		looked := lost.count("sscan")
		lost.loseReplies("claim", 1)
		publish(t, newQueue(t, env, dueq.Options{}), "a", "x", time.Now())
		last := make(chan []*dueq.Delivery, 1)
		go func() {
			got, err := c.Claim(t.Context(), 1, time.Hour)
			if err != nil {
				t.Error(err)
			}
			last <- got
		}()
		eventually(t, "the lost claim was noticed", func() bool { return lost.count("sscan") > looked })
		lost.loseReplies("settle", 0)
		acks.Wait()
		for _, d := range receive(t, last) {
			if err := d.Ack(t.Context()); err != nil {
				t.Error(err)
			}
		}
		awaitEmpty(t, q, "a")
		conserved(t, env, "a")
		if len(looks) == 0 {
			t.Error("nothing was in doubt")
		}
		for len(looks) > 0 {
			if n := <-looks; n > most {
				t.Errorf("%d records were read at a time", n)
			}
		}
	})
}

// A full Redis lets consumers claim and settle, and operators pause, resume,
// requeue and list.
func TestOperateRedisFull(t *testing.T) {
	t.Parallel()
	env := redistest.Start(t, "--maxmemory-policy", "noeviction").Env()
	q := newQueue(t, env, dueq.Options{MaxAttempts: 2, Backoff: noPause})
	c := consume(t, q)
	for range 5 {
		publish(t, q, "a", "x", past())
	}
	if err := env.Client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	var got []*dueq.Delivery
	for len(got) < 5 {
		got = append(got, claim(t, c, 5, time.Minute)...)
	}
	for i, settle := range []func(d *dueq.Delivery) error{
		func(d *dueq.Delivery) error { return d.Ack(t.Context()) },
		func(d *dueq.Delivery) error { return d.Release(t.Context()) },
		func(d *dueq.Delivery) error { return d.Retry(t.Context(), 0, errBroken) },
		func(d *dueq.Delivery) error { return d.Fail(t.Context(), errBroken) },
		func(d *dueq.Delivery) error { return d.Extend(100 * time.Millisecond) },
	} {
		if err := settle(got[i]); err != nil {
			t.Errorf("outcome %d: %v", i, err)
		}
	}
	receiveClosed(t, got[4].Done())
	if err := q.Pause(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if n, err := q.Requeue(t.Context(), "a", dueq.Filter{}, past()); n != 1 || err != nil {
		t.Errorf("requeued %d, %v", n, err)
	}
	eventually(t, "four are ready", func() bool { return stats(t, q, "a").Ready == 4 })
	if page, err := q.List(t.Context(), "a", dueq.Query{State: dueq.StateReady}); err != nil || len(page.Events) != 4 {
		t.Errorf("listed %+v, %v", page, err)
	}
	if list, err := q.Sessions(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("sessions %+v, %v", list, err)
	}
	if err := q.Resume(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	for n := 0; n < 4; {
		for _, d := range claim(t, c, 4, time.Minute) {
			n++
			if err := d.Ack(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	awaitEmpty(t, q, "a")
	conserved(t, env, "a")
}

// ShutDown ends claims that wait, and waits for what was claimed.
func TestClaimShutDown(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		first, second := newQueue(t, env, slowly(1)), newQueue(t, env, slowly(1))
		c := consume(t, first)
		id := publish(t, first, "a", "x", time.Now())
		d := claimOne(t, c, time.Hour, id, "x", 1)
		waiting := make(chan error, 1)
		go func() {
			got, err := c.Claim(t.Context(), 1, time.Hour)
			if got != nil {
				err = errBroken
			}
			waiting <- err
		}()
		shut := shutDownSoon(t, first, time.Hour)
		if err := receive(t, waiting); !errors.Is(err, dueq.ErrShutDown) {
			t.Errorf("a claim that waits at ShutDown: %v", err)
		}
		select {
		case err := <-shut:
			t.Errorf("ShutDown did not wait for what was claimed: %v", err)
		default:
		}
		if err := d.Ack(t.Context()); err != nil {
			t.Errorf("Ack during ShutDown: %v", err)
		}
		if err := receive(t, shut); err != nil {
			t.Errorf("ShutDown: %v", err)
		}
		if _, err := c.Claim(t.Context(), 1, time.Hour); !errors.Is(err, dueq.ErrShutDown) {
			t.Errorf("a claim after ShutDown: %v", err)
		}
		if s := stats(t, second, "a"); s.Acked != 1 {
			t.Errorf("stats %+v", s)
		}
	})
}

// At ShutDown's deadline what was claimed goes back at no cost in attempts, and
// to another process at once.
func TestClaimShutDownDeadline(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		hold := make(chan struct{})
		opts := slowly(1)
		opts.PersistFn = func(ctx context.Context, _ *dueq.Event, _ error) error {
			close(hold)
			<-ctx.Done()
			return context.Cause(ctx)
		}
		first, second := newQueue(t, env, opts), newQueue(t, env, slowly(1))
		c := consume(t, first)
		ids := map[string]bool{publish(t, first, "a", "x", time.Now()): true, publish(t, first, "a", "x", time.Now()): true}
		open, failing := claim(t, c, 1, time.Hour)[0], claim(t, c, 1, time.Hour)[0]
		failed := make(chan error, 1)
		go func() { failed <- failing.Fail(t.Context(), errBroken) }()
		receiveClosed(t, hold)
		elsewhere := consume(t, second)
		if err := receive(t, shutDownSoon(t, first, 50*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ShutDown: %v", err)
		}
		if err := receive(t, failed); !errors.Is(err, dueq.ErrStopping) {
			t.Errorf("Fail that ShutDown cut off: %v", err)
		}
		wantLost(t, open)
		for range 2 {
			d := claim(t, elsewhere, 1, time.Hour)[0]
			if !ids[d.ID] || d.Attempt != 1 {
				t.Errorf("claimed %+v", d.Event)
			}
			delete(ids, d.ID)
			if err := d.Ack(t.Context()); err != nil {
				t.Error(err)
			}
		}
		conserved(t, env, "a")
	})
}

// Two processes that died with an event each, again and again, leave events that
// come apart, and to a consumer too.
func TestClaimSuspects(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Lease: 3 * time.Second})
		lane := faultLane(env.Namespace)
		ids := map[string]int{}
		worn := publish(t, q, "a", "worn", time.Now(), dueq.WithMaxAttempts(3))
		for range 2 {
			ids[publish(t, q, "a", "x", time.Now(), dueq.WithMaxAttempts(4))] = 0
		}
		lost := "|" + "|" + "lease lost: its process was silent for too long"
		env.Client.HSet(t.Context(), lane.Attempts, worn, "3"+lost)
		for id := range ids {
			env.Client.HSet(t.Context(), lane.Attempts, id, "2"+lost)
		}
		c := consume(t, q)
		for range ids {
			got := claim(t, c, 10, time.Hour)
			if len(got) != 1 || got[0].Attempt != 3 {
				t.Errorf("claimed %d, the first %+v", len(got), got[0].Event)
			}
			for _, d := range got {
				if err := d.Ack(t.Context()); err != nil {
					t.Error(err)
				}
				ids[d.ID]++
			}
		}
		for id, n := range ids {
			if n != 1 {
				t.Errorf("event %s came %d times", id, n)
			}
		}
		awaitState(t, q, "a", worn, dueq.StateDead)
		conserved(t, env, "a")
	})
}

// Whatever claimers do, and while replies get lost, no event is lost, and none comes
// again once its Ack has returned nil.
func TestClaimConservation(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const n, claimers = 300, 4
		opts := dueq.Options{MaxAttempts: 1000, Lease: 2 * time.Second, Fallback: 200 * time.Millisecond, Partitions: 2}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var acked sync.Map // ids
		act := func(d *dueq.Delivery) (err error) {
			ctx := context.WithoutCancel(ctx)
			if _, over := acked.Load(d.ID); over && !ended(d) { // one that has waited for too long may have come to others
				t.Errorf("event %s comes again after its ack, with attempt %d", d.ID, d.Attempt)
			}
			switch rand.IntN(12) {
			case 0:
				err = d.Retry(ctx, rand.N(5*time.Millisecond), errBroken)
			case 1:
				err = d.Release(ctx)
			case 2: // nothing: its visibility time passes
			case 3:
				go func() { _ = d.Extend(time.Minute) }()
				_ = d.Release(ctx)
			case 4:
				<-d.Done()
				wantLost(t, d)
			default:
				if err = d.Ack(ctx); err == nil {
					acked.Store(d.ID, true)
				}
			}
			return err
		}
		var wg sync.WaitGroup
		var queues []*dueq.Queue
		for range 2 {
			rdb := env.NewClient()
			hook := faultHooked(rdb)
			q := newQueueOn(t, env, rdb, opts)
			queues = append(queues, q)
			c := consume(t, q)
			for range claimers {
				wg.Go(func() {
					for ctx.Err() == nil {
						got, err := c.Claim(ctx, 1+rand.IntN(20), 100*time.Millisecond)
						if err != nil {
							t.Errorf("Claim: %v", err)
						}
						for _, d := range got {
							if err := act(d); err != nil && !errors.Is(err, dueq.ErrLeaseLost) && !errors.Is(err, dueq.ErrOutcomeUnknown) {
								t.Errorf("settle: %v", err)
							}
						}
					}
				})
			}
			wg.Go(func() {
				tick := time.NewTicker(20 * time.Millisecond)
				defer tick.Stop()
				for range 20 {
					select {
					case <-ctx.Done():
						return
					case <-tick.C:
						hook.loseReplies([]string{"claim", "settle", "extend"}[rand.IntN(3)], 1)
					}
				}
			})
		}
		events := make([]dueq.NewEvent, n)
		now := faultTime(t, env.Client)
		for i := range events {
			events[i].EffectTime = now.Add(time.Duration(i) * time.Millisecond)
		}
		ids, err := queues[0].PublishEvents(t.Context(), "a", events)
		if err != nil {
			t.Fatal(err)
		}
		awaitEmpty(t, queues[0], "a")
		cancel()
		wg.Wait()
		unknown := 0
		for _, id := range ids {
			if _, ok := acked.Load(id); !ok {
				unknown++
			}
		}
		if unknown > 100 { // only an ack whose reply was lost can end an event unheard
			t.Errorf("%d of %d events are gone without an ack", unknown, n)
		}
		t.Logf("of %d acks the reply was lost", unknown)
		conserved(t, env, "a")
	})
}
