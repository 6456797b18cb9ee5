package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dueq-io/dueq/internal/digits"
	"github.com/dueq-io/dueq/internal/envelope"
)

// rate is a number of events a second.
func rate(perSecond float64) string {
	switch {
	case perSecond <= 0:
		return "0"
	case perSecond < 0.1:
		return "<0.1"
	case perSecond < 9.95:
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return digits.Group(int(math.Round(perSecond)))
}

// tick is a number beside an axis.
func tick(v float64) string { return strings.TrimSuffix(rate(v), ".0") }

// span is a duration in at most two units.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	two := func(big time.Duration, bigName string, small time.Duration, smallName string) string {
		text := fmt.Sprintf("%d %s", d/big, bigName)
		if rest := d % big / small; rest > 0 {
			text += fmt.Sprintf(" %d %s", rest, smallName)
		}
		return text
	}
	d = d.Abs()
	switch {
	case d == 0:
		return "0 s"
	case d < time.Millisecond:
		return "<1 ms"
	case d < 10*time.Millisecond:
		return tenths(d, time.Millisecond) + " ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return tenths(d, time.Second) + " s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return two(time.Minute, "min", time.Second, "s")
	case d < day:
		return two(time.Hour, "h", time.Minute, "min")
	case d < 365*day:
		return two(day, "d", time.Hour, "h")
	}
	return two(365*day, "y", day, "d")
}

// tenths is a duration in a unit, with one decimal if that is not 0.
func tenths(d, unit time.Duration) string {
	return strconv.FormatFloat(float64(d*10/unit)/10, 'f', -1, 64)
}

// relative is a time as seen from now.
func relative(t, now time.Time) string {
	switch d := t.Sub(now); {
	case d > 0:
		return "in " + span(d)
	case d > -time.Second:
		return "now"
	default:
		return span(d) + " ago"
	}
}

// bytesOf is a size.
func bytesOf(n int) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// stamp is a time for people, whom JavaScript shows their own zone's.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// inputTime is a time as an input of type datetime-local has it; "" if t is zero.
func inputTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05")
}

// excerpt is the beginning of a body on one line: text as it is, all else in hex.
func excerpt(body []byte, more bool) string {
	text := body
	if more {
		text = envelope.Whole(text)
	}
	var line string
	if isText(text) {
		line = strings.Join(strings.FieldsFunc(string(text), unicode.IsSpace), " ")
	} else {
		line = fmt.Sprintf("% x", body[:min(len(body), 24)])
		more = more || len(body) > 24
	}
	if more {
		line += "…"
	}
	return line
}

// isText reports whether a body is UTF-8 without control characters other than
// white space.
func isText(body []byte) bool {
	if !utf8.Valid(body) {
		return false
	}
	for _, r := range string(body) {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return false
		}
	}
	return true
}
