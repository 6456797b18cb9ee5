package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/bench/internal/measure"
)

// dueqQueue is dueq with its default options.
type dueqQueue struct {
	rdb *redis.Client
	q   *dueq.Queue
}

func openDueq(addr string) (queue, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: readTimeout})
	q, err := dueq.New(rdb, dueq.Options{})
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	return &dueqQueue{rdb, q}, nil
}

func (d *dueqQueue) publish(ctx context.Context, body []byte, due time.Time) error {
	_, err := d.q.PublishEvent(ctx, load, body, due)
	return err
}

func (d *dueqQueue) fill(ctx context.Context, n int, at measure.Schedule) error {
	const chunk = 100_000
	for from := 0; from < n; from += chunk {
		events := make([]dueq.NewEvent, min(chunk, n-from))
		for i := range events {
			due := at(from + i)
			events[i] = dueq.NewEvent{Body: measure.Body(from+i, due), EffectTime: due}
		}
		if _, err := d.q.PublishEvents(ctx, load, events); err != nil {
			return err
		}
	}
	return nil
}

func (d *dueqQueue) consume(_ context.Context, topics []string, handle func([]byte)) error {
	h := dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
		handle(e.Body)
		return nil
	})
	for _, topic := range topics {
		if err := d.q.Subscribe(topic, h); err != nil {
			return err
		}
	}
	return nil
}

func (d *dueqQueue) pending(ctx context.Context) (int, error) {
	s, err := d.q.Stats(ctx, load)
	return s.Scheduled + s.Ready + s.Leased + s.Dead, err
}

func (d *dueqQueue) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return errors.Join(d.q.ShutDown(ctx), d.rdb.Close())
}
