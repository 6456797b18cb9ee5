// Package fromdelayqueue does with dueq what HDT3213/delayqueue did, and moves its
// messages. The guide is docs/from-delayqueue.md.
package fromdelayqueue

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
)

// publish schedules a message.
func publish(ctx context.Context, queue *dueq.Queue, payload string) (id string, err error) {
	return queue.PublishEvent(ctx, "example", []byte(payload), time.Now().Add(time.Hour), dueq.WithMaxAttempts(4))
}

// serve handles messages, until SIGTERM.
func serve(ctx context.Context, rdb redis.UniversalClient) error {
	queue, err := dueq.New(rdb, dueq.Options{
		Concurrency:    4,
		MaxAttempts:    4,
		HandlerTimeout: 5 * time.Second,
		Backoff:        func(int, error) time.Duration { return 0 },
	})
	if err != nil {
		return err
	}
	err = queue.Subscribe("example", dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
		return consume(ctx, string(e.Body))
	}))
	if err != nil {
		return err
	}
	return queue.Run(ctx)
}

// consume is the work itself: nil where it returned true, an error where false.
func consume(context.Context, string) error { return nil }
