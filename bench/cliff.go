package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dueq-io/dueq"
)

const (
	otherTopic = "other"
	// fillRate is how many events a second even a busy machine can publish.
	fillRate = 40_000
)

// cliff makes many events due within one second, and looks at what that does to
// them, to another topic, and to the server.
func cliff(ctx context.Context, e *env) ([]row, error) {
	n := e.size(1_000_000, 50_000)
	e.say("cliff: %s events due in the same second", count(n))
	var rows []row
	err := e.within(ctx, dueq.Options{}, func(r *rig) error {
		at := time.Now().Add(2*time.Second + time.Duration(n)*time.Second/fillRate).Truncate(time.Second)
		if _, err := fill(ctx, r.queue, n, over(at, time.Second, n)); err != nil {
			return err
		}
		ahead := time.Until(at)
		if ahead < 0 {
			return fmt.Errorf("the events were published %v too late", -ahead)
		}
		e.say("cliff: published; due in %v", ahead.Round(time.Second/10))
		var late, other *lateness
		slow, err := r.slowest(ctx, func() (err error) {
			rows, late, other, err = r.cliff(ctx, n, at)
			return err
		})
		if err != nil {
			return err
		}
		rows[0].Figures = append(rows[0].Figures, slow.figures()...)
		e.charts = append(e.charts, latenessChart("cliff", count(n)+" events due in the same second", []series{
			{name: count(n) + " events", points: late.curve()}, {name: "another topic", points: other.curve()},
		}))
		return nil
	})
	return rows, err
}

// cliff handles the events that are due from at on.
func (r *rig) cliff(ctx context.Context, n int, at time.Time) (rows []row, late, other *lateness, err error) {
	late, other = newLateness(), newLateness()
	in := newIntake(n, late)
	if err := r.queue.Subscribe(topic, in); err != nil {
		return nil, nil, nil, err
	}
	if err := pause(ctx, time.Until(at)); err != nil {
		return nil, nil, nil, err
	}
	until := make(chan struct{})
	var asides int
	var asideErr error
	var wg sync.WaitGroup
	wg.Go(func() { asides, asideErr = r.aside(ctx, until, other) })
	var control []figure
	s, err := r.during(ctx, func() (err error) {
		control, err = r.control(ctx, func() error { return in.await(ctx, r.queue, 0) })
		return err
	})
	close(until)
	wg.Wait()
	if err = errors.Join(err, asideErr); err != nil {
		return nil, nil, nil, err
	}
	out := newRow("due in one second", n, s, perEvent("scripts", s.scripts, n), in.repeats())
	out.Figures = append(out.Figures, control...)
	out.Lateness = late.quantiles()
	rows = []row{out, {Variant: "another topic meanwhile", Events: asides, Lateness: other.quantiles()}}
	return rows, late, other, nil
}

// aside publishes an event of another topic, due in 50 ms, and the next one 50 ms
// after its arrival, and so on until the channel is closed.
func (r *rig) aside(ctx context.Context, until <-chan struct{}, late *lateness) (n int, err error) {
	arrived := make(chan struct{}, 1)
	err = r.queue.Subscribe(otherTopic, dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
		if _, due, ok := parseBody(e.Body); ok {
			late.add(time.Since(due))
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
		if _, err := r.queue.PublishEvent(ctx, otherTopic, body(n, due), due); err != nil {
			return n, err
		}
		n++
		select {
		case <-arrived:
		case <-time.After(patience):
			return n, fmt.Errorf("an event of another topic has not arrived in %v", patience)
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
