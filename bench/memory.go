package main

import (
	"context"
	"time"

	"github.com/dueq-io/dueq"
)

// memory measures what a pending event takes in Redis besides its body.
func memory(ctx context.Context, e *env) ([]row, error) {
	n := e.size(1_000_000, 20_000)
	ways := []struct {
		variant string
		store   func(r *rig) error
	}{
		{"raw hash+zset, ids of 16", func(r *rig) error {
			return newRaw(r).publish(ctx, rawIDs(n), rawBatch, nextHour)
		}},
		{"dueq", func(r *rig) error {
			_, err := fill(ctx, r.queue, n, nextHour)
			return err
		}},
	}
	var rows []row
	for _, way := range ways {
		e.say("memory: %s, %s events", way.variant, count(n))
		err := e.within(ctx, dueq.Options{}, func(r *rig) error {
			s, err := r.during(ctx, func() error {
				if err := way.store(r); err != nil {
					return err
				}
				return pause(ctx, time.Second/2) // the server frees the buffers of its replies in the background
			})
			if err != nil {
				return err
			}
			per := float64(s.memory) / float64(n)
			rows = append(rows, row{Variant: way.variant, Events: n, Figures: []figure{
				{Name: "over the body", Value: per - bodySize, Unit: "bytes/event"},
				{Name: "in all", Value: float64(s.memory) / 1e6, Unit: "MB"},
			}})
			return nil
		})
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}
