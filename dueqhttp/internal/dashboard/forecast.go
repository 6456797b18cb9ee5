package dashboard

import (
	"context"
	"slices"
	"time"
)

// forecast is when a topic's scheduled events are due.
type forecast struct {
	Err    error
	Ahead  string // the range of the bars
	Ranges []forecastRange
	Bars   []bar
	Step   time.Duration // of a bar
	Most   int           // events of the highest bar
	Minute int           // events due within a minute, an hour, a day, and later
	Hour   int
	Day    int
	Later  int
}

type forecastRange struct {
	Name, Link string
	Is         bool // the one that is shown
}

// bar is how many events are due between two times from now.
type bar struct {
	From, To time.Duration
	Count    int
	X, Y     float64 // in a box of chartWidth and chartHeight
	W, H     float64
}

// aheads are the ranges of the forecast, and the steps of their bars.
var aheads = []struct {
	name        string
	whole, step time.Duration
}{
	{"minute", time.Minute, 2 * time.Second},
	{"hour", time.Hour, 2 * time.Minute},
	{"day", 24 * time.Hour, time.Hour},
	{"month", 30 * 24 * time.Hour, 24 * time.Hour},
}

func (d *dashboard) forecast(ctx context.Context, list *eventList, scheduled int) *forecast {
	f := &forecast{Ahead: list.Ahead}
	chosen := aheads[0]
	for _, a := range aheads {
		f.Ranges = append(f.Ranges, forecastRange{Name: a.name, Link: list.link("ahead", a.name), Is: a.name == list.Ahead})
		if a.name == list.Ahead {
			chosen = a
		}
	}
	f.Step = chosen.step
	bounds := []time.Duration{time.Minute, time.Hour, 24 * time.Hour}
	for at := chosen.step; at <= chosen.whole; at += chosen.step {
		bounds = append(bounds, at)
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	counts, err := d.q.Forecast(ctx, list.Topic, bounds...)
	if err != nil {
		f.Err = err
		return f
	}
	f.fill(bounds, counts, chosen.whole, scheduled)
	return f
}

// fill sorts counts by bounds into bars and sums.
func (f *forecast) fill(bounds []time.Duration, counts []int, whole time.Duration, scheduled int) {
	f.Bars = make([]bar, whole/f.Step)
	sum := 0
	for i, bound := range bounds {
		sum += counts[i]
		if bound <= whole {
			f.Bars[(bound-1)/f.Step].Count += counts[i]
		}
		switch bound {
		case time.Minute:
			f.Minute = sum
		case time.Hour:
			f.Hour = sum
		case 24 * time.Hour:
			f.Day = sum
		}
	}
	f.Later = max(scheduled-f.Day, 0)
	for _, b := range f.Bars {
		f.Most = max(f.Most, b.Count)
	}
	width := chartWidth / float64(len(f.Bars))
	for i := range f.Bars {
		b := &f.Bars[i]
		b.From, b.To = time.Duration(i)*f.Step, time.Duration(i+1)*f.Step
		b.X, b.W = width*(float64(i)+0.1), width*0.8
		b.H = chartHeight * float64(b.Count) / float64(max(f.Most, 1))
		if b.Count > 0 {
			b.H = max(b.H, 2)
		}
		b.Y = chartHeight - b.H
	}
}

// Within is how many events the bars show.
func (f *forecast) Within() int {
	n := 0
	for _, b := range f.Bars {
		n += b.Count
	}
	return n
}

// Until is where the bars end.
func (f *forecast) Until() time.Duration { return f.Step * time.Duration(len(f.Bars)) }
