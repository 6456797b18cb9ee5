package dashboard

import (
	"time"

	"github.com/dueq-io/dueq"
)

const (
	// window is how far back charts show.
	window = 5 * time.Minute
	// maxPoints is the most points of a history.
	maxPoints = 200
)

// point is what happened to a topic between two samples.
type point struct {
	At         time.Time // of the later one
	Took       time.Duration
	Published  float64 // events a second
	Handled    float64
	Failed     float64 // attempts a second
	Deliveries int
	P50, P99   time.Duration // lateness of the deliveries
}

// history is how a topic has developed of late.
type history struct {
	last   time.Time // zero: there is no sample yet
	stats  dueq.Stats
	points []point // oldest first
}

// add takes a sample in, and returns all points within the window.
func (h *history) add(at time.Time, stats dueq.Stats) []point {
	before, took := h.stats, at.Sub(h.last)
	first := h.last.IsZero()
	h.last, h.stats = at, stats
	if first || took <= 0 {
		return h.points
	}
	perSecond := func(now, then int) float64 { return float64(max(now-then, 0)) / took.Seconds() }
	lateness := stats.Lateness.Since(before.Lateness)
	p := point{
		At: at, Took: took,
		Published: perSecond(stats.Published, before.Published),
		Handled:   perSecond(stats.Acked, before.Acked),
		Failed:    perSecond(stats.Retried+stats.Buried, before.Retried+before.Buried),
	}
	for _, n := range lateness.Counts {
		p.Deliveries += max(n, 0)
	}
	if p.Deliveries > 0 {
		p.P50, p.P99 = lateness.Quantile(0.5), lateness.Quantile(0.99)
	}
	h.points = append(h.points, p) // those that were handed out stay as they are
	from := 0
	for from < len(h.points) && (len(h.points)-from > maxPoints || at.Sub(h.points[from].At) > window) {
		from++
	}
	h.points = h.points[from:]
	return h.points
}

// restart has the next sample be compared with none before.
func (h *history) restart() { h.last = time.Time{} }

// now is what happened between the two latest samples of a history.
func now(points []point) point {
	if len(points) == 0 {
		return point{}
	}
	return points[len(points)-1]
}
