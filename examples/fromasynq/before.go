// Package fromasynq is a small program on asynq, the same on dueq, and what
// moves its tasks from one to the other. The guide is docs/from-asynq.md.
package fromasynq

import (
	"context"
	"time"

	"github.com/hibiken/asynq"
)

// enqueueBefore publishes with asynq.
func enqueueBefore(client *asynq.Client, order string) error {
	task := asynq.NewTask("order:close", []byte(order))
	_, err := client.Enqueue(task, asynq.ProcessIn(30*time.Minute), asynq.TaskID(order), asynq.MaxRetry(9))
	return err
}

// serveBefore handles with asynq, until SIGTERM.
func serveBefore(addr string) error {
	server := asynq.NewServer(asynq.RedisClientOpt{Addr: addr}, asynq.Config{Concurrency: 64})
	mux := asynq.NewServeMux()
	mux.HandleFunc("order:close", func(ctx context.Context, t *asynq.Task) error {
		return closeOrder(ctx, t.Payload())
	})
	return server.Run(mux)
}
