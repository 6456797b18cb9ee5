package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/envelope"
)

// withQueue calls do with a queue on the Redis that the flags name, and tells
// apart who or what is to blame for its error.
func withQueue(cmd *cobra.Command, do func(ctx context.Context, q *dueq.Queue) error) error {
	q, server, err := openQueue(cmd, dueq.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = server.close() }() // all that matters is done by then
	ctx := cmd.Context()
	err = do(ctx, q)
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return asUsage(err)
}

// checkKnown returns a [usageError] if one of the topics was never used: it may be
// misspelt.
func checkKnown(ctx context.Context, cmd *cobra.Command, q *dueq.Queue, topics ...string) error {
	known, err := q.Topics(ctx)
	if err != nil {
		return err
	}
	for _, topic := range topics {
		if !slices.Contains(known, topic) {
			return usageError{fmt.Errorf("no topic %q in namespace %q", topic, namespace(cmd))}
		}
	}
	return nil
}

// printJSON prints one line of JSON.
func printJSON(cmd *cobra.Command, v any) error {
	return json.NewEncoder(cmd.OutOrStdout()).Encode(v)
}

// newTable is for lines whose cells end with tabs. The caller flushes it.
func newTable(cmd *cobra.Command) *tabwriter.Writer {
	return tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
}

// cell is the beginning of a text, fit for one cell of a table.
func cell(text string, most int) string {
	line, _, more := strings.Cut(text, "\n")
	if utf8.RuneCountInString(line) > most {
		n := 0
		for i := range line { // bytes that are no text stay as they are
			if n++; n > most {
				line, more = line[:i], true
				break
			}
		}
	}
	line = printable(line)
	if more {
		line += "…"
	}
	return line
}

// bodyCell is the beginning of a body, fit for a cell.
func bodyCell(e *dueq.EventInfo, most int) string {
	text := cell(string(envelope.Whole(e.Body)), most)
	if len(e.Body) > 0 && len(e.Body) < e.BodySize && !strings.HasSuffix(text, "…") {
		text += "…"
	}
	return text
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
		return thousands(int(d/day)) + "d"
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
