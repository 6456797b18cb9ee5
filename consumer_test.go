package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// consume makes the queue a consumer of topic a.
func consume(t *testing.T, q *dueq.Queue) *dueq.Consumer {
	t.Helper()
	c, err := q.Consume("a")
	if err != nil {
		t.Fatalf("consume: %v", err)
	}
	return c
}

// claim claims events of which at least one must come.
func claim(t *testing.T, c *dueq.Consumer, limit int, visibility time.Duration) []*dueq.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := c.Claim(ctx, limit, visibility)
	if err != nil || len(got) == 0 {
		t.Fatalf("claim: %v, %v", got, err)
	}
	return got
}

// claimOne claims one event, which must be this one.
func claimOne(t *testing.T, c *dueq.Consumer, visibility time.Duration, id, body string, attempt int) *dueq.Delivery {
	t.Helper()
	d := claim(t, c, 1, visibility)[0]
	if d.ID != id || string(d.Body) != body || d.Attempt != attempt {
		t.Errorf("claimed id %q, body %q, attempt %d; want %q, %q, %d", d.ID, d.Body, d.Attempt, id, body, attempt)
	}
	return d
}

// ended reports whether a delivery's Done is closed.
func ended(d *dueq.Delivery) bool {
	select {
	case <-d.Done():
		return true
	default:
		return false
	}
}

// wantLost fails the test unless all that can be done with a delivery says that it
// has ended.
func wantLost(t *testing.T, d *dueq.Delivery) {
	t.Helper()
	for name, err := range map[string]error{
		"Ack": d.Ack(t.Context()), "Retry": d.Retry(t.Context(), 0, errBroken), "Fail": d.Fail(t.Context(), errBroken),
		"Release": d.Release(t.Context()), "Extend": d.Extend(time.Minute),
	} {
		if !errors.Is(err, dueq.ErrLeaseLost) {
			t.Errorf("%s of a delivery that has ended: %v", name, err)
		}
	}
	if !ended(d) {
		t.Error("Done is not closed")
	}
}

func TestClaimSettle(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{Backoff: func(attempt int, cause error) time.Duration {
			if attempt != 3 || !errors.Is(cause, errBroken) {
				t.Errorf("Backoff(%d, %v)", attempt, cause)
			}
			return time.Hour
		}})
		c := consume(t, q)
		settled := func(d *dueq.Delivery, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("settle: %v", err)
			}
			wantLost(t, d)
		}
		id := publish(t, q, "a", "x", time.Now(), dueq.WithMetadata(map[string]string{"k": "v"}))
		d := claimOne(t, c, time.Minute, id, "x", 1)
		if d.Metadata["k"] != "v" || d.Topic != "a" || d.MaxAttempts != 10 || ended(d) {
			t.Errorf("claimed %+v", d.Event)
		}
		settled(d, d.Release(t.Context()))
		d = claimOne(t, c, time.Minute, id, "x", 1)
		settled(d, d.Retry(t.Context(), 0, errBroken))
		if info := get(t, q, "a", id); info.Attempts != 1 || info.LastError != errBroken.Error() {
			t.Errorf("after Retry: %+v", info)
		}
		d = claimOne(t, c, time.Minute, id, "x", 2)
		settled(d, d.Retry(t.Context(), 10*time.Millisecond, nil))
		d = claimOne(t, c, time.Minute, id, "x", 3)
		settled(d, d.Retry(t.Context(), -1, errBroken))
		if info := get(t, q, "a", id); info.State != dueq.StateScheduled || time.Until(info.Due) < 30*time.Minute {
			t.Errorf("after Retry with Backoff: %+v", info)
		}
		if err := q.Reschedule(t.Context(), "a", id, time.Now()); err != nil {
			t.Fatal(err)
		}
		d = claimOne(t, c, time.Minute, id, "x", 4)
		settled(d, d.Fail(t.Context(), errBroken))
		if info := get(t, q, "a", id); info.State != dueq.StateDead || info.Attempts != 4 || info.LastError != errBroken.Error() {
			t.Errorf("after Fail: %+v", info)
		}
		id = publish(t, q, "a", "y", time.Now().Add(20*time.Millisecond))
		d = claimOne(t, c, time.Minute, id, "y", 1)
		settled(d, d.Ack(t.Context()))
		if _, err := q.Get(t.Context(), "a", id); !errors.Is(err, dueq.ErrNotFound) {
			t.Errorf("after Ack: %v", err)
		}
		conserved(t, env, "a")
	})
}

