package main

import (
	"context"
	"fmt"

	"github.com/dueq-io/dueq"
)

// publish measures storing events that are due in an hour or so.
func publish(ctx context.Context, e *env) ([]row, error) {
	n := e.size(200_000, 10_000)
	floor, err := e.publishRaw(ctx, n)
	if err != nil {
		return nil, err
	}
	rows := []row{floor}
	add := func(variant string, n int, do func(r *rig) error) error {
		e.say("publish: %s, %s events", variant, count(n))
		return e.within(ctx, dueq.Options{}, func(r *rig) error {
			s, err := r.during(ctx, func() error { return do(r) })
			if err != nil {
				return err
			}
			own := newRow(variant, n, s)
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
		err := add(variant, n, func(r *rig) error { return publishEach(ctx, r.queue, n, callers, nextHour) })
		if err != nil {
			return rows, err
		}
	}
	batch := min(n, chunk)
	events := newEvents(0, batch, nextHour)
	variant := "PublishEvents of " + count(batch)
	err = add(variant, batch, func(r *rig) error {
		_, err := r.queue.PublishEvents(ctx, topic, events)
		return err
	})
	return rows, err
}

// publishRaw measures what the server can store at most.
func (e *env) publishRaw(ctx context.Context, n int) (row, error) {
	variant := fmt.Sprintf("raw HSET+ZADD by %s", count(rawBatch))
	e.say("publish: %s, %s events", variant, count(n))
	var out row
	err := e.within(ctx, dueq.Options{}, func(r *rig) error {
		ids := rawIDs(n)
		s, err := r.during(ctx, func() error { return newRaw(r).publish(ctx, ids, rawBatch, nextHour) })
		out = newRow(variant, n, s)
		return err
	})
	return out, err
}
