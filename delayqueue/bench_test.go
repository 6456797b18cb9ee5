package delayqueue_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/dueq-io/dueq/delayqueue"
)

// BenchmarkEnqueueDequeue has goroutines share a queue; an op is an Enqueue of
// an item that is due and a Dequeue.
func BenchmarkEnqueueDequeue(b *testing.B) {
	for _, goroutines := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			ctx := b.Context()
			q := delayqueue.New[int](0)
			due := time.Now()
			var all sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for g := range goroutines {
				all.Go(func() {
					for i := g; i < b.N; i += goroutines {
						if err := q.Enqueue(ctx, i, due); err != nil {
							b.Error(err)
						}
						if _, err := q.Dequeue(ctx); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// BenchmarkDelayed fills a queue with items due at random within a moment and
// drains it, waiting for them; an op is one item.
func BenchmarkDelayed(b *testing.B) {
	const batch, moment = 1024, 100 * time.Microsecond
	ctx := b.Context()
	q := delayqueue.New[int](0)
	b.ReportAllocs()
	for done := 0; done < b.N; done += batch {
		n := min(batch, b.N-done)
		for i := range n {
			due := time.Now().Add(rand.N(moment))
			if err := q.Enqueue(ctx, i, due); err != nil {
				b.Fatal(err)
			}
		}
		for range n {
			if _, err := q.Dequeue(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
}
