// Package scratch gives examples a queue on a Redis within the process.
package scratch

import (
	"context"
	"errors"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
)

// Open returns a queue, the client of the Redis on which it is, and what ends
// both.
func Open(opts dueq.Options) (*dueq.Queue, *redis.Client, func() error, error) {
	server, err := miniredis.Run()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("start miniredis: %w", err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	queue, err := dueq.New(rdb, opts)
	if err != nil {
		server.Close()
		return nil, nil, nil, err
	}
	return queue, rdb, func() error {
		defer server.Close()
		return errors.Join(queue.ShutDown(context.Background()), rdb.Close())
	}, nil
}
