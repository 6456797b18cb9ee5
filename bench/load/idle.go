package load

import (
	"context"
	"fmt"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/bench/internal/measure"
	"github.com/dueq-io/dueq/internal/digits"
)

// idle measures what a process with topics, but without events, asks of Redis.
func idle(ctx context.Context, e *env) ([]measure.Row, error) {
	settle, span := 5*time.Second, 30*time.Second
	if e.short {
		settle, span = time.Second/2, 3*time.Second/2
	}
	var rows []measure.Row
	for _, topics := range []int{0, 1, 100, 1000} {
		e.say("idle: %s topics for %v", digits.Group(topics), settle+span)
		err := e.within(ctx, dueq.Options{}, func(r *rig) error {
			for i := range topics {
				err := r.queue.Subscribe(fmt.Sprintf("idle-%04d", i), dueq.HandlerFunc(ignore))
				if err != nil {
					return err
				}
			}
			if err := measure.Pause(ctx, settle); err != nil {
				return err
			}
			s, err := r.meter.During(ctx, func() error { return measure.Pause(ctx, span) })
			if err != nil {
				return err
			}
			seconds := s.Wall.Seconds()
			rows = append(rows, measure.Row{Variant: digits.Group(topics) + " topics", Figures: []measure.Figure{
				{Name: "commands/s", Value: float64(s.Commands) / seconds},
				{Name: "connections", Value: float64(s.Connections)},
				{Name: "Redis CPU", Value: measure.Micros(s.Server) / 1e3 / seconds, Unit: "ms/s"},
				{Name: "client CPU", Value: measure.Micros(s.Client) / 1e3 / seconds, Unit: "ms/s"},
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
