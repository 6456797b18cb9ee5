package delayqueue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dueq-io/dueq/delayqueue"
)

// errCause is a cause for a context to end, which no call should return.
var errCause = errors.New("a cause")

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// pass lets d pass on the clock of a synctest bubble.
func pass(d time.Duration) {
	<-time.After(d)
}

// take takes an item from q and fails the test if it is not want, or if the
// wait for it was not exactly as long as wait.
func take[T comparable](t *testing.T, q *delayqueue.Queue[T], want T, wait time.Duration) {
	t.Helper()
	start := time.Now()
	got, err := q.Dequeue(t.Context())
	if err != nil {
		t.Fatalf("Dequeue: %v", err)
	}
	if got != want {
		t.Fatalf("Dequeue = %v, want %v", got, want)
	}
	if waited := time.Since(start); waited != wait {
		t.Fatalf("Dequeue of %v took %v, want %v", want, waited, wait)
	}
}

// result is what a Dequeue in a goroutine of its own came to.
type result struct {
	item int
	err  error
	at   time.Time
}

// dequeue starts a Dequeue and returns where its result will be. In a bubble it
// is waiting, or done, once synctest.Wait returns.
func dequeue(ctx context.Context, q *delayqueue.Queue[int]) <-chan result {
	done := make(chan result, 1)
	go func() {
		item, err := q.Dequeue(ctx)
		done <- result{item, err, time.Now()}
	}()
	return done
}

// enqueue starts an Enqueue of an item due at once and returns where its error
// will be.
func enqueue(ctx context.Context, q *delayqueue.Queue[int], item int) <-chan error {
	done := make(chan error, 1)
	go func() { done <- q.Enqueue(ctx, item, time.Now()) }()
	return done
}

// put adds item to q, due after delay. There must be room for it.
func put[T any](t *testing.T, q *delayqueue.Queue[T], item T, delay time.Duration) {
	t.Helper()
	if err := q.Enqueue(t.Context(), item, time.Now().Add(delay)); err != nil {
		t.Fatalf("Enqueue(%v): %v", item, err)
	}
}
