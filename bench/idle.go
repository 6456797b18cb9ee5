package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dueq-io/dueq"
)

// idle measures what a process with topics, but without events, asks of Redis.
func idle(ctx context.Context, e *env) ([]row, error) {
	settle, span := 5*time.Second, 30*time.Second
	if e.short {
		settle, span = time.Second/2, 3*time.Second/2
	}
	var rows []row
	for _, topics := range []int{0, 1, 100, 1000} {
		e.say("idle: %s topics for %v", count(topics), settle+span)
		err := e.within(ctx, dueq.Options{}, func(r *rig) error {
			for i := range topics {
				err := r.queue.Subscribe(fmt.Sprintf("idle-%04d", i), dueq.HandlerFunc(ignore))
				if err != nil {
					return err
				}
			}
			if err := pause(ctx, settle); err != nil {
				return err
			}
			s, err := r.during(ctx, func() error { return pause(ctx, span) })
			if err != nil {
				return err
			}
			seconds := s.wall.Seconds()
			rows = append(rows, row{Variant: count(topics) + " topics", Figures: []figure{
				{Name: "commands/s", Value: float64(s.commands) / seconds},
				{Name: "connections", Value: float64(s.connections)},
				{Name: "Redis CPU", Value: micros(s.redis) / 1e3 / seconds, Unit: "ms/s"},
				{Name: "client CPU", Value: micros(s.client) / 1e3 / seconds, Unit: "ms/s"},
			}})
			return nil
		})
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func ignore(context.Context, *dueq.Event) error { return nil }
