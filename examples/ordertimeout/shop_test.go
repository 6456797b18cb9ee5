package ordertimeout_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // registers the driver

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/examples/internal/scratch"
	"github.com/dueq-io/dueq/examples/ordertimeout"
)

// open returns a shop on a database and a Redis of its own.
func open(patience time.Duration) (*ordertimeout.Shop, func()) {
	queue, _, closeQueue, err := scratch.Open(dueq.Options{})
	if err != nil {
		panic(err)
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	if _, err := db.Exec(ordertimeout.Schema); err != nil {
		panic(err)
	}
	shop := &ordertimeout.Shop{DB: db, Queue: queue, Patience: patience}
	return shop, func() {
		if err := errors.Join(closeQueue(), db.Close()); err != nil {
			panic(err)
		}
	}
}

func Example() {
	shop, closeAll := open(30 * time.Minute)
	defer closeAll()
	ctx := context.Background()

	over := make(chan string)
	err := shop.Queue.Subscribe("order.close", shop, dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
		over <- e.ID
		return nil
	}))
	if err != nil {
		panic(err)
	}
	for _, order := range []string{"apples", "pears"} {
		if err := shop.Place(ctx, order); err != nil {
			panic(err)
		}
	}
	fmt.Println("apples in time:", shop.Pay(ctx, "apples"))
	// Half an hour later, or right now, as this example is in a hurry.
	if err := shop.Queue.Reschedule(ctx, "order.close", "pears", time.Now()); err != nil {
		panic(err)
	}
	<-over // only pears: the event of apples is cancelled
	fmt.Println("pears too late:", shop.Pay(ctx, "pears"))
	// Output:
	// apples in time: <nil>
	// closed pears
	// pears too late: pay order pears: order is closed
}

// However a payment and the end of its time meet, one of them wins.
func TestPayOrClose(t *testing.T) {
	t.Parallel()
	shop, closeAll := open(time.Hour)
	t.Cleanup(closeAll)
	for i := range 50 {
		order := fmt.Sprint("order ", i)
		if err := shop.Place(t.Context(), order); err != nil {
			t.Fatal(err)
		}
		var paid, closed error
		var both sync.WaitGroup
		both.Go(func() { paid = shop.Pay(t.Context(), order) })
		both.Go(func() {
			closed = shop.HandleEvent(t.Context(), &dueq.Event{ID: order, Body: []byte(order)})
		})
		both.Wait()
		if closed != nil {
			t.Fatal(closed)
		}
		var state string
		if err := shop.DB.QueryRow(`SELECT state FROM orders WHERE id = ?`, order).Scan(&state); err != nil {
			t.Fatal(err)
		}
		switch {
		case paid == nil && state == "paid", errors.Is(paid, ordertimeout.ErrClosed) && state == "closed":
		default:
			t.Fatalf("%s is %s, and paying it returned %v", order, state, paid)
		}
	}
}

func TestPlaceTwiceAndExtend(t *testing.T) {
	t.Parallel()
	shop, closeAll := open(time.Hour)
	t.Cleanup(closeAll)
	for range 2 {
		if err := shop.Place(t.Context(), "plums"); err != nil {
			t.Fatal(err)
		}
	}
	before, err := shop.Queue.Get(t.Context(), "order.close", "plums")
	if err != nil {
		t.Fatal(err)
	}
	if err := shop.Extend(t.Context(), "plums", 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	after, err := shop.Queue.Get(t.Context(), "order.close", "plums")
	if err != nil {
		t.Fatal(err)
	}
	if more := after.Due.Sub(before.Due); more < time.Hour {
		t.Errorf("extended by %v", more)
	}
	if err := shop.Pay(t.Context(), "plums"); err != nil {
		t.Fatal(err)
	}
	if _, err := shop.Queue.Get(t.Context(), "order.close", "plums"); !errors.Is(err, dueq.ErrNotFound) {
		t.Errorf("the event of a paid order: %v", err)
	}
}
