package metric_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dueq-io/dueq/internal/metric"
)

func TestHistogram(t *testing.T) {
	t.Parallel()
	bounds := metric.Bounds()
	if !slices.IsSorted(bounds[:]) || bounds[0] != time.Millisecond || bounds[metric.NumBounds-1] != 24*time.Hour {
		t.Fatalf("bounds %v", bounds)
	}
	var h metric.Histogram
	var want metric.Counts
	var sum time.Duration
	observe := func(d time.Duration, at int) {
		h.Observe(d)
		want[at]++
		sum += max(d, 0)
	}
	observe(-time.Hour, 0)
	observe(0, 0)
	for i, bound := range bounds {
		observe(bound, i)
		observe(bound+1, i+1)
	}
	if counts, got := h.Load(); counts != want || got != sum {
		t.Errorf("counts %v, sum %v; want %v, %v", counts, got, want, sum)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	var s metric.Sizes
	sizes := []int{1, 2, 3, 5, 500, 501, 9000}
	total := int64(0)
	for _, n := range sizes {
		s.Observe(n)
		total += int64(n)
	}
	counts, sum := s.Load()
	if want := [metric.NumSizes + 1]int64{1, 1, 2, 0, 0, 0, 0, 0, 1, 2}; counts != want || sum != total {
		t.Errorf("counts %v, sum %d; want %v, %d", counts, sum, want, total)
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	var calls metric.Calls
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				calls.Of("claim").Failed.Add(1)
			}
		})
	}
	wg.Wait()
	calls.Of("publish").Took.Observe(time.Second)
	got := make(map[string]int64)
	calls.Each(func(name string, c *metric.Call) { got[name] = c.Failed.Load() })
	if len(got) != 2 || got["claim"] != 800 {
		t.Errorf("calls %v", got)
	}
}
