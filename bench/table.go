package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// row is one measurement. What is zero was not measured.
type row struct {
	Scenario  string     `json:"scenario"`
	Variant   string     `json:"variant"`
	Events    int        `json:"events"`
	PerSecond float64    `json:"events_per_second,omitempty"`
	Redis     float64    `json:"redis_us_per_event,omitempty"`
	Client    float64    `json:"client_us_per_event,omitempty"`
	Lateness  *quantiles `json:"lateness_ms,omitempty"`
	Figures   []figure   `json:"figures,omitempty"`
}

// figure is a measurement that only some rows have.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	Of    string  `json:"of,omitempty"` // what has the value
}

func newRow(variant string, events int, s spent, figures ...figure) row {
	n := float64(events)
	return row{
		Variant: variant, Events: events, Figures: figures,
		PerSecond: n / s.wall.Seconds(), Redis: micros(s.redis) / n, Client: micros(s.client) / n,
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// compare says how far a row is from what raw commands reach.
func compare(r, raw row) []figure {
	return []figure{
		{Name: "of raw's events/s", Value: 100 * ratio(r.PerSecond, raw.PerSecond), Unit: "%"},
		{Name: "of raw's Redis µs", Value: ratio(r.Redis, raw.Redis), Unit: "×"},
	}
}

// ratio is a/b, or 0 if b was not measured: not every server tells its CPU time.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// checkRows returns an error if an event was early.
func checkRows(rows []row) error {
	for _, r := range rows {
		if r.Lateness != nil && r.Lateness.Early > 0 {
			return fmt.Errorf("%s: %d events were handled before their time", r.Variant, r.Lateness.Early)
		}
	}
	return nil
}

// report prints the rows and writes the charts.
func (e *env) report(w io.Writer) error {
	var errs []error
	if e.json {
		errs = append(errs, e.printJSON(w))
	} else {
		errs = append(errs, printTable(w, e.rows))
	}
	if e.svg != "" && len(e.charts) > 0 {
		errs = append(errs, os.MkdirAll(e.svg, 0o755))
		for _, c := range e.charts {
			errs = append(errs, os.WriteFile(filepath.Join(e.svg, c.name+".svg"), c.svg(), 0o644))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func (e *env) printJSON(w io.Writer) error {
	rows := e.rows
	if rows == nil {
		rows = []row{}
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(struct {
		Redis string `json:"redis"` // version
		Go    string `json:"go"`
		OS    string `json:"os"`
		CPUs  int    `json:"cpus"`
		Rows  []row  `json:"rows"`
	}{e.version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, runtime.NumCPU(), rows})
}

// printTable prints a line per row. Lateness is in milliseconds.
func printTable(w io.Writer, rows []row) error {
	head := []string{"scenario", "variant", "events", "events/s", "redis µs", "client µs", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "early", "notes"}
	lines := [][]string{head}
	for _, r := range rows {
		lines = append(lines, r.cells())
	}
	widths := make([]int, len(head))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, line := range lines {
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case i < 2:
				b.WriteString(cell + pad + "  ")
			case i < len(head)-1:
				b.WriteString(pad + cell + "  ")
			default:
				b.WriteString(cell)
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r row) cells() []string {
	cells := []string{r.Scenario, r.Variant, count(r.Events), human(r.PerSecond), human(r.Redis), human(r.Client)}
	if q := r.Lateness; q != nil {
		cells = append(cells, human(q.P50), human(q.P99), human(q.P999), human(q.Max), count(int(q.Early)))
	} else {
		cells = append(cells, "-", "-", "-", "-", "-")
	}
	notes := make([]string, len(r.Figures))
	for i, f := range r.Figures {
		notes[i] = f.note()
	}
	return append(cells, strings.Join(notes, ", "))
}

func (f figure) note() string {
	text := f.Name + " " + human(f.Value)
	if f.Value == math.Trunc(f.Value) {
		text = f.Name + " " + count(int(f.Value))
	}
	if f.Unit != "" {
		text += " " + f.Unit
	}
	if f.Of != "" {
		text += " (" + f.Of + ")"
	}
	return text
}

// human shows three digits or more; "-" is nothing.
func human(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "-"
	case a >= 100:
		return count(int(math.Round(v)))
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 4, 64)
}

// count groups the digits of a whole number: 1,000,000.
func count(n int) string {
	digits := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
