package delayqueue_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/dueq-io/dueq/delayqueue"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[int](0)
		const n = 500
		for _, i := range rand.Perm(n) {
			put(t, q, i, time.Duration(i+1)*time.Second)
		}
		for i := range n {
			take(t, q, i, time.Second)
		}
	})
}

func TestEqualDueTimesKeepOrderOfEnqueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[int](0)
		const n = 100
		for i := range n { // two due times, in turns
			put(t, q, i, time.Duration(i%2)*time.Second)
		}
		pass(time.Second)
		for i := 0; i < n; i += 2 {
			take(t, q, i, 0)
		}
		for i := 1; i < n; i += 2 {
			take(t, q, i, 0)
		}
	})
}

func TestPastDueTimesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[int](0)
		put(t, q, 3, 0)
		put(t, q, 2, -time.Second)
		put(t, q, 1, -time.Hour)
		for want := 1; want <= 3; want++ {
			take(t, q, want, 0)
		}
	})
}

func TestLenCountsItemsDueOrNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[string](0)
		put(t, q, "due", 0)
		put(t, q, "later", time.Hour)
		if n := q.Len(); n != 2 {
			t.Fatalf("Len = %d, want 2", n)
		}
		take(t, q, "due", 0)
		if n := q.Len(); n != 1 {
			t.Fatalf("Len = %d, want 1", n)
		}
	})
}

func TestNegativeCapacity(t *testing.T) {
	t.Parallel()
	q := delayqueue.New[int](-1)
	err := q.Enqueue(t.Context(), 1, time.Now())
	if !errors.Is(err, delayqueue.ErrCapacity) {
		t.Fatalf("Enqueue = %v, want ErrCapacity", err)
	}
	if n := q.Len(); n != 0 {
		t.Fatalf("Len = %d, want 0", n)
	}
}

func TestEndedContextDoesNothing(t *testing.T) {
	t.Parallel()
	q := delayqueue.New[int](0)
	put(t, q, 1, 0)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errCause)

	if err := q.Enqueue(ctx, 2, time.Now()); !errors.Is(err, context.Canceled) {
		t.Errorf("Enqueue = %v, want %v", err, context.Canceled)
	}
	item, err := q.Dequeue(ctx)
	if item != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("Dequeue = %v, %v, want 0, %v", item, err, context.Canceled)
	}
	if n := q.Len(); n != 1 {
		t.Errorf("Len = %d, want 1", n)
	}
}

func TestPoppedItemCanBeCollected(t *testing.T) {
	t.Parallel()
	q := delayqueue.New[*[64]byte](0)
	p := func() weak.Pointer[[64]byte] {
		item := new([64]byte)
		put(t, q, item, 0)
		if _, err := q.Dequeue(t.Context()); err != nil {
			t.Fatal(err)
		}
		return weak.Make(item)
	}()
	runtime.GC()
	if p.Value() != nil {
		t.Fatal("the queue still holds an item it has given out")
	}
	runtime.KeepAlive(q)
}

func TestGrowAndShrink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[int](0)
		const n = 40_000
		for round := range 2 {
			for _, i := range rand.Perm(n) {
				put(t, q, i, time.Duration(i)*time.Microsecond)
			}
			pass(time.Second)
			for i := range n {
				take(t, q, i, 0)
			}
			if left := q.Len(); left != 0 {
				t.Fatalf("round %d: Len = %d, want 0", round, left)
			}
			if c := q.Cap(); c > n/8 {
				t.Errorf("round %d: Cap = %d after all is taken out", round, c)
			}
		}
	})
}
