// Package metric counts what a process does, cheaply enough to do so for every
// event: a counter is an atomic addition, and nobody looks one up by name.
package metric

import (
	"sync/atomic"
	"time"
)

// NumBounds is how many bounds a [Histogram] has.
const NumBounds = 20

// Counts are how many durations lie under each bound and over the one before it;
// the last of them is that of those over all bounds.
type Counts [NumBounds + 1]int64

// Bounds are the upper bounds of all [Counts] but the last, in order: fine around
// the milliseconds that an event is late, coarse towards a day of backlog.
func Bounds() [NumBounds]time.Duration {
	const ms, s, m, h = time.Millisecond, time.Second, time.Minute, time.Hour
	return [NumBounds]time.Duration{
		1 * ms, 2 * ms, 5 * ms, 10 * ms, 20 * ms, 50 * ms, 100 * ms, 200 * ms, 500 * ms,
		1 * s, 2 * s, 5 * s, 10 * s, 30 * s, 1 * m, 5 * m, 15 * m, 1 * h, 6 * h, 24 * h,
	}
}

// Histogram counts durations by size.
type Histogram struct {
	counts [NumBounds + 1]atomic.Int64
	sum    atomic.Int64 // nanoseconds
}

// Observe counts a duration. One below zero, which two clocks can make, counts
// as zero.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	bounds := Bounds()
	i := 0
	for i < NumBounds && d > bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

// Load returns what was counted so far. Durations that are observed meanwhile may
// be missing in one of the two.
func (h *Histogram) Load() (counts Counts, sum time.Duration) {
	for i := range counts {
		counts[i] = h.counts[i].Load()
	}
	return counts, time.Duration(h.sum.Load())
}

// NumSizes is how many bounds a [Sizes] has.
const NumSizes = 9

// SizeBounds are the upper bounds of all counts of [Sizes] but the last, in order.
func SizeBounds() [NumSizes]int { return [NumSizes]int{1, 2, 5, 10, 20, 50, 100, 200, 500} }

// Sizes counts batches by their size.
type Sizes struct {
	counts [NumSizes + 1]atomic.Int64
	sum    atomic.Int64
}

// Observe counts a batch of n.
func (s *Sizes) Observe(n int) {
	bounds := SizeBounds()
	i := 0
	for i < NumSizes && n > bounds[i] {
		i++
	}
	s.counts[i].Add(1)
	s.sum.Add(int64(n))
}

// Load returns what was counted so far.
func (s *Sizes) Load() (counts [NumSizes + 1]int64, sum int64) {
	for i := range counts {
		counts[i] = s.counts[i].Load()
	}
	return counts, s.sum.Load()
}
