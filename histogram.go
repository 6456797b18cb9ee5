package dueq

import (
	"time"

	"github.com/dueq-io/dueq/internal/metric"
)

// Histogram counts durations by size.
type Histogram struct {
	Counts [metric.NumBounds + 1]int // of more than the bound before and at most this one; the last are those over all bounds
	Sum    time.Duration
}

// Bounds are the upper bounds of all Counts but the last, in order: from a
// millisecond to a day.
func (h Histogram) Bounds() []time.Duration {
	bounds := metric.Bounds()
	return bounds[:]
}

// Count is how many durations were counted.
func (h Histogram) Count() int {
	n := 0
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile estimates the duration that a share p (0 to 1) of all do not exceed:
// 0 if there are none, and the last bound if it is over that.
func (h Histogram) Quantile(p float64) time.Duration {
	rank := min(max(p, 0), 1) * float64(h.Count())
	var below time.Duration
	for i, bound := range metric.Bounds() {
		n := float64(h.Counts[i])
		if n > 0 && rank <= n {
			return below + time.Duration(rank/n*float64(bound-below))
		}
		rank -= n
		below = bound
	}
	if h.Count() == 0 {
		return 0
	}
	return below
}

// Since is what came in since an earlier state of the same histogram: all of it
// if it has begun anew.
func (h Histogram) Since(earlier Histogram) Histogram {
	d := Histogram{Sum: h.Sum - earlier.Sum}
	for i := range h.Counts {
		if h.Counts[i] < earlier.Counts[i] {
			return h
		}
		d.Counts[i] = h.Counts[i] - earlier.Counts[i]
	}
	return d
}

func loadHistogram(m *metric.Histogram) (h Histogram) {
	counts, sum := m.Load()
	for i, n := range counts {
		h.Counts[i] = int(n)
	}
	h.Sum = sum
	return h
}

// Sizes counts batches by how many events they have.
type Sizes struct {
	Counts [metric.NumSizes + 1]int // of more than the bound before and at most this one; the last are those over all bounds
	Sum    int                      // of all sizes
}

// Bounds are the upper bounds of all Counts but the last, in order.
func (s Sizes) Bounds() []int {
	bounds := metric.SizeBounds()
	return bounds[:]
}

// Count is how many batches were counted.
func (s Sizes) Count() int {
	n := 0
	for _, c := range s.Counts {
		n += c
	}
	return n
}

func loadSizes(m *metric.Sizes) (s Sizes) {
	counts, sum := m.Load()
	for i, n := range counts {
		s.Counts[i] = int(n)
	}
	s.Sum = int(sum)
	return s
}
