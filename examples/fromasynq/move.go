package fromasynq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/dueq-io/dueq"
)

// Move publishes with dueq what waits in an asynq queue, and deletes it there.
// The queue has to be paused, so that nothing becomes active meanwhile. If it is
// interrupted, call it again: an event has its task's id, and is published once.
func Move(ctx context.Context, from *asynq.Inspector, name string, to *dueq.Queue) (moved int, err error) {
	lists := []func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error){
		from.ListScheduledTasks, from.ListRetryTasks, from.ListPendingTasks,
	}
	for _, list := range lists {
		for {
			tasks, err := list(name, asynq.PageSize(500)) // always the first page: what is moved leaves it
			if err != nil || len(tasks) == 0 {
				if err != nil {
					return moved, fmt.Errorf("list queue %s: %w", name, err)
				}
				break
			}
			for _, task := range tasks {
				if err := moveTask(ctx, from, task, to); err != nil {
					return moved, fmt.Errorf("move task %s: %w", task.ID, err)
				}
				moved++
			}
		}
	}
	return moved, nil
}

// moveTask publishes first and deletes then: in between there are two of it,
// never none.
func moveTask(ctx context.Context, from *asynq.Inspector, task *asynq.TaskInfo, to *dueq.Queue) error {
	due := task.NextProcessAt
	if due.IsZero() {
		due = time.Now()
	}
	opts := []dueq.PublishOption{
		dueq.WithID(task.ID), dueq.WithKeyPolicy(dueq.KeyKeep),
		dueq.WithMaxAttempts(max(task.MaxRetry-task.Retried, 0) + 1), dueq.WithMetadata(task.Headers),
	}
	if _, err := to.PublishEvent(ctx, task.Type, task.Payload, due, opts...); err != nil {
		return err
	}
	err := from.DeleteTask(task.Queue, task.ID)
	if errors.Is(err, asynq.ErrTaskNotFound) {
		return nil // somebody else has
	}
	return err
}
