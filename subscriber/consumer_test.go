package subscriber_test

import (
	"context"
	"testing"
	"time"

	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/readyqueue"
	"github.com/dueq-io/dueq/subscriber"
)

// Claims are served in the order in which they came, each with as much as there
// is; those that have gone are passed over, and nothing more is claimed than is
// asked for.
func TestClaimsInOrder(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env)
		consumer, topic := b.s.AddConsumer("a", &b.counts)
		b.lane = topic.AddLane(b.keys, func() { b.kicked <- struct{}{} })
		if n := b.move(); n != 0 {
			t.Errorf("claimed %d while nobody asks", n)
		}
		type outcome struct {
			who int
			got []*subscriber.Delivery
			err error
		}
		outcomes := make(chan outcome, 4)
		ctx, cancel := context.WithCancel(t.Context())
		for who, limit := range []int{3, 100, 2, 5} {
			ctx := ctx
			if who != 1 {
				ctx = t.Context()
			}
			go func() {
				got, err := consumer.Claim(ctx, limit, time.Hour)
				outcomes <- outcome{who, got, err}
			}()
			b.await("the claim waits", func() bool { return consumer.Waiting() == who+1 })
		}
		cancel()
		if o := <-outcomes; o.who != 1 || o.got != nil || o.err != nil {
			t.Errorf("%d was served first: %v, %v", o.who, o.got, o.err)
		}
		ids := b.ready(20, "x")
		if n := b.move(); n != 10 {
			t.Errorf("claimed %d, want 10", n)
		}
		byClaim := make(map[int][]*subscriber.Delivery)
		for range 3 {
			o := <-outcomes
			byClaim[o.who] = o.got
		}
		for _, want := range []struct{ who, n int }{{0, 3}, {2, 2}, {3, 5}} {
			if got := byClaim[want.who]; len(got) != want.n {
				t.Errorf("claim %d got %d events, want %d", want.who, len(got), want.n)
			}
			for _, d := range byClaim[want.who] {
				if d.ID != ids[0] {
					t.Errorf("claim %d got %s, want %s", want.who, d.ID, ids[0])
				}
				ids = ids[1:]
				if err := d.Ack(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
		if n := b.held(); n != 0 {
			t.Errorf("%d events are held after all acks", n)
		}
		if n := b.move(); n != 0 {
			t.Errorf("claimed %d while nobody asks", n)
		}
	})
}

// However many events have lost their last attempt with their process, no more
// of them are claimed than PersistFn takes at a time.
func TestClaimsOfManyWorn(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		began, end := make(chan struct{}, 100), make(chan struct{})
		b := newBenchPersisting(t, env, func(context.Context, *subscriber.Event, error) error {
			began <- struct{}{}
			<-end
			return nil
		})
		consumer, topic := b.s.AddConsumer("a", &b.counts)
		b.lane = topic.AddLane(b.keys, func() { b.kicked <- struct{}{} })
		worn := b.ready(10*concurrency, "worn")
		for _, id := range worn {
			b.rdb.HSet(t.Context(), b.keys.Attempts, id, "10||"+readyqueue.LostCause)
		}
		sound := b.ready(1, "sound")[0]
		got := make(chan *subscriber.Delivery)
		go func() {
			claimed, err := consumer.Claim(t.Context(), 1, time.Hour)
			if err != nil || len(claimed) != 1 {
				t.Errorf("Claim: %v, %v", claimed, err)
			}
			got <- claimed[0]
		}()
		b.await("the claim waits", func() bool { return consumer.Waiting() == 1 })
		for b.move() > 0 {
			continue
		}
		for range concurrency {
			<-began
		}
		if n := b.held(); n != concurrency || len(began) > 0 {
			t.Errorf("%d events are held, and %d more on their way to PersistFn", n, len(began))
		}
		close(end)
		for {
			select {
			case d := <-got:
				if d.ID != sound {
					t.Errorf("claimed %s, want %s", d.ID, sound)
				}
				if err := d.Ack(t.Context()); err != nil {
					t.Error(err)
				}
				return
			case <-b.kicked:
				b.move()
			}
		}
	})
}

// An outcome that is known when the wait for it ends is told, whichever is seen
// first.
func TestOutcomeKnownInTime(t *testing.T) {
	t.Parallel()
	env := redistest.Mini(t)
	b := newBench(t, env)
	consumer, topic := b.s.AddConsumer("a", &b.counts)
	b.lane = topic.AddLane(b.keys, func() { b.kicked <- struct{}{} })
	b.ready(1, "x")
	got := make(chan []*subscriber.Delivery, 1)
	go func() {
		claimed, _ := consumer.Claim(t.Context(), 1, time.Hour)
		got <- claimed
	}()
	b.await("the claim waits", func() bool { return consumer.Waiting() == 1 })
	b.move()
	d := (<-got)[0]
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // of two cases that are ready, select takes any
		if err := d.HearOf(over, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Ack(t.Context()); err != nil {
		t.Error(err)
	}
}

// Events that were lost with their processes come apart in the end, however many a
// consumer held.
func TestManySuspects(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const events = 100
		b := newBench(t, env)
		consumer, topic := b.s.AddConsumer("a", &b.counts)
		b.lane = topic.AddLane(b.keys, func() { b.kicked <- struct{}{} })
		for _, id := range b.ready(events, "x") {
			b.rdb.HSet(t.Context(), b.keys.Attempts, id, "2||"+readyqueue.LostCause)
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			if got, err := consumer.Claim(ctx, events, time.Hour); len(got) > 0 || err != nil {
				t.Errorf("Claim: %v, %v", got, err)
			}
		}()
		b.await("the claim waits", func() bool { return consumer.Waiting() == 1 })
		began := time.Now()
		b.move()
		b.await("all are put off", func() bool { return b.held() == 0 })
		cancel()
		<-over
		far := 0
		for i := range b.keys.Buckets() {
			for _, z := range b.rdb.ZRangeWithScores(t.Context(), b.keys.Bucket(i), 0, -1).Val() {
				if time.UnixMilli(int64(z.Score)).After(began.Add(10 * lease)) {
					far++
				}
			}
		}
		if far == 0 {
			t.Errorf("all of %d events come back within ten leases", events)
		}
	})
}
