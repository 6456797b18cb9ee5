package subscriber

import "context"

// Waiting is how many claims wait.
func (c *Consumer) Waiting() int {
	c.topic.mu.Lock()
	defer c.topic.mu.Unlock()
	return len(c.claims)
}

// HearOf has the delivery's caller told an outcome, and listens for it.
func (d *Delivery) HearOf(ctx context.Context, outcome error) error {
	d.lease.tell(outcome)
	return d.hear(ctx)
}
