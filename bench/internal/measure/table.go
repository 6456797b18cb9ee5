package measure

import (
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dueq-io/dueq/internal/digits"
)

// Row is one measurement. What is zero was not measured.
type Row struct {
	Scenario  string     `json:"scenario"`
	Variant   string     `json:"variant"`
	Events    int        `json:"events"`
	PerSecond float64    `json:"events_per_second,omitempty"`
	Redis     float64    `json:"redis_us_per_event,omitempty"`
	Client    float64    `json:"client_us_per_event,omitempty"`
	Lateness  *Quantiles `json:"lateness_ms,omitempty"`
	Figures   []Figure   `json:"figures,omitempty"`
}

// Figure is a measurement that only some rows have.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	Of    string  `json:"of,omitempty"` // what has the value
}

// NewRow is the row of events that cost what was spent.
func NewRow(variant string, events int, s Spent, figures ...Figure) Row {
	n := float64(events)
	return Row{
		Variant: variant, Events: events, Figures: figures,
		PerSecond: n / s.Wall.Seconds(), Redis: Micros(s.Server) / n, Client: Micros(s.Client) / n,
	}
}

// PerEvent is a figure that says how many of something an event takes.
func PerEvent(what string, total int64, events int) Figure {
	return Figure{Name: what + "/event", Value: float64(total) / float64(events)}
}

// Micros is a duration in µs.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Ratio is a/b, or 0 if b was not measured: not every server tells its CPU time.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// PrintRows prints a table of rows. Lateness is in milliseconds.
func PrintRows(w io.Writer, rows []Row) error {
	lines := [][]string{{"scenario", "variant", "events", "events/s", "redis µs", "client µs", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "early", "notes"}}
	for _, r := range rows {
		lines = append(lines, r.cells())
	}
	return PrintTable(w, lines)
}

// PrintTable prints lines of as many cells each, in columns: the first two flush
// left, the last one as it is, the others flush right.
func PrintTable(w io.Writer, lines [][]string) error {
	widths := make([]int, len(lines[0]))
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
			case i < len(line)-1:
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

func (r Row) cells() []string {
	cells := []string{r.Scenario, r.Variant, digits.Group(r.Events), Human(r.PerSecond), Human(r.Redis), Human(r.Client)}
	if q := r.Lateness; q != nil {
		cells = append(cells, Human(q.P50), Human(q.P99), Human(q.P999), Human(q.Max), digits.Group(int(q.Early)))
	} else {
		cells = append(cells, "-", "-", "-", "-", "-")
	}
	notes := make([]string, len(r.Figures))
	for i, f := range r.Figures {
		notes[i] = f.note()
	}
	return append(cells, strings.Join(notes, ", "))
}

func (f Figure) note() string {
	text := f.Name + " " + Human(f.Value)
	if f.Value == math.Trunc(f.Value) {
		text = f.Name + " " + digits.Group(int(f.Value))
	}
	if f.Unit != "" {
		text += " " + f.Unit
	}
	if f.Of != "" {
		text += " (" + f.Of + ")"
	}
	return text
}

// Human shows three digits or more; "-" is nothing.
func Human(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "-"
	case a >= 100:
		return digits.Group(int(math.Round(v)))
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 4, 64)
}