// The last attempt that fails hands the event to PersistFn, as Fail does.
func TestClaimPersist(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		persisted := make(chan string, 10)
		q := newQueue(t, env, dueq.Options{MaxAttempts: 2, PersistFn: func(_ context.Context, e *dueq.Event, cause error) error {
			persisted <- fmt.Sprintf("%s, attempt %d: %v", e.Body, e.Attempt, cause)
			if string(e.Body) == "kept" {
				return errors.New("no room")
			}
			return nil
		}})
		c := consume(t, q)
		for body, settle := range map[string]func(*dueq.Delivery) error{
			"x":    func(d *dueq.Delivery) error { return d.Retry(t.Context(), 0, errBroken) },
			"kept": func(d *dueq.Delivery) error { return d.Fail(t.Context(), errBroken) },
		} {
			id := publish(t, q, "a", body, time.Now())
			if d := claim(t, c, 1, time.Minute)[0]; d.Retry(t.Context(), 0, nil) != nil {
				t.Fatal("Retry failed")
			}
			if err := settle(claimOne(t, c, time.Minute, id, body, 2)); err != nil {
				t.Fatal(err)
			}
			if got, want := receive(t, persisted), body+", attempt 2: broken"; got != want {
				t.Errorf("persisted %q, want %q", got, want)
			}
			info, err := q.Get(t.Context(), "a", id)
			if body == "x" && !errors.Is(err, dueq.ErrNotFound) {
				t.Errorf("persisted, and yet: %+v, %v", info, err)
			}
			if body == "kept" && (err != nil || info.State != dueq.StateDead || !strings.Contains(info.LastError, "no room")) {
				t.Errorf("not persisted: %+v, %v", info, err)
			}
		}
	})
}

// What is not settled within the visibility time has failed, and comes again; who
// comes late is told so.
func TestClaimVisibility(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{MaxAttempts: 3})
		c := consume(t, q)
		id := publish(t, q, "a", "x", time.Now())
		first := claimOne(t, c, 100*time.Millisecond, id, "x", 1)
		second := claimOne(t, c, time.Hour, id, "x", 2)
		wantLost(t, first)
		if info := get(t, q, "a", id); info.State != dueq.StateLeased || info.Attempts != 1 || info.LastError != "visibility time of 100ms passed" {
			t.Errorf("after the visibility time: %+v", info)
		}
		if ended(second) {
			t.Error("the second delivery has ended")
		}
		if err := second.Extend(120 * time.Millisecond); err != nil {
			t.Errorf("Extend: %v", err)
		}
		third := claimOne(t, c, 100*time.Millisecond, id, "x", 3)
		wantLost(t, second)
		<-third.Done()
		info := awaitState(t, q, "a", id, dueq.StateDead)
		if info.Attempts != 3 || info.LastError != "visibility time of 100ms passed" {
			t.Errorf("dead as %+v", info)
		}
	})
}

// An extended delivery outlives one that was claimed later.
func TestClaimExtend(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q := newQueue(t, env, dueq.Options{})
		c := consume(t, q)
		publish(t, q, "a", "x", time.Now())
		first := claim(t, c, 1, 2*time.Second)[0]
		if err := first.Extend(time.Hour); err != nil {
			t.Fatal(err)
		}
		publish(t, q, "a", "y", time.Now())
		second := claim(t, c, 1, 2500*time.Millisecond)[0]
		<-second.Done()
		if err := first.Ack(t.Context()); err != nil {
			t.Errorf("Ack of what was extended: %v", err)
		}
	})
}

