package dueq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dueq-io/dueq/internal/metric"
	"github.com/dueq-io/dueq/subscriber"
)

// Delivery is an event that a [Consumer] has claimed.
type Delivery = subscriber.Delivery

// Consumer claims events of a topic when it is asked to, where a subscription
// has handlers called. While Options.Concurrency of its events are with PersistFn,
// it claims no more. It is safe for use by many goroutines.
type Consumer struct{ consumer *subscriber.Consumer }

// Consume makes the queue a consumer of a topic, until ShutDown. Its errors are
// those of [Queue.Subscribe]; one queue cannot do both with one topic.
func (q *Queue) Consume(topic string) (*Consumer, error) {
	if err := checkTopic(topic); err != nil {
		return nil, err
	}
	var c Consumer
	err := q.subscribe(topic, func(m *metric.Topic) (t *subscriber.Topic) {
		c.consumer, t = q.subscriber.AddConsumer(topic, m)
		return t
	})
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// Claim waits until at least one event is due, and claims at most limit (1 to
// 500) of those that are. It returns none when ctx ends first. Who asks first is
// served first. Each event has to be settled within visibility (100 ms to 24 h),
// or extended: else the attempt has failed, and it comes again. When the process
// dies, the event comes again after Options.Lease. The error wraps
// [ErrClaimInvalid] or [ErrShutDown].
func (c *Consumer) Claim(ctx context.Context, limit int, visibility time.Duration) ([]*Delivery, error) {
	deliveries, err := c.consumer.Claim(ctx, limit, visibility)
	switch {
	case errors.Is(err, subscriber.ErrStopping):
		return nil, ErrShutDown
	case err != nil:
		return nil, fmt.Errorf("dueq: %w", err)
	}
	return deliveries, nil
}
