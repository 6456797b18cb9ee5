package delayqueue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dueq-io/dueq/delayqueue"
)

func TestDequeueWaitsUntilDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[string](0)
		put(t, q, "hour", time.Hour)
		put(t, q, "nanosecond", time.Nanosecond)
		take(t, q, "nanosecond", time.Nanosecond)
		take(t, q, "hour", time.Hour-time.Nanosecond)
	})
}

func TestEarlierItemShortensTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[int](0)
		start := time.Now()
		first := dequeue(t.Context(), q)
		second := dequeue(t.Context(), q)
		third := dequeue(t.Context(), q)
		for _, hours := range []int{5, 3, 4, 1} { // 5 is left
			put(t, q, hours, time.Duration(hours)*time.Hour)
			synctest.Wait()
		}
		got := map[int]time.Duration{}
		for _, done := range []<-chan result{first, second, third} {
			r := <-done
			if r.err != nil {
				t.Fatal(r.err)
			}
			got[r.item] = r.at.Sub(start)
		}
		for _, hours := range []int{1, 3, 4} {
			if want := time.Duration(hours) * time.Hour; got[hours] != want {
				t.Errorf("item %d came after %v, want %v", hours, got[hours], want)
			}
		}
	})
}

func TestDequeuesAreServedInOrderOfCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[int](0)
		const n = 10
		var waiting [n]<-chan result
		for i := range waiting {
			waiting[i] = dequeue(t.Context(), q)
			synctest.Wait()
		}
		for i := range waiting {
			put(t, q, i, time.Duration(i)*time.Second)
		}
		for i, done := range waiting {
			if r := <-done; r.item != i || r.err != nil {
				t.Errorf("Dequeue %d = %d, %v", i, r.item, r.err)
			}
		}
	})
}

func TestItemsDueAtOnceWakeAsManyDequeues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[int](0)
		due := time.Now().Add(time.Minute)
		const n = 10
		var waiting [n + 1]<-chan result
		for i := range waiting {
			waiting[i] = dequeue(t.Context(), q)
		}
		for i := range n {
			if err := q.Enqueue(t.Context(), i, due); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Minute)
		synctest.Wait()
		served := 0
		for _, done := range waiting {
			select {
			case r := <-done:
				served++
				if r.err != nil || !r.at.Equal(due) {
					t.Errorf("Dequeue = %d, %v at %v, want it at %v", r.item, r.err, r.at, due)
				}
			default:
			}
		}
		if served != n {
			t.Errorf("%d Dequeues were served, want %d", served, n)
		}
		put(t, q, n, 0) // for the one that still waits
	})
}

func TestEnqueueWaitsForRoomInOrderOfCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[int](2)
		put(t, q, 0, 0)
		put(t, q, 1, 0)
		var waiting []<-chan error
		for i := 2; i < 6; i++ {
			waiting = append(waiting, enqueue(t.Context(), q, i))
			synctest.Wait()
			pass(time.Second) // later calls have later due times
		}
		for i := range 6 {
			if n := q.Len(); n != min(2, 6-i) {
				t.Fatalf("Len before item %d = %d", i, n)
			}
			take(t, q, i, 0)
			synctest.Wait()
		}
		for _, done := range waiting {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestEnqueueDoesNotOvertakeOneThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[int](1)
		put(t, q, 0, 0)
		for i := range 100 {
			first := enqueue(t.Context(), q, 2*i+1)
			synctest.Wait()
			take(t, q, 2*i, 0)
			second := enqueue(t.Context(), q, 2*i+2)
			take(t, q, 2*i+1, 0)
			if err := errors.Join(<-first, <-second); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestRoomForSeveralReachesAsManyEnqueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			q := delayqueue.New[int](4)
			for range 4 {
				put(t, q, 0, 0)
			}
			for range 6 {
				enqueue(t.Context(), q, 0)
			}
			synctest.Wait()
			for range 4 {
				take(t, q, 0, 0)
			}
			synctest.Wait()
			if n := q.Len(); n != 4 {
				t.Fatalf("Len = %d with two Enqueues left, want 4", n)
			}
			for range 6 {
				take(t, q, 0, 0)
			}
		}
	})
}

// A wait that was given up in the middle of the list must leave no trace in
// what the next wait, here one on the other side, uses again.
func TestGivenUpWaitLeavesNoTrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[int](1)
		ctx, cancel := context.WithCancel(t.Context())
		first := dequeue(t.Context(), q)
		synctest.Wait()
		second := dequeue(ctx, q)
		synctest.Wait()
		cancel()
		<-second
		put(t, q, 1, 0)
		<-first

		put(t, q, 2, time.Hour)
		waiting := enqueue(t.Context(), q, 3)
		synctest.Wait()
		for _, want := range []int{2, 3} {
			if r := <-dequeue(t.Context(), q); r.item != want || r.err != nil {
				t.Errorf("Dequeue = %d, %v, want %d", r.item, r.err, want)
			}
		}
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		last := dequeue(t.Context(), q)
		synctest.Wait()
		put(t, q, 4, 0)
		if r := <-last; r.item != 4 || r.err != nil {
			t.Errorf("Dequeue = %d, %v, want 4", r.item, r.err)
		}
	})
}

func TestContextEndsTheWaitForAnItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[int](0)
		for _, delay := range []time.Duration{0, time.Hour} {
			if delay > 0 { // once with an item that is not due, once with none
				put(t, q, 1, delay)
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errCause)
			start := time.Now()
			item, err := q.Dequeue(ctx)
			cancel()
			if item != 0 || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Dequeue = %d, %v", item, err)
			}
			if waited := time.Since(start); waited != time.Second {
				t.Errorf("Dequeue took %v", waited)
			}
		}
		take(t, q, 1, time.Hour-time.Second)
	})
}

func TestContextEndsTheWaitForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[int](1)
		put(t, q, 1, 0)
		ctx, cancel := context.WithCancelCause(t.Context())
		first := enqueue(ctx, q, 2)
		synctest.Wait()
		second := enqueue(t.Context(), q, 3)
		synctest.Wait()
		cancel(errCause)
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("Enqueue = %v, want %v", err, context.Canceled)
		}
		take(t, q, 1, 0)
		if err := <-second; err != nil {
			t.Error(err)
		}
		take(t, q, 3, 0)
	})
}

func TestLeavingDequeueHandsTheHeadOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[int](0)
		put(t, q, 1, time.Minute)
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		leaving := dequeue(ctx, q)
		synctest.Wait()
		staying := dequeue(t.Context(), q)
		synctest.Wait()
		cancel()
		if r := <-leaving; !errors.Is(r.err, context.Canceled) {
			t.Errorf("Dequeue = %d, %v", r.item, r.err)
		}
		r := <-staying
		if r.item != 1 || r.err != nil || r.at.Sub(start) != time.Minute {
			t.Errorf("Dequeue = %d, %v after %v", r.item, r.err, r.at.Sub(start))
		}
	})
}
