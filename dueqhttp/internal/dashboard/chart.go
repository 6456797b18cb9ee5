package dashboard

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Charts are drawn into a box of this size, which the page stretches.
const (
	chartWidth  = 300.0
	chartHeight = 100.0
	steps       = 50 // of rates
)

// line is a curve in the chart's box: a path for SVG, and the same closed along
// the bottom.
type line struct{ Path, Area string }

// frame is what a chart's box shows: the time of some length that ends at End.
type frame struct {
	End time.Time
	Len time.Duration
}

// newFrame is as long as the history asks for, up to the window.
func newFrame(points []point, end time.Time) frame {
	f := frame{End: end, Len: window}
	if len(points) == 0 {
		return f
	}
	for _, l := range []time.Duration{2 * time.Minute, time.Minute} {
		if end.Sub(points[0].At) < l {
			f.Len = l
		}
	}
	return f
}

// x is where a time lies in the box.
func (f frame) x(t time.Time) float64 {
	return max(0, chartWidth*(1-f.End.Sub(t).Seconds()/f.Len.Seconds()))
}

// curve draws values into a frame, over the points that have one.
func curve(points []point, f frame, top float64, value func(point) (float64, bool)) line {
	var path strings.Builder
	begin, last := 0.0, 0.0
	for _, p := range points {
		v, ok := value(p)
		if !ok {
			continue
		}
		x, y := f.x(p.At), chartHeight*(1-min(max(v/top, 0), 1))
		if path.Len() == 0 {
			begin = f.x(p.At.Add(-p.Took)) // it was so all the time since the sample before
			fmt.Fprintf(&path, "M%.1f %.1f", begin, y)
		}
		fmt.Fprintf(&path, "L%.1f %.1f", x, y)
		last = x
	}
	if path.Len() == 0 {
		return line{}
	}
	area := fmt.Sprintf("%sL%.1f %.1fL%.1f %.1fZ", path.String(), last, chartHeight, begin, chartHeight)
	return line{path.String(), area}
}

// rates is a chart of what was published, handled and failed a second.
type rates struct {
	Published, Handled, Failed line
	Top                        float64 // events a second
	Idle                       bool    // nothing happened
	Len                        time.Duration
}

func newRates(points []point, f frame) rates {
	points = coarse(points, f.Len/steps)
	top := 0.0
	for _, p := range points {
		top = max(top, p.Published, p.Handled, p.Failed)
	}
	r := rates{Top: roundUp(max(top, 1)), Idle: top == 0, Len: f.Len}
	r.Published = curve(points, f, r.Top, func(p point) (float64, bool) { return p.Published, true })
	r.Handled = curve(points, f, r.Top, func(p point) (float64, bool) { return p.Handled, true })
	r.Failed = curve(points, f, r.Top, func(p point) (float64, bool) { return p.Failed, true })
	return r
}

// coarse joins the points of each step, whose rates it averages.
func coarse(points []point, step time.Duration) []point {
	var all []point
	for _, p := range points {
		if n := len(all); n > 0 && all[n-1].At.Truncate(step).Equal(p.At.Truncate(step)) {
			sum := &all[n-1]
			mean := func(a, b float64) float64 {
				return (a*sum.Took.Seconds() + b*p.Took.Seconds()) / (sum.Took + p.Took).Seconds()
			}
			sum.Published, sum.Handled, sum.Failed = mean(sum.Published, p.Published), mean(sum.Handled, p.Handled), mean(sum.Failed, p.Failed)
			sum.At, sum.Took = p.At, sum.Took+p.Took
			continue
		}
		all = append(all, p)
	}
	return all
}

// roundUp is the next number of the form 1, 2 or 5 times a power of ten.
func roundUp(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 5} {
		if v <= step*power {
			return step * power
		}
	}
	return 10 * power
}

// lateness is a chart of how late deliveries began, with a logarithmic scale.
type lateness struct {
	P50, P99 line
	Ticks    []time.Duration // at equal distances, the largest first
	Grid     string          // a path with a line for each
	Len      time.Duration
	Now      point // the latest with deliveries
}

// newLateness is nil when there were no deliveries.
func newLateness(points []point, f frame) *lateness {
	low, high := math.Inf(1), math.Inf(-1)
	l := &lateness{Len: f.Len}
	for _, p := range points {
		if p.Deliveries > 0 {
			l.Now = p
			low, high = min(low, magnitude(p.P50)), max(high, magnitude(p.P99))
		}
	}
	if l.Now.Deliveries == 0 {
		return nil
	}
	low, high = math.Floor(low), max(math.Ceil(high), math.Floor(low)+1)
	for decade := low; decade <= high; decade++ {
		l.Ticks = append(l.Ticks, time.Duration(math.Round(math.Pow(10, decade)*1e6)))
	}
	slices.Reverse(l.Ticks)
	for i := range l.Ticks {
		l.Grid += fmt.Sprintf("M0 %.1fH%.0f", chartHeight*float64(i)/(high-low), chartWidth)
	}
	l.P50 = curve(points, f, high-low, func(p point) (float64, bool) { return magnitude(p.P50) - low, p.Deliveries > 0 })
	l.P99 = curve(points, f, high-low, func(p point) (float64, bool) { return magnitude(p.P99) - low, p.Deliveries > 0 })
	return l
}

// magnitude is the power of ten that makes so many milliseconds, at least one.
func magnitude(d time.Duration) float64 {
	return math.Log10(max(float64(d)/float64(time.Millisecond), 1))
}
