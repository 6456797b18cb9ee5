package carrier

import (
	"context"

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
