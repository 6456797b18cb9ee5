package load

import (
	"context"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/bench/internal/measure"
	"github.com/dueq-io/dueq/internal/digits"
)

// memory measures what a pending event takes in Redis besides its body.
func memory(ctx context.Context, e *env) ([]measure.Row, error) {
	n := e.size(1_000_000, 20_000)
	ways := []struct {
		variant string
		store   func(r *rig) error
	}{
		{"raw hash+zset, ids of 16", func(r *rig) error {
			return newRaw(r).publish(ctx, rawIDs(n), rawBatch, measure.NextHour)
		}},
		{"dueq", func(r *rig) error {
			_, err := fill(ctx, r.queue, n, measure.NextHour)
			return err
		}},
	}
	var rows []measure.Row
	for _, way := range ways {
		e.say("memory: %s, %s events", way.variant, digits.Group(n))
		err := e.within(ctx, dueq.Options{}, func(r *rig) error {
			s, err := r.meter.During(ctx, func() error {
				if err := way.store(r); err != nil {
					return err
				}
				return measure.Pause(ctx, time.Second/2) // the server frees the buffers of its replies in the background
			})
			if err != nil {
				return err
			}
			per := float64(s.Memory) / float64(n)
			rows = append(rows, measure.Row{Variant: way.variant, Events: n, Figures: []measure.Figure{
				{Name: "over the body", Value: per - measure.BodySize, Unit: "bytes/event"},
				{Name: "in all", Value: float64(s.Memory) / 1e6, Unit: "MB"},
			}})
			return nil
		})
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}
