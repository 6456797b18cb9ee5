package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// Middleware wraps each handler by itself, the first outermost, and only in later
// subscriptions; a retry passes through that of the handlers that have not
// succeeded.
func TestUse(t *testing.T) {
	t.Parallel()
	env := redistest.Mini(t)
	q := newQueue(t, env, dueq.Options{Backoff: func(int, error) time.Duration { return 0 }})
	var mu sync.Mutex
	var log []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, fmt.Sprintf(format, args...))
	}
	named := func(name string) func(dueq.Handler) dueq.Handler {
		return func(next dueq.Handler) dueq.Handler {
			return dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
				err := next.HandleEvent(ctx, e)
				note("%s: %s, attempt %d: %v", name, e.Topic, e.Attempt, err)
				return err
			})
		}
	}
	handler := func(fails bool) dueq.Handler {
		return dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
			if fails && e.Attempt == 1 {
				return errBroken
			}
			return nil
		})
	}
	subscribe(t, q, "before", handler(false))
	q.Use(named("outer"), nil)
	q.Use(named("inner"))
	subscribe(t, q, "a", handler(false), handler(true))
	for _, topic := range []string{"before", "a"} {
		publish(t, q, topic, "x", time.Now())
		awaitEmpty(t, q, topic)
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{
		"inner: a, attempt 1: <nil>", "outer: a, attempt 1: <nil>",
		"inner: a, attempt 1: broken", "outer: a, attempt 1: broken",
		"inner: a, attempt 2: <nil>", "outer: a, attempt 2: <nil>",
	}
	if !slices.Equal(log, want) {
		t.Errorf("log %q, want %q", log, want)
	}

	q.Use(func(dueq.Handler) dueq.Handler { return nil })
	if err := q.Subscribe("b", handler(false)); !errors.Is(err, dueq.ErrSubscription) {
		t.Errorf("Subscribe with middleware that returns nil: %v", err)
	}
}
