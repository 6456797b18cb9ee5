package dueq

import (
	"context"
	"fmt"

	"github.com/dueq-io/dueq/readyqueue"
)

// Pause stops the delivery of a topic in all processes, also in those that start
// later, until [Queue.Resume]: from when it returns, nobody gets an event.
// Events are published and fall due as ever. Handlers that run finish, and so do
// the few events that a process has claimed for them; what a handler retries
// waits. A topic may be paused before it is used. Pause may be called again; its
// error wraps [ErrTopicInvalid], [ErrShutDown], or why Redis refused, and then
// some of the topic's partitions may be paused.
func (q *Queue) Pause(ctx context.Context, topic string) error { return q.pause(ctx, topic, true) }

// Resume starts the delivery of a topic again, at once. Its errors are those of
// [Queue.Pause].
func (q *Queue) Resume(ctx context.Context, topic string) error { return q.pause(ctx, topic, false) }

func (q *Queue) pause(ctx context.Context, name string, paused bool) error {
	counts, err := q.partitionCounts(ctx, name)
	if err != nil {
		return err
	}
	if paused && len(counts) == 0 { // so that it is seen
		if _, err := q.open(ctx, name); err != nil {
			return err
		}
	}
	lanes := q.newLanes(name, []int{1, maxPartitions}) // all that it has or may get, by any partition count
	if err := readyqueue.Pause(ctx, q.rdb, lanes, paused); err != nil {
		return fmt.Errorf("dueq: %w", err)
	}
	return nil
}
