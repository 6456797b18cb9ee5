package carrier

import (
	"context"
	"time"

	"github.com/dueq-io/dueq/readyqueue"
)

// Next waits for the next alarm and returns its lane.
func (c *Carrier) Next(ctx context.Context) (*Lane, error) { return c.clock.Dequeue(ctx) }

// Begin starts a turn.
func (l *Lane) Begin() (due []int, sessions, ok bool) {
	t, ok := l.begin()
	return t.due, t.sessions, ok
}

// End ends a turn.
func (l *Lane) End(found readyqueue.Claimed, again bool, err error) { l.end(found, again, err) }

// Expired notes the earliest session deadline that is left.
func (l *Lane) Expired(next int64) { l.expired(next) }

// Hear takes in a message of the lane's channel.
func (l *Lane) Hear(message string) { l.alarm(message) }

// Audits says when each lane's events are to be counted next.
type Audits = audits

// Audit counts the events of at most one lane.
func (c *Carrier) Audit(ctx context.Context, a Audits, now time.Time) error {
	return c.audit(ctx, a, now)
}