func TestClaimInvalid(t *testing.T) {
	t.Parallel()
	env := redistest.Mini(t)
	q := newQueue(t, env, dueq.Options{})
	c := consume(t, q)
	for _, in := range []struct {
		limit      int
		visibility time.Duration
		want       string
	}{
		{0, time.Minute, "limit is 0, not from 1 to 500"},
		{-1, time.Minute, "limit is -1, not from 1 to 500"},
		{501, time.Minute, "limit is 501, not from 1 to 500"},
		{1, 0, "visibility time is 0s, not from 100ms to 24h0m0s"},
		{1, 99 * time.Millisecond, "visibility time is 99ms, not from 100ms to 24h0m0s"},
		{1, 24*time.Hour + 1, "visibility time is 24h0m0.000000001s, not from 100ms to 24h0m0s"},
	} {
		got, err := c.Claim(t.Context(), in.limit, in.visibility)
		if want := "dueq: invalid claim: " + in.want; got != nil || !errors.Is(err, dueq.ErrClaimInvalid) || err.Error() != want {
			t.Errorf("Claim(%d, %v) = %v, %v; want %s", in.limit, in.visibility, got, err, want)
		}
	}
	publish(t, q, "a", "x", time.Now())
	d := claim(t, c, 1, time.Hour)[0]
	for _, v := range []time.Duration{-1, 0, 99 * time.Millisecond, 25 * time.Hour} {
		if err := d.Extend(v); !errors.Is(err, dueq.ErrClaimInvalid) {
			t.Errorf("Extend(%v) = %v", v, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Ack(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, dueq.ErrOutcomeUnknown) {
		t.Errorf("Ack with a ctx that has ended: %v", err)
	}
	if err := d.Ack(t.Context()); err != nil {
		t.Errorf("Ack after that: %v", err)
	}
}

func TestConsumeInvalid(t *testing.T) {
	t.Parallel()
	env := redistest.Mini(t)
	q := newQueue(t, env, dueq.Options{})
	consume(t, q)
	subscribe(t, q, "b", make(seen, 1))
	for topic, want := range map[string]error{"": dueq.ErrTopicInvalid, "a{": dueq.ErrTopicInvalid, "a": dueq.ErrSubscription, "b": dueq.ErrSubscription} {
		if c, err := q.Consume(topic); c != nil || !errors.Is(err, want) {
			t.Errorf("Consume(%q) = %v, %v; want %v", topic, c, err, want)
		}
	}
	if err := q.Subscribe("a", make(seen, 1)); !errors.Is(err, dueq.ErrSubscription) {
		t.Errorf("Subscribe to what is consumed: %v", err)
	}
	shutDown(t, q)
	if _, err := q.Consume("c"); !errors.Is(err, dueq.ErrShutDown) {
		t.Errorf("Consume after ShutDown: %v", err)
	}
}

// Many claims of several processes, over several lanes, share out all events: each
// comes once.
func TestClaimCompeting(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const n, claimers = 600, 6
		opts := dueq.Options{Partitions: 3}
		first, second := newQueue(t, env, opts), newQueue(t, env, opts)
		consumers := []*dueq.Consumer{consume(t, first), consume(t, second)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		acked := make(chan string, n)
		var wg sync.WaitGroup
		for _, c := range consumers {
			for i := range claimers {
				wg.Go(func() {
					for ctx.Err() == nil {
						got, err := c.Claim(ctx, 1+5*i, time.Hour)
						if err != nil || len(got) > 1+5*i {
							t.Errorf("claimed %d: %v", len(got), err)
						}
						for _, d := range got {
							if err := d.Ack(context.WithoutCancel(ctx)); err != nil || d.Attempt != 1 {
								t.Errorf("Ack of attempt %d: %v", d.Attempt, err)
							}
							acked <- d.ID
						}
					}
				})
			}
		}
		events := make([]dueq.NewEvent, n)
		now := faultTime(t, env.Client)
		for i := range events {
			events[i].EffectTime = now.Add(time.Duration(i) * time.Millisecond / 2)
		}
		if _, err := first.PublishEvents(t.Context(), "a", events); err != nil {
			t.Fatal(err)
		}
		seen := make(map[string]bool)
		for range n {
			id := receive(t, acked)
			if seen[id] {
				t.Errorf("event %s came twice", id)
			}
			seen[id] = true
		}
		cancel()
		wg.Wait()
		awaitEmpty(t, first, "a")
		conserved(t, env, "a")
	})
}

// A consumer that nobody asks leaves all events to others.
func TestClaimNobodyAsks(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		idle, busy := newQueue(t, env, dueq.Options{}), newQueue(t, env, dueq.Options{})
		c := consume(t, idle)
		got := make(seen, 100)
		subscribe(t, busy, "a", got)
		for i := range 30 {
			due := time.Now()
			if i%2 == 0 {
				due = due.Add(5 * time.Millisecond)
			}
			publish(t, busy, "a", "x", due)
			receive(t, got)
		}
		shutDown(t, busy)
		id := publish(t, idle, "a", "y", time.Now())
		if err := claimOne(t, c, time.Hour, id, "y", 1).Ack(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A consumer that nobody asks does not keep asking Redis about a backlog, and has
// it at once when somebody does.
func TestClaimBacklog(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		rdb := env.NewClient()
		hook := faultHooked(rdb)
		q := newQueueOn(t, env, rdb, dueq.Options{})
		c := consume(t, q)
		const n = 40
		for i := range n {
			publish(t, q, "a", "x", time.Now().Add(time.Duration(i%2)*time.Millisecond))
		}
		eventually(t, "all lie in ready", func() bool { return stats(t, q, "a").Ready == n })
		before := hook.count("claim")
		<-time.After(1500 * time.Millisecond)
		if claims := hook.count("claim") - before; claims > 10 {
			t.Errorf("%d claims while nobody asks", claims)
		}
		for left := n; left > 0; {
			got := claim(t, c, 7, time.Hour)
			left -= len(got)
			for _, d := range got {
				if err := d.Ack(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
		awaitEmpty(t, q, "a")
	})
}

// A claim whose ctx ends returns nothing, and what comes too late for it goes back
// at no cost.
func TestClaimWithdrawn(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		rdb := env.NewClient()
		hook := faultHooked(rdb)
		q, other := newQueueOn(t, env, rdb, dueq.Options{}), newQueue(t, env, dueq.Options{})
		c := consume(t, q)
		ctx, cancel := context.WithCancel(t.Context())
		claimed := make(chan error, 1)
		go func() {
			got, err := c.Claim(ctx, 10, time.Hour)
			if got != nil {
				err = fmt.Errorf("claimed %v", got)
			}
			claimed <- err
		}()
		reached, release := hook.hold("claim")
		id := publish(t, other, "a", "x", time.Now())
		receiveClosed(t, reached)
		cancel()
		if err := receive(t, claimed); err != nil {
			t.Error(err)
		}
		release()
		awaitState(t, other, "a", id, dueq.StateReady)
		if info := get(t, other, "a", id); info.Attempts != 0 {
			t.Errorf("given back as %+v", info)
		}
		if got, err := c.Claim(ctx, 10, time.Hour); got != nil || err != nil {
			t.Errorf("Claim with a ctx that has ended: %v, %v", got, err)
		}
		if err := claimOne(t, c, time.Hour, id, "x", 1).Ack(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Of a paused topic nothing is claimed; claims that wait have it once the topic is
// resumed, and what was claimed before can be settled.
func TestClaimPaused(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		rdb := env.NewClient()
		hook := faultHooked(rdb)
		q, other := newQueueOn(t, env, rdb, dueq.Options{}), newQueue(t, env, dueq.Options{})
		c := consume(t, q)
		id := publish(t, q, "a", "x", time.Now())
		d := claimOne(t, c, time.Hour, id, "x", 1)
		if err := other.Pause(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if err := d.Release(t.Context()); err != nil {
			t.Error(err)
		}
		claimed := make(chan []*dueq.Delivery, 1)
		before := hook.count("claim")
		go func() { claimed <- claim(t, c, 1, time.Hour) }()
		publish(t, q, "a", "y", time.Now())
		eventually(t, "the process has looked", func() bool { return hook.count("claim") > before })
		if s := stats(t, q, "a"); s.Leased != 0 || len(claimed) > 0 {
			t.Errorf("claimed while paused: %+v", s)
		}
		if err := other.Resume(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		got := receive(t, claimed)[0]
		if got.Attempt != 1 {
			t.Errorf("claimed %+v", got.Event)
		}
		if err := got.Ack(t.Context()); err != nil {
			t.Error(err)
		}
		m := q.Metrics().Topics["a"]
		if m.Delivered != 2 || m.Released != 1 || m.Acked != 1 {
			t.Errorf("metrics %+v", m)
		}
	})
}
