package main

import (
	"context"
	"time"

	"github.com/dueq-io/dueq"
)

// mixed publishes events that are due at once, while they are handled.
func mixed(ctx context.Context, e *env) ([]row, error) {
	n := e.size(200_000, 10_000)
	e.say("mixed: %s events", count(n))
	var rows []row
	err := e.within(ctx, dueq.Options{}, func(r *rig) error {
		late := newLateness()
		in := newIntake(n, late)
		if err := r.queue.Subscribe(topic, in); err != nil {
			return err
		}
		var control []figure
		s, err := r.during(ctx, func() (err error) {
			control, err = r.control(ctx, func() error {
				now := func(int) time.Time { return time.Now() }
				if err := publishEach(ctx, r.queue, n, 64, now); err != nil {
					return err
				}
				return in.await(ctx, r.queue, 0)
			})
			return err
		})
		if err != nil {
			return err
		}
		out := newRow("64 callers, due at once", n, s, perEvent("scripts", s.scripts, n), in.repeats())
		out.Figures = append(out.Figures, control...)
		out.Lateness = late.quantiles()
		rows = append(rows, out)
		return nil
	})
	return rows, err
}
