package counter_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	_ "modernc.org/sqlite" // registers the driver

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/examples/counter"
	"github.com/dueq-io/dueq/examples/internal/scratch"
)

// open returns a counter on a database and a Redis of its own.
func open() (*counter.Counter, func()) {
	queue, rdb, closeQueue, err := scratch.Open(dueq.Options{})
	if err != nil {
		panic(err)
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	if _, err := db.Exec(counter.Schema); err != nil {
		panic(err)
	}
	c := &counter.Counter{Redis: rdb, Queue: queue, DB: db, Window: 100 * time.Millisecond}
	return c, func() {
		_ = closeQueue()
		_ = db.Close()
	}
}

func Example() {
	c, closeAll := open()
	defer closeAll()
	ctx := context.Background()

	for range 1000 {
		if err := c.Add(ctx, "/index.html"); err != nil {
			panic(err)
		}
	}
	writes := make(chan struct{}, 1000)
	err := c.Queue.Subscribe("flush", c, dueq.HandlerFunc(func(context.Context, *dueq.Event) error {
		writes <- struct{}{}
		return nil
	}))
	if err != nil {
		panic(err)
	}
	<-writes
	var total int
	if err := c.DB.QueryRow(`SELECT total FROM totals`).Scan(&total); err != nil {
		panic(err)
	}
	fmt.Println(total, "views in the database after the first write")
	// Output: 1000 views in the database after the first write
}

// A count that comes while its name is being written is written afterwards.
func TestCountDuringFlush(t *testing.T) {
	t.Parallel()
	c, closeAll := open()
	t.Cleanup(closeAll)
	if err := c.Add(t.Context(), "clicks"); err != nil {
		t.Fatal(err)
	}
	runs := make(chan struct{})
	run := 0
	err := c.Queue.Subscribe("flush", c, dueq.HandlerFunc(func(ctx context.Context, _ *dueq.Event) error {
		if run++; run == 1 { // the total has been written; the event is still held
			if err := c.Add(ctx, "clicks"); err != nil {
				t.Error(err)
			}
		}
		runs <- struct{}{}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	<-runs
	<-runs
	var total int
	if err := c.DB.QueryRow(`SELECT total FROM totals`).Scan(&total); err != nil {
		t.Fatal(err)
	}
	if total != 2 {
		t.Errorf("%d in the database, want 2", total)
	}
}

func TestEdited(t *testing.T) {
	t.Parallel()
	c, closeAll := open()
	t.Cleanup(closeAll)
	for _, text := range []string{"first", "second", "third"} {
		if err := counter.Edited(t.Context(), c.Queue, "page 7", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	info, err := c.Queue.Get(t.Context(), "render", "page 7")
	if err != nil {
		t.Fatal(err)
	}
	if string(info.Body) != "third" {
		t.Errorf("%q will be rendered", info.Body)
	}
	if stats, err := c.Queue.Stats(t.Context(), "render"); err != nil || stats.Scheduled != 1 {
		t.Errorf("%d scheduled, %v", stats.Scheduled, err)
	}
}
