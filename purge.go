package dueq

import (
	"context"
	"fmt"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/internal/key"
)

// Purge forgets all events of a topic that nobody holds, scheduled, ready and
// dead, and returns how many. The topic may be in use: an event that a process
// holds, alive or not, stays, and settles as if there had been no purge. One
// that is published meanwhile may be forgotten, or stay.
//
// It works in small steps. When ctx ends, or Redis fails, it stops, and n is what
// it is known to have forgotten by then; another call goes on. Its error wraps
// [ErrTopicInvalid], [ErrShutDown], [ErrOutcomeUnknown], ctx's cause, or why Redis
// refused.
func (q *Queue) Purge(ctx context.Context, topic string) (n int, err error) {
	if err := checkTopic(topic); err != nil {
		return 0, err
	}
	if err := q.check(); err != nil {
		return 0, err
	}
	counts, err := q.partitionCounts(ctx, topic)
	if err != nil {
		return 0, err
	}
	for _, partitions := range counts {
		q.mu.Lock()
		lanes := q.addLanes(q.topic(topic), partitions)
		q.mu.Unlock()
		for _, l := range lanes {
			forgotten, err := q.purgeLane(ctx, l)
			n += forgotten
			q.topicMetrics(topic).Cancelled.Add(int64(forgotten))
			if err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// purgeLane purges one lane until nothing is left that nobody holds.
func (q *Queue) purgeLane(ctx context.Context, l *key.Lane) (n int, err error) {
	for {
		if ctx.Err() != nil {
			return n, fmt.Errorf("dueq: purge topic %q: %w", l.Topic, context.Cause(ctx))
		}
		forgotten, err := bucket.Purge(context.WithoutCancel(ctx), q.rdb, l) // whole steps: n is exact
		n += forgotten
		if err != nil {
			return n, fmt.Errorf("dueq: %w", err)
		}
		if forgotten < bucket.PurgeBatch {
			return n, nil
		}
	}
}
