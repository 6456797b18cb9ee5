package load

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/bench/internal/measure"
	"github.com/dueq-io/dueq/internal/digits"
)

// steady publishes at fixed rates and measures how late events are handled.
func steady(ctx context.Context, e *env) ([]measure.Row, error) {
	rates := e.rates
	if len(rates) == 0 {
		rates = []int{200, 2_000, 10_000}
	}
	span := 20 * time.Second
	if e.short {
		span = 5 * time.Second
	}
	var rows []measure.Row
	var lines []series
	for _, rate := range rates {
		n := int(span.Seconds() * float64(rate))
		if e.n > 0 {
			n = e.n
		}
		variant := digits.Group(rate) + "/s"
		e.say("steady: %s, %s events, 1 to 5 s ahead", variant, digits.Group(n))
		err := e.within(ctx, dueq.Options{}, func(r *rig) error {
			got, late, err := r.steady(ctx, n, rate)
			if err != nil {
				return err
			}
			got.Variant = variant
			rows = append(rows, got)
			lines = append(lines, series{name: variant, points: curve(late)})
			return nil
		})
		if err != nil {
			return rows, err
		}
	}
	e.charts = append(e.charts, latenessChart("steady", "Lateness at a steady rate", lines))
	return rows, nil
}

func (r *rig) steady(ctx context.Context, n, rate int) (measure.Row, *measure.Lateness, error) {
	late := measure.NewLateness()
	in := newIntake(n, late)
	if err := r.queue.Subscribe(topic, in); err != nil {
		return measure.Row{}, nil, err
	}
	var sending time.Duration
	var control []measure.Figure
	s, err := r.meter.During(ctx, func() (err error) {
		control, err = r.meter.Control(ctx, func() error {
			start := time.Now()
			if err := measure.Pace(ctx, n, rate, func(i int) error { return r.publishAhead(ctx, i) }); err != nil {
				return err
			}
			sending = time.Since(start)
			return in.await(ctx, r.queue, 0)
		})
		return err
	})
	if err != nil {
		return measure.Row{}, nil, err
	}
	out := measure.NewRow("", n, s, measure.PerEvent("commands", s.Commands, n), measure.PerEvent("scripts", s.Scripts, n),
		in.repeats())
	out.Figures = append(out.Figures, control...)
	out.PerSecond = float64(n) / sending.Seconds()
	out.Lateness = late.Quantiles()
	return out, late, nil
}

// publishAhead publishes the i-th event, due in 1 to 5 seconds.
func (r *rig) publishAhead(ctx context.Context, i int) error {
	due := time.Now().Add(time.Second + rand.N(4*time.Second))
	_, err := r.queue.PublishEvent(ctx, topic, measure.Body(i, due), due)
	return err
}
