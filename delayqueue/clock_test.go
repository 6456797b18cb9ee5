package delayqueue_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dueq-io/dueq/delayqueue"
)

func TestDueTimeWithoutMonotonicReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[int](0)
		for i, due := range []time.Time{
			time.Now().Add(time.Second).Round(0),
			time.Now().Add(time.Second).UTC(),
			time.Now().Add(time.Second),
			time.UnixMilli(time.Now().UnixMilli()).Add(time.Minute),
		} {
			if err := q.Enqueue(t.Context(), i, due); err != nil {
				t.Fatal(err)
			}
		}
		take(t, q, 0, time.Second)
		take(t, q, 1, 0)
		take(t, q, 2, 0)
		take(t, q, 3, 59*time.Second)
	})
}

func TestWallClockSet(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{time.Hour, -time.Hour, 50 * 365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			q := delayqueue.New[int](0)
			due := time.Now().Add(time.Minute).Round(0)
			if err := q.Enqueue(t.Context(), 1, due); err != nil {
				t.Fatal(err)
			}
			q.SetWallClock(step)
			for id := 2; id <= 3; id++ {
				if err := q.Enqueue(t.Context(), id, due); err != nil {
					t.Fatal(err)
				}
			}
			take(t, q, 1, time.Minute)
			take(t, q, 2, 0)
			take(t, q, 3, 0)
		})
	}
}

// On the real clock, where no two readings of both clocks agree to the
// nanosecond.
func TestEqualDueTimesWithoutMonotonicReadingKeepOrder(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{0, time.Hour} {
		q := delayqueue.New[int](0)
		q.SetWallClock(step)
		due := time.Now().Round(0)
		const n = 1000
		for id := range n {
			if err := q.Enqueue(t.Context(), id, due); err != nil {
				t.Fatal(err)
			}
		}
		for id := range n {
			if got, err := q.Dequeue(t.Context()); got != id || err != nil {
				t.Fatalf("Dequeue = %d, %v, want %d", got, err, id)
			}
		}
	}
}

func TestFarDueTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := delayqueue.New[string](0)
		const far = math.MaxInt64
		for item, due := range map[string]time.Time{
			"never":      time.Unix(1<<40, 0),
			"year one":   {},
			"century":    time.Now().AddDate(100, 0, 0),
			"in a while": time.Now().Add(time.Second),
			"long ago":   time.Unix(0, 0),
		} {
			if err := q.Enqueue(t.Context(), item, due); err != nil {
				t.Fatal(err)
			}
		}
		put(t, q, "292 years", far)
		take(t, q, "year one", 0)
		take(t, q, "long ago", 0)
		take(t, q, "in a while", time.Second)

		ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
		defer cancel()
		if item, err := q.Dequeue(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Dequeue = %q, %v", item, err)
		}
		if n := q.Len(); n != 3 {
			t.Errorf("Len = %d, want 3", n)
		}
	})
}
