package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dueq-io/dueq/internal/digits"
)

const (
	barWidth = 40
	// firstBound ends the histogram's first row; each further row is twice as wide.
	firstBound = 250 * time.Microsecond
)

// summary is what a demo comes to. Times are in milliseconds unless they say otherwise.
type summary struct {
	Events int `json:"events"`
	counts
	Open        int       `json:"open"` // published, and neither delivered nor persisted
	Interrupted bool      `json:"interrupted"`
	Seconds     float64   `json:"seconds"`
	Redis       string    `json:"redis"`
	ClockOffset float64   `json:"clock_offset_ms"` // the server's clock is ahead by
	Lateness    quantiles `json:"lateness_ms"`
	Histogram   []row     `json:"histogram"`
}

type quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// row is a row of a histogram: so many first deliveries were later than From
// and at most To. What was early is in the first row.
type row struct {
	From  float64 `json:"from_ms"`
	To    float64 `json:"to_ms"`
	Count int     `json:"count"`
}

func newSummary(events int, c counts, lateness []time.Duration, took time.Duration) *summary {
	slices.Sort(lateness)
	return &summary{
		Events: events, counts: c, Open: c.open(), Seconds: math.Round(took.Seconds()*1e3) / 1e3,
		Lateness:  quantiles{millis(quantile(lateness, .5)), millis(quantile(lateness, .99)), millis(quantile(lateness, 1))},
		Histogram: histogram(lateness),
	}
}

// quantile is the smallest of the sorted values that at least a share q of them
// does not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// histogram counts sorted values in rows, from the first to the last that has any.
func histogram(sorted []time.Duration) []row {
	rows := []row{}
	from, to := time.Duration(0), firstBound
	for len(sorted) > 0 {
		n, _ := slices.BinarySearch(sorted, to+1)
		if n > 0 || len(rows) > 0 {
			rows = append(rows, row{millis(from), millis(to), n})
		}
		sorted, from, to = sorted[n:], to, 2*to
	}
	return rows
}

// writeText prints the summary for people.
func (s *summary) writeText(w io.Writer) {
	if s.Interrupted {
		fmt.Fprint(w, "Interrupted. ")
	}
	fmt.Fprintf(w, "%s events published, %s done in %.1f s:\n\n", digits.Group(s.Published), digits.Group(s.Published-s.Open), s.Seconds)
	line := func(name string, n int, what string) { fmt.Fprintf(w, "  %-10s%9s  %s\n", name, digits.Group(n), what) }
	line("delivered", s.Delivered, "events: a handler succeeded")
	line("persisted", s.Persisted, fmt.Sprintf("events: failed at all %d attempts, then PersistFn took them", demoAttempts))
	if s.Open > 0 {
		line("open", s.Open, "events: neither of these, and given up")
	}
	line("retried", s.Retried, fmt.Sprintf("times a failed event came again, %v later", demoBackoff))
	if s.Repeated > 0 {
		line("repeated", s.Repeated, "times an event came again though it was done (at least once, not exactly)")
	}
	line("early", s.Early, "deliveries before the effect time: must be 0")
	if len(s.Histogram) == 0 {
		return
	}
	fmt.Fprintf(w, "\nLateness, from an event's effect time to the start of its handler:\n\n")
	fmt.Fprintf(w, "  p50 %s ms    p99 %s ms    max %s ms\n\n", short(s.Lateness.P50), short(s.Lateness.P99), short(s.Lateness.Max))
	s.writeHistogram(w)
	if s.ClockOffset != 0 {
		where := "ahead of"
		if s.ClockOffset < 0 {
			where = "behind"
		}
		fmt.Fprintf(w, "\nThe server's clock, which decides, is %s ms %s this machine's; that is allowed for.\n",
			short(math.Abs(s.ClockOffset)), where)
	}
}

func (s *summary) writeHistogram(w io.Writer) {
	most := 1
	for _, r := range s.Histogram {
		most = max(most, r.Count)
	}
	for _, r := range s.Histogram {
		bar := strings.Repeat("#", (r.Count*barWidth+most-1)/most)
		line := fmt.Sprintf("  %6v to %-8s%9s  %s", r.From, fmt.Sprint(r.To, " ms"), digits.Group(r.Count), bar)
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// progressLine says how far a demo is.
func progressLine(elapsed time.Duration, events int, c counts) string {
	finished := c.Delivered + c.Persisted
	bar := strings.Repeat("#", finished*10/events)
	return fmt.Sprintf("%6.1f s [%-10s] %s of %s done, %s retried, %s persisted",
		elapsed.Seconds(), bar, digits.Group(finished), digits.Group(events), digits.Group(c.Retried), digits.Group(c.Persisted))
}
