package delayqueue_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dueq-io/dueq/delayqueue"
)

// A Dequeue that leaves as an item comes must not take the signal for that item
// with it: the other Dequeue, which has no way to give up, has to get an item.
func TestCancelDuringEnqueueLosesNoSignal(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			q := delayqueue.New[int](0)
			for round := range 1000 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				leaving := dequeue(ctx, q)
				synctest.Wait()
				staying := dequeue(t.Context(), q)
				synctest.Wait()

				var both sync.WaitGroup
				if delay == 0 { // or else ctx ends in the instant the item is due
					both.Go(cancel)
				}
				both.Go(func() { put(t, q, 2*round, delay) })
				both.Wait()
				pass(delay)
				synctest.Wait()

				if r := <-leaving; r.err == nil { // it took the item
					put(t, q, 2*round+1, 0)
				}
				cancel()
				synctest.Wait()
				select {
				case r := <-staying:
					if r.err != nil {
						t.Fatal(r.err)
					}
				default:
					t.Fatalf("round %d: an item is due, and a Dequeue waits", round)
				}
			}
		})
	}
}

// An Enqueue that leaves as room comes free must not take the signal with it.
func TestCancelDuringDequeueLosesNoSignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[int](1)
		put(t, q, 0, 0)
		for round := range 1000 {
			ctx, cancel := context.WithCancel(t.Context())
			leaving := enqueue(ctx, q, round)
			synctest.Wait()
			staying := enqueue(t.Context(), q, round)
			synctest.Wait()

			var both sync.WaitGroup
			both.Go(cancel)
			both.Go(func() { <-dequeue(t.Context(), q) })
			both.Wait()
			synctest.Wait()

			if err := <-leaving; err == nil { // it took the room
				<-dequeue(t.Context(), q)
			}
			synctest.Wait()
			select {
			case err := <-staying:
				if err != nil {
					t.Fatal(err)
				}
			default:
				t.Fatalf("round %d: there is room, and an Enqueue waits", round)
			}
		}
	})
}

// One goroutine puts and one takes, each waiting for the other most of the time,
// so that signals come while a wait begins.
func TestPingPong(t *testing.T) {
	t.Parallel()
	const n = 50_000
	q := delayqueue.New[int](1)
	due := time.Now()
	var both sync.WaitGroup
	both.Go(func() {
		for i := range n {
			if err := q.Enqueue(t.Context(), i, due); err != nil {
				t.Error(err)
			}
		}
	})
	both.Go(func() {
		for i := range n {
			if got, err := q.Dequeue(t.Context()); got != i || err != nil {
				t.Errorf("Dequeue = %d, %v, want %d", got, err, i)
			}
		}
	})
	both.Wait()
}

// TestStress has many goroutines use a small queue at once, by the real clock.
// Half of the Dequeues give up and call again, so that contexts end at all
// times. A lost signal leaves goroutines that wait for ever.
func TestStress(t *testing.T) {
	t.Parallel()
	const workers, perWorker = 16, 400
	const total = workers * perWorker
	q := delayqueue.New[int](workers / 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	due := make([]time.Time, total)
	var taken [total]atomic.Int32
	var left atomic.Int32
	left.Store(total)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w * perWorker; i < (w+1)*perWorker; i++ {
				due[i] = time.Now().Add(time.Duration(rand.IntN(200)-50) * time.Microsecond)
				for enqueuePatiently(ctx, q, i, due[i], w%2 == 0) != nil {
				}
			}
		})
		all.Go(func() {
			for ctx.Err() == nil {
				i, err := dequeuePatiently(ctx, q, w%2 == 0)
				if err != nil {
					continue
				}
				if early := time.Until(due[i]); early > 0 {
					t.Errorf("item %d came %v early", i, early)
				}
				taken[i].Add(1)
				if left.Add(-1) == 0 {
					cancel()
				}
			}
		})
	}
	all.Wait()
	for i := range taken {
		if n := taken[i].Load(); n != 1 {
			t.Errorf("item %d was taken %d times", i, n)
		}
	}
	if n := q.Len(); n != 0 {
		t.Errorf("Len = %d, want 0", n)
	}
}

func enqueuePatiently(ctx context.Context, q *delayqueue.Queue[int], i int, due time.Time, patient bool) error {
	if !patient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(100))*time.Microsecond)
		defer cancel()
	}
	return q.Enqueue(ctx, i, due)
}

func dequeuePatiently(ctx context.Context, q *delayqueue.Queue[int], patient bool) (int, error) {
	if !patient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(100))*time.Microsecond)
		defer cancel()
	}
	return q.Dequeue(ctx)
}
