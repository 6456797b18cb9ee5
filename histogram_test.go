package dueq_test

import (
	"testing"
	"time"

	"github.com/dueq-io/dueq"
)

func TestHistogram(t *testing.T) {
	t.Parallel()
	var h dueq.Histogram
	if len(h.Bounds()) != len(h.Counts)-1 {
		t.Fatalf("%d bounds of %d counts", len(h.Bounds()), len(h.Counts))
	}
	if got := h.Quantile(0.99); got != 0 || h.Count() != 0 {
		t.Errorf("p99 of nothing is %v", got)
	}
	h.Counts[2], h.Counts[9] = 90, 10 // 2 to 5 ms, 500 ms to 1 s
	h.Sum = 10 * time.Second
	for p, want := range map[float64]time.Duration{
		0: 2 * time.Millisecond, -1: 2 * time.Millisecond, 0.45: 3500 * time.Microsecond,
		0.9: 5 * time.Millisecond, 0.95: 750 * time.Millisecond, 1: time.Second, 2: time.Second,
	} {
		if got := h.Quantile(p).Round(time.Microsecond); got != want {
			t.Errorf("quantile %v is %v, want %v", p, got, want)
		}
	}
	later := h
	later.Counts[20] = 7
	later.Sum += time.Hour
	if got := later.Quantile(1); got != 24*time.Hour {
		t.Errorf("the largest of durations beyond all bounds is %v", got)
	}
	if d := later.Since(h); d.Count() != 7 || d.Counts[20] != 7 || d.Sum != time.Hour {
		t.Errorf("since: %+v", d)
	}
	if d := h.Since(later); d != h {
		t.Errorf("since a histogram that has begun anew: %+v, want all of it", d)
	}
}
