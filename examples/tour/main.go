// Command tour is the program in the README: it schedules the end of an order, and
// handles the end of any.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "tour:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	q, err := dueq.New(rdb, dueq.Options{})
	if err != nil {
		return err
	}

	// any process: publish
	id, err := q.PublishEvent(ctx, "order.close", []byte(`{"order":42}`), time.Now().Add(30*time.Minute))
	if err != nil {
		return err
	}
	fmt.Println("q.Cancel, q.Reschedule and q.Get take this id:", id)

	// any process: handle
	err = q.Subscribe("order.close", dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
		return closeOrder(ctx, e.Body) // nil: done; an error: again later
	}))
	if err != nil {
		return err
	}
	return q.Run(ctx) // until ctx ends or SIGTERM; then running handlers finish, the rest goes to other processes
}

// closeOrder is the work.
func closeOrder(_ context.Context, body []byte) error {
	fmt.Printf("close %s\n", body)
	return nil
}
