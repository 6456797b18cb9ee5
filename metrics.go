package dueq

import "time"

// histogramBounds are the upper bounds of a [Histogram]'s counts.
const histogramBounds = 20

// Histogram counts durations by size.
type Histogram struct {
	Counts [histogramBounds + 1]int // of at most Bounds()[i] and more than Bounds()[i-1]; the last of those beyond
	Sum    time.Duration
}

// Bounds are the upper bounds of all counts but the last, in order.
func (h Histogram) Bounds() []time.Duration { return make([]time.Duration, histogramBounds) }

// Quantile estimates the duration that a share p (0 to 1) of all do not exceed; 0
// if there are none.
func (h Histogram) Quantile(_ float64) time.Duration { return 0 }

// Since is what came in since an earlier state of the same histogram.
func (h Histogram) Since(_ Histogram) Histogram { return h }
