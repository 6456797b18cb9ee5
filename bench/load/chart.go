package load

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"

	"github.com/dueq-io/dueq/internal/digits"
)

// chart is a line chart.
type chart struct {
	name  string // of the file, without .svg
	title string
	x, y  axis
	lines []series
}

type axis struct {
	label string
	log   bool
	ticks []tick // nil: chosen by the values
}

type tick struct {
	at    float64
	label string
}

type series struct {
	name   string
	points []point
}

type point struct{ x, y float64 }

const (
	chartWidth, chartHeight = 820.0, 440.0
	plotLeft, plotTop       = 80.0, 50.0
	plotWidth, plotHeight   = 560.0, 320.0
)

// palette is Okabe and Ito's, which colour-blind people can tell apart.
func palette(i int) string {
	colours := []string{"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"}
	return colours[i%len(colours)]
}

// svg draws the chart.
func (c *chart) svg() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %v %v" width="%v" height="%v" font-family="sans-serif" font-size="13">`+"\n",
		chartWidth, chartHeight, chartWidth, chartHeight)
	fmt.Fprintf(&b, `<rect width="%v" height="%v" fill="white"/>`+"\n", chartWidth, chartHeight)
	text(&b, plotLeft, 28, `font-size="17"`, c.title)
	x := newScale(c.x, c.values(func(p point) float64 { return p.x }), plotLeft, plotLeft+plotWidth)
	y := newScale(c.y, c.values(func(p point) float64 { return p.y }), plotTop+plotHeight, plotTop)
	for _, t := range x.ticks {
		at := x.place(t.at)
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%v" x2="%.1f" y2="%v" stroke="#ddd"/>`+"\n", at, plotTop, at, plotTop+plotHeight)
		text(&b, at, plotTop+plotHeight+20, `text-anchor="middle"`, t.label)
	}
	for _, t := range y.ticks {
		at := y.place(t.at)
		fmt.Fprintf(&b, `<line x1="%v" y1="%.1f" x2="%v" y2="%.1f" stroke="#ddd"/>`+"\n", plotLeft, at, plotLeft+plotWidth, at)
		text(&b, plotLeft-8, at+4, `text-anchor="end"`, t.label)
	}
	fmt.Fprintf(&b, `<rect x="%v" y="%v" width="%v" height="%v" fill="none" stroke="#555"/>`+"\n", plotLeft, plotTop, plotWidth, plotHeight)
	text(&b, plotLeft+plotWidth/2, plotTop+plotHeight+48, `text-anchor="middle"`, c.x.label)
	middle := plotTop + plotHeight/2
	text(&b, 22, middle, fmt.Sprintf(`text-anchor="middle" transform="rotate(-90 22 %v)"`, middle), c.y.label)
	for i, s := range c.lines {
		fmt.Fprintf(&b, `<polyline fill="none" stroke-width="2" stroke="%s" points="`, palette(i))
		for _, p := range s.points {
			fmt.Fprintf(&b, "%.1f,%.1f ", x.place(p.x), y.place(p.y))
		}
		b.WriteString(`"/>` + "\n")
		at := plotTop + 12 + 22*float64(i)
		left := plotLeft + plotWidth + 16
		fmt.Fprintf(&b, `<line x1="%v" y1="%v" x2="%v" y2="%v" stroke-width="3" stroke="%s"/>`+"\n", left, at, left+24, at, palette(i))
		text(&b, left+32, at+4, "", s.name)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// values are those of all points that can be drawn.
func (c *chart) values(of func(point) float64) []float64 {
	var vs []float64
	for _, s := range c.lines {
		for _, p := range s.points {
			vs = append(vs, of(p))
		}
	}
	return vs
}

func text(b *bytes.Buffer, x, y float64, attributes, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" %s>`, x, y, attributes)
	_ = xml.EscapeText(b, []byte(s)) // a buffer takes everything
	b.WriteString("</text>\n")
}

// scale places an axis's values between two coordinates.
type scale struct {
	axis
	low, high float64 // values at the ends; logarithms on a log axis
	from, to  float64
}

func newScale(a axis, values []float64, from, to float64) *scale {
	s := &scale{axis: a, from: from, to: to, low: math.Inf(1), high: math.Inf(-1)}
	for _, v := range values {
		if a.log {
			v = math.Log10(v)
		}
		s.low, s.high = min(s.low, v), max(s.high, v)
	}
	if s.low > s.high { // no values
		s.low, s.high = 0, 1
	}
	switch {
	case a.log:
		s.low, s.high = math.Floor(s.low), math.Ceil(s.high)
	case a.ticks == nil:
		s.low = min(s.low, 0)
	}
	if s.low == s.high {
		s.high++
	}
	if a.ticks == nil {
		s.chooseTicks()
	}
	s.dropTicks()
	return s
}

func (s *scale) place(v float64) float64 {
	if s.log {
		v = math.Log10(v)
	}
	return s.from + (s.to-s.from)*(v-s.low)/(s.high-s.low)
}

// chooseTicks takes powers of ten, with 2 and 5 of them if they are few; or
// round steps, and ends the axis at one.
func (s *scale) chooseTicks() {
	add := func(v float64) {
		s.ticks = append(s.ticks, tick{v, strconv.FormatFloat(v, 'g', -1, 64)})
		if v >= 1000 {
			s.ticks[len(s.ticks)-1].label = digits.Group(int(v))
		}
	}
	if s.log {
		for e := s.low; e <= s.high; e++ {
			for _, m := range []float64{1, 2, 5} {
				if m == 1 || s.high-s.low <= 2 {
					add(m * math.Pow(10, e))
				}
			}
		}
		return
	}
	step := math.Pow(10, math.Floor(math.Log10(s.high-s.low)))
	for _, m := range []float64{0.1, 0.2, 0.5, 1} {
		if (s.high-s.low)/(m*step) <= 8 {
			step *= m
			break
		}
	}
	s.low, s.high = math.Floor(s.low/step)*step, math.Ceil(s.high/step)*step
	for i := range int(math.Round((s.high-s.low)/step)) + 1 {
		add(math.Round((s.low+float64(i)*step)*1e6) / 1e6)
	}
}

// dropTicks drops those beyond the ends.
func (s *scale) dropTicks() {
	var kept []tick
	for _, t := range s.ticks {
		v := t.at
		if s.log {
			v = math.Log10(v)
		}
		if v >= s.low-1e-9 && v <= s.high+1e-9 {
			kept = append(kept, t)
		}
	}
	s.ticks = kept
}
