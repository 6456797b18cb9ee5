package delayqueue_test

import (
	"context"
	"fmt"
	"time"

	"github.com/dueq-io/dueq/delayqueue"
)

func Example() {
	ctx := context.Background()
	q := delayqueue.New[string](0)
	now := time.Now()
	for _, item := range []struct {
		name  string
		delay time.Duration
	}{
		{"third", 30 * time.Millisecond},
		{"first", 10 * time.Millisecond},
		{"second", 20 * time.Millisecond},
	} {
		if err := q.Enqueue(ctx, item.name, now.Add(item.delay)); err != nil {
			fmt.Println(err)
			return
		}
	}
	for range 3 {
		name, err := q.Dequeue(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(name)
	}
	// Output:
	// first
	// second
	// third
}

// A full queue makes Enqueue wait until a Dequeue makes room, or until the
// context ends.
func ExampleNew_capacity() {
	q := delayqueue.New[string](1)
	if err := q.Enqueue(context.Background(), "fits", time.Now()); err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	fmt.Println(q.Enqueue(ctx, "does not", time.Now()))
	fmt.Println(q.Len())
	// Output:
	// context deadline exceeded
	// 1
}

// The context bounds the wait for an item that is not due yet.
func ExampleQueue_Dequeue() {
	q := delayqueue.New[string](0)
	if err := q.Enqueue(context.Background(), "tomorrow", time.Now().AddDate(0, 0, 1)); err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := q.Dequeue(ctx)
	fmt.Println(err)
	// Output: context deadline exceeded
}
