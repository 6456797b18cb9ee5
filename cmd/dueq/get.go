package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/digits"
	"github.com/dueq-io/dueq/internal/envelope"
)

// newGet is the verb get.
func newGet() *cobra.Command {
	var raw bool
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "get TOPIC ID",
		Short: "Show an event",
		Long: `Shows an event: what and where it is, and its body, indented if it is JSON, and
as a hex dump if it is no text. With --raw it prints the body alone, as it is.

` + redisHelp,
		Example: `  dueq get order.close order-42 --redis redis://localhost:6379
  dueq get order.close order-42 --raw > body.json
  dueq get order.close order-42 -o json | jq -r .state`,
		Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if raw && cmd.Flags().Changed("output") {
				return usageError{errors.New("--raw and --output exclude each other")}
			}
			return withQueue(cmd, func(ctx context.Context, q *dueq.Queue) error {
				e, err := q.Get(ctx, args[0], args[1])
				switch {
				case err != nil:
					return err
				case raw:
					_, err := cmd.OutOrStdout().Write(e.Body)
					return err
				case output == "json":
					return printJSON(cmd.OutOrStdout(), envelope.NewInfo(e, false))
				}
				return writeEvent(cmd.OutOrStdout(), e)
			})
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "print the body alone, as it is")
	output.add(cmd)
	cmd.Flags().SortFlags = false
	completeTopics(cmd, false)
	return cmd
}

// writeEvent prints an event for people.
func writeEvent(w io.Writer, e *dueq.EventInfo) error {
	now := time.Now()
	table := newTable(w)
	line := func(name, value string) { fmt.Fprintf(table, "%s\t%s\n", name, value) }
	when := func(name string, t time.Time) {
		if !t.IsZero() {
			line(name, moment(t)+", "+distance(t, now))
		}
	}
	line("id", printable(e.ID))
	line("topic", printable(e.Topic))
	line("state", string(e.State))
	when("due", e.Due)
	when("died", e.DiedAt)
	when("effect time", e.EffectTime)
	attempts := digits.Group(e.Attempts) + " used up"
	if e.MaxAttempts > 0 {
		attempts += " of " + digits.Group(e.MaxAttempts)
	}
	line("attempts", attempts)
	if e.LastError != "" {
		line("last error", strings.NewReplacer("\t", "    ", "\n", "\n\t").Replace(text(e.LastError)))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Metadata)) {
		line("metadata", printable(name)+" = "+printable(e.Metadata[name]))
	}
	line("body", plural(e.BodySize, "byte"))
	if err := table.Flush(); err != nil || len(e.Body) == 0 {
		return err
	}
	_, err := io.WriteString(w, "\n"+strings.TrimSuffix(body(e.Body), "\n")+"\n")
	return err
}

// body is a body for people: nothing in it reaches the terminal but text.
func body(raw []byte) string {
	var indented bytes.Buffer
	switch {
	case utf8.Valid(raw) && json.Indent(&indented, raw, "", "  ") == nil:
		return escaped(indented.String())
	case utf8.Valid(raw) && shown(string(raw)):
		return string(raw)
	}
	return hex.Dump(raw)
}
