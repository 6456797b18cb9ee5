package fromasynq

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
)

// publishAfter publishes with dueq.
func publishAfter(ctx context.Context, queue *dueq.Queue, order string) error {
	_, err := queue.PublishEvent(ctx, "order:close", []byte(order), time.Now().Add(30*time.Minute),
		dueq.WithID(order), dueq.WithMaxAttempts(10))
	return err
}

// serveAfter handles with dueq, until SIGTERM.
func serveAfter(ctx context.Context, addr string) error {
	queue, err := dueq.New(redis.NewClient(&redis.Options{Addr: addr}), dueq.Options{Concurrency: 64})
	if err != nil {
		return err
	}
	err = queue.Subscribe("order:close", dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
		return closeOrder(ctx, e.Body)
	}))
	if err != nil {
		return err
	}
	return queue.Run(ctx)
}

// closeOrder is the work itself, which knows neither.
func closeOrder(context.Context, []byte) error { return nil }
