package dueq

import (
	"context"
	"errors"
)

var errNotBuilt = errors.New("dueq: not built yet")

// Pause stops the delivery of a topic in all processes, until [Queue.Resume].
// Events are published and fall due as ever; handlers that run finish.
func (q *Queue) Pause(_ context.Context, _ string) error { return errNotBuilt }

// Resume starts the delivery of a topic again.
func (q *Queue) Resume(_ context.Context, _ string) error { return errNotBuilt }
