package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dueq-io/dueq/internal/digits"
)

// plural is a number of things.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return digits.Group(n) + " " + what + "s"
}

// rate is a number per second for people.
func rate(perSecond float64) string {
	if perSecond > 0 && perSecond < 99.95 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return digits.Group(int(perSecond + 0.5))
}

// millis is d in milliseconds, to the microsecond.
func millis(d time.Duration) float64 { return float64(d.Round(time.Microsecond).Microseconds()) / 1e3 }

// short writes milliseconds with about three digits.
func short(ms float64) string {
	digits := 0
	switch {
	case ms < 10:
		digits = 2
	case ms < 100:
		digits = 1
	}
	return strconv.FormatFloat(ms, 'f', digits, 64)
}

// moment is a time for people: with that of the day here.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05.000")
}

// distance is how far off a time is, as "in 5m", "3h20m ago" or "now".
func distance(t, now time.Time) string {
	switch d := t.Sub(now); {
	case t.IsZero():
		return "-"
	case d.Abs() < time.Second/2:
		return "now"
	case d > 0:
		return "in " + span(d)
	default:
		return span(-d) + " ago"
	}
}

// span is a pause with its two largest units.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 1000*day:
		return digits.Group(int(d/day)) + "d"
	case d >= day:
		return trimZeros(fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour))
	case d >= time.Hour:
		return trimZeros(fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute))
	case d >= time.Minute:
		return trimZeros(fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second))
	case d >= 10*time.Second:
		return d.Truncate(time.Second).String()
	}
	return d.Truncate(time.Millisecond).String()
}

// trimZeros leaves out a second unit of which there is none.
func trimZeros(text string) string {
	first := strings.IndexAny(text, "dhm") + 1
	if text[first] == '0' {
		return text[:first]
	}
	return text
}
