package load

import (
	"context"
	"fmt"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/bench/internal/measure"
	"github.com/dueq-io/dueq/internal/digits"
)

// publish measures storing events that are due in an hour or so.
func publish(ctx context.Context, e *env) ([]measure.Row, error) {
	n := e.size(200_000, 10_000)
	floor, err := e.publishRaw(ctx, n)
	if err != nil {
		return nil, err
	}
	rows := []measure.Row{floor}
	add := func(variant string, n int, do func(r *rig) error) error {
		e.say("publish: %s, %s events", variant, digits.Group(n))
		return e.within(ctx, dueq.Options{}, func(r *rig) error {
			s, err := r.meter.During(ctx, func() error { return do(r) })
			if err != nil {
				return err
			}
			own := measure.NewRow(variant, n, s)
			own.Figures = compare(own, floor)
			rows = append(rows, own)
			return awaitSettled(ctx, r.queue, n)
		})
	}
	for _, callers := range []int{1, 64} {
		n := n
		if callers == 1 {
			n = max(n/10, 1)
		}
		variant := fmt.Sprintf("PublishEvent, callers: %d", callers)
		err := add(variant, n, func(r *rig) error { return publishEach(ctx, r.queue, n, callers, measure.NextHour) })
		if err != nil {
			return rows, err
		}
	}
	batch := min(n, chunk)
	events := newEvents(0, batch, measure.NextHour)
	variant := "PublishEvents of " + digits.Group(batch)
	err = add(variant, batch, func(r *rig) error {
		_, err := r.queue.PublishEvents(ctx, topic, events)
		return err
	})
	return rows, err
}

// publishRaw measures what the server can store at most.
func (e *env) publishRaw(ctx context.Context, n int) (measure.Row, error) {
	variant := fmt.Sprintf("raw HSET+ZADD by %s", digits.Group(rawBatch))
	e.say("publish: %s, %s events", variant, digits.Group(n))
	var out measure.Row
	err := e.within(ctx, dueq.Options{}, func(r *rig) error {
		ids := rawIDs(n)
		s, err := r.meter.During(ctx, func() error { return newRaw(r).publish(ctx, ids, rawBatch, measure.NextHour) })
		out = measure.NewRow(variant, n, s)
		return err
	})
	return out, err
}
