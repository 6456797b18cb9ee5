package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
)

// open returns a queue on a Redis of its own, and what ends both.
func open(opts dueq.Options) (q *dueq.Queue, closeAll func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	q, err = dueq.New(rdb, opts)
	if err != nil {
		panic(err)
	}
	return q, func() {
		_ = q.ShutDown(context.Background()) // ErrShutDown, where the example has done it
		_ = rdb.Close()
		server.Close()
	}
}

func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer func() { _ = rdb.Close() }()

	q, err := dueq.New(rdb, dueq.Options{Namespace: "shop", MaxAttempts: 5})
	fmt.Println(q != nil, err)

	_, err = dueq.New(rdb, dueq.Options{Buckets: -1})
	fmt.Println(err)
	// Output:
	// true <nil>
	// dueq: invalid options: option Buckets is -1, not from 1 to 1024
}

func ExampleQueue_PublishEvent() {
	q, closeAll := open(dueq.Options{}) // dueq.New(rdb, dueq.Options{})
	defer closeAll()
	ctx := context.Background()

	due := time.Date(2100, 1, 1, 12, 30, 0, 0, time.UTC)
	id, err := q.PublishEvent(ctx, "order.close", []byte(`{"order":17}`), due)
	if err != nil {
		fmt.Println(err)
		return
	}
	info, err := q.Get(ctx, "order.close", id)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(info.State, info.Due.UTC(), string(info.Body))
	// Output: scheduled 2100-01-01 12:30:00 +0000 UTC {"order":17}
}

func ExampleQueue_PublishEvents() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()

	due := time.Now().Add(24 * time.Hour)
	ids, err := q.PublishEvents(context.Background(), "reminder", []dueq.NewEvent{
		{Body: []byte("Ada"), EffectTime: due},
		{Body: []byte("Grace"), EffectTime: due, ID: "grace"},
		{Body: []byte("Grace, again"), EffectTime: due, ID: "grace"},
	})
	if failed, ok := errors.AsType[*dueq.BatchError](err); ok {
		fmt.Println(failed.Stored, "stored; the third:", errors.Is(failed.Errs[2], dueq.ErrDuplicateID))
	}
	fmt.Println(len(ids[0]), ids[1:])
	// Output:
	// 2 stored; the third: true
	// 14 [grace ]
}

func ExampleQueue_Subscribe() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()

	done := make(chan struct{})
	err := q.Subscribe("greet", dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
		fmt.Printf("hello %s, attempt %d\n", e.Body, e.Attempt)
		close(done)
		return nil // an error or a panic would make it come again
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := q.PublishEvent(context.Background(), "greet", []byte("Ada"), time.Now().Add(20*time.Millisecond)); err != nil {
		fmt.Println(err)
		return
	}
	<-done
	// Output: hello Ada, attempt 1
}

// Each of several handlers must succeed; a retry runs only those that have not.
func ExampleQueue_Subscribe_severalHandlers() {
	q, closeAll := open(dueq.Options{Backoff: func(int, error) time.Duration { return 0 }})
	defer closeAll()

	done := make(chan struct{})
	bill := func(_ context.Context, e *dueq.Event) error {
		fmt.Println("bill", string(e.Body))
		return nil
	}
	ship := func(_ context.Context, e *dueq.Event) error {
		if e.Attempt == 1 {
			fmt.Println("out of boxes")
			return errors.New("out of boxes")
		}
		fmt.Println("ship", string(e.Body))
		close(done)
		return nil
	}
	if err := q.Subscribe("order", dueq.HandlerFunc(bill), dueq.HandlerFunc(ship)); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := q.PublishEvent(context.Background(), "order", []byte("17"), time.Now()); err != nil {
		fmt.Println(err)
		return
	}
	<-done
	// Output:
	// bill 17
	// out of boxes
	// ship 17
}

// However often a page is edited within a short time, it is rendered once, after
// the last edit.
func ExampleWithID() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()

	done := make(chan struct{})
	render := func(_ context.Context, e *dueq.Event) error {
		fmt.Printf("render %s as of %s\n", e.ID, e.Body)
		close(done)
		return nil
	}
	for _, edit := range []string{"first edit", "second edit", "third edit"} {
		_, err := q.PublishEvent(context.Background(), "render", []byte(edit), time.Now().Add(time.Second),
			dueq.WithID("page 7"), dueq.WithKeyPolicy(dueq.KeyReplace))
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := q.Subscribe("render", dueq.HandlerFunc(render)); err != nil {
		fmt.Println(err)
		return
	}
	<-done
	// Output: render page 7 as of third edit
}

// KeyKeep leaves the time of the first publish: the counter is written at most
// once in a while, and its last value always is.
func ExampleWithKeyPolicy() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()
	ctx := context.Background()

	for range 3 {
		_, err := q.PublishEvent(ctx, "flush", nil, time.Now().Add(time.Minute),
			dueq.WithID("counter 7"), dueq.WithKeyPolicy(dueq.KeyKeep))
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	stats, err := q.Stats(ctx, "flush")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(stats.Scheduled, "scheduled,", stats.Kept, "kept")
	// Output: 1 scheduled, 2 kept
}

