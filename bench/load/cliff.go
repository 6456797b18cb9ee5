package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/bench/internal/measure"
	"github.com/dueq-io/dueq/internal/digits"
)

const (
	otherTopic = "other"
	// fillRate is how many events a second even a busy machine can publish.
	fillRate = 40_000
)

// cliff makes many events due within one second, and looks at what that does to
// them, to another topic, and to the server.
func cliff(ctx context.Context, e *env) ([]measure.Row, error) {
	n := e.size(1_000_000, 50_000)
	e.say("cliff: %s events due in the same second", digits.Group(n))
	var rows []measure.Row
	err := e.within(ctx, dueq.Options{}, func(r *rig) error {
		at := time.Now().Add(2*time.Second + time.Duration(n)*time.Second/fillRate).Truncate(time.Second)
		if _, err := fill(ctx, r.queue, n, measure.Over(at, time.Second, n)); err != nil {
			return err
		}
		ahead := time.Until(at)
		if ahead < 0 {
			return fmt.Errorf("the events were published %v too late", -ahead)
		}
		e.say("cliff: published; due in %v", ahead.Round(time.Second/10))
		var late, other *measure.Lateness
		slow, err := r.meter.Slowest(ctx, func() (err error) {
			rows, late, other, err = r.cliff(ctx, n, at)
			return err
		})
		if err != nil {
			return err
		}
		rows[0].Figures = append(rows[0].Figures, slow.Figures()...)
		e.charts = append(e.charts, latenessChart("cliff", digits.Group(n)+" events due in the same second", []series{
			{name: digits.Group(n) + " events", points: curve(late)}, {name: "another topic", points: curve(other)},
		}))
		return nil
	})
	return rows, err
}

// cliff handles the events that are due from at on.
func (r *rig) cliff(ctx context.Context, n int, at time.Time) (rows []measure.Row, late, other *measure.Lateness, err error) {
	late, other = measure.NewLateness(), measure.NewLateness()
	in := newIntake(n, late)
	if err := r.queue.Subscribe(topic, in); err != nil {
		return nil, nil, nil, err
	}
	if err := measure.Pause(ctx, time.Until(at)); err != nil {
		return nil, nil, nil, err
	}
	until := make(chan struct{})
	var asides int
	var asideErr error
	var wg sync.WaitGroup
	wg.Go(func() { asides, asideErr = r.aside(ctx, until, other) })
	var control []measure.Figure
	s, err := r.meter.During(ctx, func() (err error) {
		control, err = r.meter.Control(ctx, func() error { return in.await(ctx, r.queue, 0) })
		return err
	})
	close(until)
	wg.Wait()
	if err = errors.Join(err, asideErr); err != nil {
		return nil, nil, nil, err
	}
	out := measure.NewRow("due in one second", n, s, measure.PerEvent("scripts", s.Scripts, n), in.repeats())
	out.Figures = append(out.Figures, control...)
	out.Lateness = late.Quantiles()
	rows = []measure.Row{out, {Variant: "another topic meanwhile", Events: asides, Lateness: other.Quantiles()}}
	return rows, late, other, nil
}

// aside publishes an event of another topic, due in 50 ms, and the next one 50 ms
// after its arrival, and so on until the channel is closed.
func (r *rig) aside(ctx context.Context, until <-chan struct{}, late *measure.Lateness) (n int, err error) {
	arrived := make(chan struct{}, 1)
	err = r.queue.Subscribe(otherTopic, dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
		if _, due, ok := measure.ParseBody(e.Body); ok {
			late.Add(time.Since(due))
		}
		select {
		case arrived <- struct{}{}:
		default: // delivered once more
		}
		return nil
	}))
	if err != nil {
		return 0, err
	}
	for {
		due := time.Now().Add(50 * time.Millisecond)
		if _, err := r.queue.PublishEvent(ctx, otherTopic, measure.Body(n, due), due); err != nil {
			return n, err
		}
		n++
		select {
		case <-arrived:
		case <-time.After(measure.Patience):
			return n, fmt.Errorf("an event of another topic has not arrived in %v", measure.Patience)
		case <-ctx.Done():
			return n, context.Cause(ctx)
		}
		select {
		case <-until:
			return n, nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}
