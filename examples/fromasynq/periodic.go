package fromasynq

import (
	"context"
	"time"

	"github.com/dueq-io/dueq"
)

// every schedules the next run of a periodic event. Every process may call it as
// it starts, and the handler calls it first of all: an event with this id is
// there once, however many do.
func every(ctx context.Context, queue *dueq.Queue, topic string, interval time.Duration) error {
	next := time.Now().Truncate(interval).Add(interval)
	_, err := queue.PublishEvent(ctx, topic, nil, next, dueq.WithID("periodic"), dueq.WithKeyPolicy(dueq.KeyKeep))
	return err
}

// report runs every hour.
func report(queue *dueq.Queue, write func(context.Context) error) dueq.HandlerFunc {
	return func(ctx context.Context, _ *dueq.Event) error {
		if err := every(ctx, queue, "report", time.Hour); err != nil {
			return err
		}
		return write(ctx)
	}
}
