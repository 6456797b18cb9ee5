package load

import (
	"math"
	"time"

	"github.com/dueq-io/dueq/bench/internal/measure"
)

// curve is the percentile curve: lateness in ms over the number of nines,
// 1 for 90 %, 2 for 99 %.
func curve(l *measure.Lateness) []point {
	var points []point
	last := math.Log10(float64(max(l.Count(), 1)))
	add := func(nines float64, late time.Duration) {
		points = append(points, point{nines, max(measure.Micros(late)/1e3, 0.01)}) // a logarithm needs more than 0
	}
	for nines := 0.0; nines < last; nines += 0.02 {
		add(nines, l.At(100*(1-math.Pow(10, -nines))))
	}
	add(last, l.At(100))
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
