package dueq

import (
	"context"
	"time"
)

// Consumer claims events of a topic when it is asked to, where a subscription
// has handlers called.
type Consumer struct{}

// Delivery is an event that a [Consumer] has claimed. One of Ack, Retry, Fail and
// Release ends it; a later one returns [ErrLeaseLost]. So does any after its
// visibility time has passed: then it has come again, one attempt used up.
type Delivery struct {
	*Event
}

// Consume makes the queue a consumer of a topic, until ShutDown. Its errors are
// those of [Queue.Subscribe]; one queue cannot do both with one topic.
func (q *Queue) Consume(_ string) (*Consumer, error) { return nil, errNotBuilt }

// Claim waits until at least one event is due, and claims at most limit (1 to
// 500). It returns none when ctx ends first. Each has to be settled within
// visibility (100 ms to 24 h), or extended.
func (c *Consumer) Claim(_ context.Context, _ int, _ time.Duration) ([]*Delivery, error) {
	return nil, errNotBuilt
}

// Ack forgets the event. Once it returns nil, Redis has done so.
func (d *Delivery) Ack(_ context.Context) error { return errNotBuilt }

// Retry makes the event come again after a pause, one attempt used up; below
// zero it is that of Options.Backoff. After the last attempt the event has failed
// for good.
func (d *Delivery) Retry(_ context.Context, _ time.Duration, _ error) error { return errNotBuilt }

// Fail ends the event's attempts: it has failed for good.
func (d *Delivery) Fail(_ context.Context, _ error) error { return errNotBuilt }

// Release gives the event back at no cost in attempts.
func (d *Delivery) Release(_ context.Context) error { return errNotBuilt }

// Extend makes the visibility time end so long from now.
func (d *Delivery) Extend(_ time.Duration) error { return errNotBuilt }

// Done is closed when the delivery has ended, by whichever hand.
func (d *Delivery) Done() <-chan struct{} { return nil }
