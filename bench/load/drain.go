package load

import (
	"context"
	"fmt"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/bench/internal/measure"
	"github.com/dueq-io/dueq/internal/digits"
)

// drain measures how fast a backlog is handled: from Subscribe to the last ack.
func drain(ctx context.Context, e *env) ([]measure.Row, error) {
	n := e.size(200_000, 10_000)
	floor, err := e.drainRaw(ctx, n)
	if err != nil {
		return nil, err
	}
	rows := []measure.Row{floor}
	e.say("drain: %s events", digits.Group(n))
	err = e.within(ctx, dueq.Options{}, func(r *rig) error {
		if _, err := fill(ctx, r.queue, n, measure.Over(time.Now().Add(-time.Minute), time.Second, n)); err != nil {
			return err
		}
		in := newIntake(n, nil)
		s, err := r.meter.During(ctx, func() error {
			if err := r.queue.Subscribe(topic, in); err != nil {
				return err
			}
			return in.await(ctx, r.queue, 0)
		})
		if err != nil {
			return err
		}
		own := measure.NewRow("Subscribe, no-op handler", n, s)
		own.Figures = append(compare(own, floor), measure.PerEvent("scripts", s.Scripts, n), in.repeats())
		rows = append(rows, own)
		return nil
	})
	return rows, err
}

// drainRaw measures how fast the server can give a backlog away at most.
func (e *env) drainRaw(ctx context.Context, n int) (measure.Row, error) {
	variant := fmt.Sprintf("raw ZREMRANGE+HMGET+HDEL by %s", digits.Group(rawBatch))
	e.say("drain: %s, %s events", variant, digits.Group(n))
	var out measure.Row
	err := e.within(ctx, dueq.Options{}, func(r *rig) error {
		w := newRaw(r)
		if err := w.publish(ctx, rawIDs(n), rawBatch, measure.Over(time.Now().Add(-time.Minute), time.Second, n)); err != nil {
			return err
		}
		s, err := r.meter.During(ctx, func() error {
			got, err := w.drain(ctx)
			if err == nil && got != n {
				err = fmt.Errorf("raw: drained %d of %d events", got, n)
			}
			return err
		})
		out = measure.NewRow(variant, n, s)
		return err
	})
	return out, err
}
