package main

import (
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// lateness gathers how late events were, for many goroutines.
type lateness struct {
	mu    sync.Mutex
	hist  *hdrhistogram.Histogram // in µs
	early int64
}

func newLateness() *lateness {
	return &lateness{hist: hdrhistogram.New(1, time.Hour.Microseconds(), 3)}
}

// add counts an event; early ones, which should not be, count as on time too.
func (l *lateness) add(late time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if late < 0 {
		l.early++
	}
	µs := min(max(late.Microseconds(), 0), time.Hour.Microseconds())
	_ = l.hist.RecordValue(µs) // within its range
}

// quantiles are in milliseconds.
type quantiles struct {
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
	Early int64   `json:"early"`
}

func (l *lateness) quantiles() *quantiles {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := func(p float64) float64 { return float64(l.hist.ValueAtPercentile(p)) / 1e3 }
	return &quantiles{P50: at(50), P99: at(99), P999: at(99.9), Max: float64(l.hist.Max()) / 1e3, Early: l.early}
}

// curve is the percentile curve: lateness in ms over the number of nines,
// 1 for 90 %, 2 for 99 %.
func (l *lateness) curve() []point {
	l.mu.Lock()
	defer l.mu.Unlock()
	var points []point
	last := math.Log10(float64(max(l.hist.TotalCount(), 1)))
	add := func(nines float64, µs int64) {
		points = append(points, point{nines, max(float64(µs)/1e3, 0.01)}) // a logarithm needs more than 0
	}
	for nines := 0.0; nines < last; nines += 0.02 {
		add(nines, l.hist.ValueAtPercentile(100*(1-math.Pow(10, -nines))))
	}
	add(last, l.hist.Max())
	return points
}

// latenessChart draws percentile curves.
func latenessChart(name, title string, lines []series) chart {
	nines := []tick{{math.Log10(2), "50 %"}, {1, "90 %"}}
	for i, label := range []string{"99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"} {
		nines = append(nines, tick{float64(i + 2), label})
	}
	return chart{
		name: name, title: title, lines: lines,
		x: axis{label: "share of the events that were at most so late", ticks: nines},
		y: axis{label: "lateness (ms)", log: true},
	}
}
