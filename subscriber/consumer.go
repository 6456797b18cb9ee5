package subscriber

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dueq-io/dueq/readyqueue"
)

const (
	minVisibility = 100 * time.Millisecond
	maxVisibility = 24 * time.Hour
)

// ErrClaimInvalid says that a limit is not from 1 to 500, or a visibility time
// not from 100 milliseconds to 24 hours.
var ErrClaimInvalid = errors.New("invalid claim")

// Consumer hands a topic's events to those who ask for them. What is claimed from
// Redis is what they ask for.
type Consumer struct {
	topic    *Topic
	failures chan struct{} // full while as many PersistFns run as there may be

	// The topic's mu guards these.
	claims  []*claim // that wait, in order of arrival
	wanted  int      // by all of them
	failing int      // events on their way to PersistFn, or to dead
}

// room is how many events the claims ask for, beyond those that are on their
// way: none while too many events fail. The topic's mu is held.
func (c *Consumer) room() int {
	if c.failing >= c.topic.s.opts.Concurrency {
		return 0
	}
	return max(0, c.wanted-c.topic.claiming)
}

// claim is a Claim that waits.
type claim struct {
	limit      int
	visibility time.Duration
	got        chan []*Delivery // gets one value, or is closed with the topic
}

// Claim waits until at least one event is due, and claims at most limit of them, to
// be settled within visibility. It returns none when ctx ends first, and
// [ErrStopping] once the subscriber drains.
func (c *Consumer) Claim(ctx context.Context, limit int, visibility time.Duration) ([]*Delivery, error) {
	if limit < 1 || limit > readyqueue.MaxBatch {
		return nil, fmt.Errorf("%w: limit is %d, not from 1 to %d", ErrClaimInvalid, limit, readyqueue.MaxBatch)
	}
	if err := checkVisibility(visibility); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, nil
	default:
	}
	w := &claim{limit: limit, visibility: visibility, got: make(chan []*Delivery, 1)}
	if !c.ask(w) {
		return nil, ErrStopping
	}
	got, ok := c.wait(ctx, w)
	if !ok {
		return nil, ErrStopping
	}
	for _, d := range got {
		d.trace(ctx)
	}
	return got, nil
}

// wait waits for what a claim gets: nothing if ctx ends first, and not ok if the
// topic is closed.
func (c *Consumer) wait(ctx context.Context, w *claim) (got []*Delivery, ok bool) {
	select {
	case got, ok = <-w.got:
		return got, ok
	case <-ctx.Done():
	}
	if c.withdraw(w) {
		return nil, true
	}
	got, ok = <-w.got // it was served, or closed, at this moment
	return got, ok
}

func checkVisibility(v time.Duration) error {
	if v < minVisibility || v > maxVisibility {
		return fmt.Errorf("%w: visibility time is %v, not from %v to %v", ErrClaimInvalid, v, minVisibility, maxVisibility)
	}
	return nil
}

// ask makes a claim wait. It reports false if the topic is closed.
func (c *Consumer) ask(w *claim) bool {
	c.topic.mu.Lock()
	defer c.topic.mu.Unlock()
	if c.topic.closed {
		return false
	}
	c.claims = append(c.claims, w)
	c.wanted += w.limit
	c.topic.feed()
	return true
}

// withdraw reports false if the claim has been served meanwhile.
func (c *Consumer) withdraw(w *claim) bool {
	c.topic.mu.Lock()
	defer c.topic.mu.Unlock()
	i := slices.Index(c.claims, w)
	if i < 0 {
		return false
	}
	c.claims = slices.Delete(c.claims, i, i+1)
	c.wanted -= w.limit
	return true
}

// take serves the claims that wait, in their order; what nobody waits for any more
// goes back. The topic's mu is held.
func (c *Consumer) take(deliveries []*delivery) {
	deliveries = slices.DeleteFunc(deliveries, func(d *delivery) bool {
		if d.worn() {
			d.pulled.failWorn()
		}
		return d.worn()
	})
	for len(deliveries) > 0 && len(c.claims) > 0 {
		w := c.claims[0]
		n := min(w.limit, len(deliveries))
		got := make([]*Delivery, n)
		for i, d := range deliveries[:n] {
			d.pulled.start(w.visibility)
			got[i] = d.pulled
		}
		w.got <- got
		deliveries = deliveries[n:]
		c.claims[0] = nil
		c.claims = c.claims[1:]
		c.wanted -= w.limit
	}
	c.topic.s.release(deliveries)
	if len(c.claims) > 0 {
		c.topic.feed()
	}
}

// fail hands an event that has failed for good to PersistFn, which may take its
// time, or buries it.
func (c *Consumer) fail(d *delivery, cause error) {
	defer func() {
		c.topic.mu.Lock()
		defer c.topic.mu.Unlock()
		c.failing--
		c.topic.feed()
	}()
	c.failures <- struct{}{}
	defer func() { <-c.failures }()
	if d.settled.Load() {
		return // lost, or given back, while it waited
	}
	defer d.buryUnsettled()
	c.topic.fail(d, cause)
}

// close ends all claims. The topic's mu is held.
func (c *Consumer) close() {
	for _, w := range c.claims {
		close(w.got)
	}
	c.claims, c.wanted = nil, 0
}
