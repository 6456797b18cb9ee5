package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dueq-io/dueq"
)

// steady publishes at fixed rates and measures how late events are handled.
func steady(ctx context.Context, e *env) ([]row, error) {
	rates := e.rates
	if len(rates) == 0 {
		rates = []int{200, 2_000, 10_000}
	}
	span := 20 * time.Second
	if e.short {
		span = 5 * time.Second
	}
	var rows []row
	var lines []series
	for _, rate := range rates {
		n := int(span.Seconds() * float64(rate))
		if e.n > 0 {
			n = e.n
		}
		variant := count(rate) + "/s"
		e.say("steady: %s, %s events, 1 to 5 s ahead", variant, count(n))
		err := e.within(ctx, dueq.Options{}, func(r *rig) error {
			got, late, err := r.steady(ctx, n, rate)
			if err != nil {
				return err
			}
			got.Variant = variant
			rows = append(rows, got)
			lines = append(lines, series{name: variant, points: late.curve()})
			return nil
		})
		if err != nil {
			return rows, err
		}
	}
	e.charts = append(e.charts, latenessChart("steady", "Lateness at a steady rate", lines))
	return rows, nil
}

func (r *rig) steady(ctx context.Context, n, rate int) (row, *lateness, error) {
	late := newLateness()
	in := newIntake(n, late)
	if err := r.queue.Subscribe(topic, in); err != nil {
		return row{}, nil, err
	}
	var sending time.Duration
	var control []figure
	s, err := r.during(ctx, func() (err error) {
		control, err = r.control(ctx, func() error {
			start := time.Now()
			if err := pace(ctx, n, rate, func(i int) error { return r.publishAhead(ctx, i) }); err != nil {
				return err
			}
			sending = time.Since(start)
			return in.await(ctx, r.queue, 0)
		})
		return err
	})
	if err != nil {
		return row{}, nil, err
	}
	out := newRow("", n, s, perEvent("commands", s.commands, n), perEvent("scripts", s.scripts, n),
		in.repeats())
	out.Figures = append(out.Figures, control...)
	out.PerSecond = float64(n) / sending.Seconds()
	out.Lateness = late.quantiles()
	return out, late, nil
}

// publishAhead publishes the i-th event, due in 1 to 5 seconds.
func (r *rig) publishAhead(ctx context.Context, i int) error {
	due := time.Now().Add(time.Second + rand.N(4*time.Second))
	_, err := r.queue.PublishEvent(ctx, topic, body(i, due), due)
	return err
}

// pace calls do for 0 to n-1, each at its time, whether or not earlier calls
// have returned. It returns when all have.
func pace(ctx context.Context, n, rate int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	start := time.Now()
	for sent := 0; sent < n; {
		elapsed := time.Since(start)
		for due := min(int(elapsed.Seconds()*float64(rate))+1, n); sent < due; sent++ {
			i := sent
			wg.Go(func() {
				if err := do(i); err != nil {
					cancel(fmt.Errorf("event %d: %w", i, err))
				}
			})
		}
		next := time.Duration(float64(sent) / float64(rate) * float64(time.Second))
		if pause(ctx, max(next-elapsed, time.Millisecond)) != nil {
			break
		}
	}
	wg.Wait()
	return context.Cause(ctx)
}
