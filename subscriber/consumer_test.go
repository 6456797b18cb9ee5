package subscriber_test

import (
	"context"
	"testing"
	"time"

	"github.com/dueq-io/dueq/internal/redistest"
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
