package measure

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Lateness gathers how late events were, for many goroutines.
type Lateness struct {
	mu       sync.Mutex
	hist     *hdrhistogram.Histogram // in µs
	early    int64
	earliest time.Duration // how early at most
}

// NewLateness is one without events.
func NewLateness() *Lateness {
	return &Lateness{hist: hdrhistogram.New(1, time.Hour.Microseconds(), 3)}
}

// Add counts an event; early ones, which should not be, count as on time too.
func (l *Lateness) Add(late time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if late < 0 {
		l.early++
		l.earliest = max(l.earliest, -late)
	}
	µs := min(max(late.Microseconds(), 0), time.Hour.Microseconds())
	_ = l.hist.RecordValue(µs) // within its range
}

// Quantiles are in milliseconds.
type Quantiles struct {
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
	Early int64   `json:"early"`
}

// Quantiles are those of all events so far.
func (l *Lateness) Quantiles() *Quantiles {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := func(p float64) float64 { return float64(l.hist.ValueAtPercentile(p)) / 1e3 }
	return &Quantiles{P50: at(50), P99: at(99), P999: at(99.9), Max: float64(l.hist.Max()) / 1e3, Early: l.early}
}

// Earliest is how early an event was at most, 0 if none was.
func (l *Lateness) Earliest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.earliest
}

// Count is how many events there were.
func (l *Lateness) Count() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hist.TotalCount()
}

// At is the lateness that a share of the events, in percent, did not exceed.
func (l *Lateness) At(percent float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(l.hist.ValueAtPercentile(percent)) * time.Microsecond
}