// RetryAfter is for a handler that knows better than the backoff when to try
// again.
func ExampleRetryAfter() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()

	done := make(chan struct{})
	call := func(_ context.Context, e *dueq.Event) error {
		if e.Attempt == 1 {
			fmt.Println("429 Too Many Requests, Retry-After: 0.05")
			return dueq.RetryAfter(50*time.Millisecond, errors.New("too many requests"))
		}
		fmt.Println("200 OK, attempt", e.Attempt)
		close(done)
		return nil
	}
	if err := q.Subscribe("call", dueq.HandlerFunc(call)); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := q.PublishEvent(context.Background(), "call", nil, time.Now()); err != nil {
		fmt.Println(err)
		return
	}
	<-done
	// Output:
	// 429 Too Many Requests, Retry-After: 0.05
	// 200 OK, attempt 2
}

// SkipRetry is for an event that no further attempt would help. PersistFn takes
// what has failed for good.
func ExampleSkipRetry() {
	done := make(chan struct{})
	q, closeAll := open(dueq.Options{
		PersistFn: func(_ context.Context, e *dueq.Event, cause error) error {
			fmt.Printf("stored %q after %d attempt: %v\n", e.Body, e.Attempt, cause)
			close(done)
			return nil // it is ours now: forget it
		},
	})
	defer closeAll()

	parse := func(context.Context, *dueq.Event) error { return dueq.SkipRetry(errors.New("not JSON")) }
	if err := q.Subscribe("parse", dueq.HandlerFunc(parse)); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := q.PublishEvent(context.Background(), "parse", []byte("{"), time.Now()); err != nil {
		fmt.Println(err)
		return
	}
	<-done
	// Output: stored "{" after 1 attempt: no more attempts: not JSON
}

func ExampleQueue_Run() {
	q, closeAll := open(dueq.Options{ShutdownTimeout: 10 * time.Second})
	defer closeAll()

	ctx, cancel := context.WithCancel(context.Background())
	last := func(_ context.Context, e *dueq.Event) error {
		fmt.Println("handled", string(e.Body))
		cancel()
		return nil
	}
	if err := q.Subscribe("jobs", dueq.HandlerFunc(last)); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := q.PublishEvent(context.Background(), "jobs", []byte("the last job"), time.Now()); err != nil {
		fmt.Println(err)
		return
	}
	err := q.Run(ctx) // until ctx ends, or SIGINT, or SIGTERM
	fmt.Println("shut down:", err)
	// Output:
	// handled the last job
	// shut down: <nil>
}

func ExampleQueue_Reschedule() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()
	ctx := context.Background()

	id, err := q.PublishEvent(ctx, "order.close", nil, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := q.Reschedule(ctx, "order.close", id, time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		fmt.Println(err)
		return
	}
	info, err := q.Get(ctx, "order.close", id)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(info.EffectTime.UTC())
	// Output: 2101-01-01 00:00:00 +0000 UTC
}

func ExampleQueue_Cancel() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()
	ctx := context.Background()

	id, err := q.PublishEvent(ctx, "order.close", nil, time.Now().Add(time.Hour))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(q.Cancel(ctx, "order.close", id))
	fmt.Println(errors.Is(q.Cancel(ctx, "order.close", id), dueq.ErrNotFound))
	// Output:
	// <nil>
	// true
}

func ExampleQueue_Stats() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()
	ctx := context.Background()

	for range 3 {
		if _, err := q.PublishEvent(ctx, "reminder", nil, time.Now().Add(time.Hour)); err != nil {
			fmt.Println(err)
			return
		}
	}
	topics, err := q.Topics(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, topic := range topics {
		stats, err := q.Stats(ctx, topic)
		fmt.Printf("%s: %d scheduled, %d ready, %d leased, %d dead, %v\n",
			topic, stats.Scheduled, stats.Ready, stats.Leased, stats.Dead, err)
	}
	// Output: reminder: 3 scheduled, 0 ready, 0 leased, 0 dead, <nil>
}

func ExampleConsumer_Claim() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()
	ctx := context.Background()

	mails, err := q.Consume("mail")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := q.PublishEvent(ctx, "mail", []byte("hello Ada"), time.Now()); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		claimed, err := mails.Claim(ctx, 10, 30*time.Second) // waits for at least one
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, d := range claimed {
			fmt.Printf("%s, attempt %d\n", d.Body, d.Attempt)
			if d.Attempt == 1 {
				err = d.Retry(ctx, 10*time.Millisecond, errors.New("mailbox full"))
			} else {
				err = d.Ack(ctx)
			}
			fmt.Println(err)
		}
	}
	// Output:
	// hello Ada, attempt 1
	// <nil>
	// hello Ada, attempt 2
	// <nil>
}

func ExampleQueue_Use() {
	q, closeAll := open(dueq.Options{})
	defer closeAll()

	done := make(chan struct{})
	q.Use(func(next dueq.Handler) dueq.Handler {
		return dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
			fmt.Println("begin", e.Topic)
			err := next.HandleEvent(ctx, e)
			fmt.Println("end", e.Topic, err)
			close(done)
			return err
		})
	})
	err := q.Subscribe("greet", dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
		fmt.Println("hello", string(e.Body))
		return nil
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := q.PublishEvent(context.Background(), "greet", []byte("Ada"), time.Now()); err != nil {
		fmt.Println(err)
		return
	}
	<-done
	// Output:
	// begin greet
	// hello Ada
	// end greet <nil>
}
