package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dueq-io/dueq"
)

// drain measures how fast a backlog is handled: from Subscribe to the last ack.
func drain(ctx context.Context, e *env) ([]row, error) {
	n := e.size(200_000, 10_000)
	floor, err := e.drainRaw(ctx, n)
	if err != nil {
		return nil, err
	}
	rows := []row{floor}
	e.say("drain: %s events", count(n))
	err = e.within(ctx, dueq.Options{}, func(r *rig) error {
		if _, err := fill(ctx, r.queue, n, over(time.Now().Add(-time.Minute), time.Second, n)); err != nil {
			return err
		}
		in := newIntake(n, nil)
		s, err := r.during(ctx, func() error {
			if err := r.queue.Subscribe(topic, in); err != nil {
				return err
			}
			return in.await(ctx, r.queue, 0)
		})
		if err != nil {
			return err
		}
		own := newRow("Subscribe, no-op handler", n, s)
		own.Figures = append(compare(own, floor), perEvent("scripts", s.scripts, n), in.repeats())
		rows = append(rows, own)
		return nil
	})
	return rows, err
}

// drainRaw measures how fast the server can give a backlog away at most.
func (e *env) drainRaw(ctx context.Context, n int) (row, error) {
	variant := fmt.Sprintf("raw ZREMRANGE+HMGET+HDEL by %s", count(rawBatch))
	e.say("drain: %s, %s events", variant, count(n))
	var out row
	err := e.within(ctx, dueq.Options{}, func(r *rig) error {
		w := newRaw(r)
		if err := w.publish(ctx, rawIDs(n), rawBatch, over(time.Now().Add(-time.Minute), time.Second, n)); err != nil {
			return err
		}
		s, err := r.during(ctx, func() error {
			got, err := w.drain(ctx)
			if err == nil && got != n {
				err = fmt.Errorf("raw: drained %d of %d events", got, n)
			}
			return err
		})
		out = newRow(variant, n, s)
		return err
	})
	return out, err
}

// perEvent is a figure that says how many of something an event takes.
func perEvent(what string, total int64, events int) figure {
	return figure{Name: what + "/event", Value: float64(total) / float64(events)}
}
