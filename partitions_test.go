package dueq_test

import (
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

// The lanes of 2 partitions are the first two of 3: who serves both counts serves
// each lane once.
func TestPartitionCountsShareLanes(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const events = 60
		two := newQueue(t, env, dueq.Options{Partitions: 2})
		three := newQueue(t, env, dueq.Options{Partitions: 3, Fallback: 100 * time.Millisecond, Lease: 5 * time.Second})
		publishHalf := func() {
			for range events / 4 {
				publish(t, two, topic, "x", past())
				publish(t, three, topic, "x", time.Now().Add(10*time.Millisecond))
			}
		}
		publishHalf()
		if s := stats(t, two, topic); s.Ready+s.Scheduled != events/2 || s.Published != events/2 {
			t.Errorf("%d ready, %d scheduled, %d published, want %d", s.Ready, s.Scheduled, s.Published, events/2)
		}
		st := newStage(t)
		subscribe(t, three, topic, st)
		extended := func() float64 { // until when, in milliseconds
			held := env.Client.ZRangeWithScores(t.Context(), key.NewLane(env.Namespace, topic, 0, 2, 16).Sessions, -1, -1).Val()
			if len(held) == 0 {
				return 0
			}
			return held[0].Score
		}
		var acts []*act
		for half := range 2 {
			if half == 1 {
				publishHalf()
			}
			for range events / 2 {
				acts = append(acts, st.next())
			}
			before := extended()
			eventually(t, "leases extended for a second", func() bool { return extended() > before+1000 })
		}
		st.none()
		for _, a := range acts {
			if a.Attempt != 1 || a.ctx.Err() != nil {
				t.Errorf("attempt %d, %v", a.Attempt, a.ctx.Err())
			}
			a.end(nil)
		}
		awaitEmpty(t, three, topic)
		if s := stats(t, two, topic); s.Acked != events || s.Delivered != events {
			t.Errorf("%d acked, %d delivered, want %d", s.Acked, s.Delivered, events)
		}
	})
}
