package delayqueue_test

import (
	"testing"
	"time"

	"github.com/dueq-io/dueq/delayqueue"
)

// The tests in this file are not parallel: testing.AllocsPerRun counts what the
// whole process allocates.

func TestSteadyUseDoesNotAllocate(t *testing.T) {
	ctx := t.Context()
	q := delayqueue.New[int](64)
	for i := range 32 {
		put(t, q, i, 0)
	}
	due := time.Now()
	stored := due.Round(0) // as a due time from elsewhere: no monotonic reading
	allocs := testing.AllocsPerRun(1000, func() {
		if err := q.Enqueue(ctx, 1, due); err != nil {
			t.Fatal(err)
		}
		if err := q.Enqueue(ctx, 2, stored); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := q.Dequeue(ctx); err != nil {
				t.Fatal(err)
			}
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per round, want 0", allocs)
	}
}

func TestWaitingDoesNotAllocate(t *testing.T) {
	ctx := t.Context()
	q := delayqueue.New[int](0)
	allocs := testing.AllocsPerRun(100, func() {
		if err := q.Enqueue(ctx, 1, time.Now().Add(20*time.Microsecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Dequeue(ctx); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per wait, want 0", allocs)
	}
}
