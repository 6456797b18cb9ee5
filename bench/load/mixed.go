package load

import (
	"context"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/bench/internal/measure"
	"github.com/dueq-io/dueq/internal/digits"
)

// mixed publishes events that are due at once, while they are handled.
func mixed(ctx context.Context, e *env) ([]measure.Row, error) {
	n := e.size(200_000, 10_000)
	e.say("mixed: %s events", digits.Group(n))
	var rows []measure.Row
	err := e.within(ctx, dueq.Options{}, func(r *rig) error {
		late := measure.NewLateness()
		in := newIntake(n, late)
		if err := r.queue.Subscribe(topic, in); err != nil {
			return err
		}
		var control []measure.Figure
		s, err := r.meter.During(ctx, func() (err error) {
			control, err = r.meter.Control(ctx, func() error {
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
		out := measure.NewRow("64 callers, due at once", n, s, measure.PerEvent("scripts", s.Scripts, n), in.repeats())
		out.Figures = append(out.Figures, control...)
		out.Lateness = late.Quantiles()
		rows = append(rows, out)
		return nil
	})
	return rows, err
}
