package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/digits"
	"github.com/dueq-io/dueq/internal/envelope"
)

const (
	lsPage     = 500     // events read at a time, if all are
	maxPreview = 1 << 20 // bytes
	bodyWidth  = 60      // characters of a body or an error in a table
)

// lsFlags are the flags of the verb ls.
type lsFlags struct {
	state   string
	limit   int
	cursor  string
	all     bool
	preview int
	filter  filterFlags
	output  outputFlag
}

// newLs is the verb ls.
func newLs() *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:   "ls TOPIC",
		Short: "List a topic's events",
		Long: `Lists a topic's events that are in one state:

  scheduled  by when they are due, the next one first; one that is due is yet to be
             moved to the ready ones, as those of a backlog are
  ready      due, in the order in which they will be handled
  leased     held by a process, by partition, process and id
  dead       failed for good, the last to die first

It prints up to --limit of them, and if there are more, a cursor to go on from. The
topic may be in use: what moves meanwhile may be missed, or listed twice.

JSON is one object with events and, if there are more, next, the cursor; with --all
it is one object per event and line.

` + redisHelp,
		Example: `  dueq ls order.close --redis redis://localhost:6379
  dueq ls order.close --state dead --error 'no route' --since -24h
  dueq ls order.close --until 10m --all -o json | jq -r .id`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: f.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.state, "state", "scheduled", "events in this `state`: scheduled, ready, leased or dead")
	flags.IntVar(&f.limit, "limit", 50, "most `events` to print, up to 500")
	flags.StringVar(&f.cursor, "cursor", "", "go on where the list before ended, at its `cursor`")
	flags.BoolVar(&f.all, "all", false, "print all of them, instead of up to --limit")
	flags.IntVar(&f.preview, "preview", 200, "most `bytes` of each body")
	f.filter.add(cmd)
	f.output.add(cmd)
	flags.SortFlags = false
	completeTopics(cmd, false)
	completeFlag(cmd, "state", string(dueq.StateScheduled), string(dueq.StateReady), string(dueq.StateLeased), string(dueq.StateDead))
	return cmd
}

func (f *lsFlags) run(cmd *cobra.Command, args []string) error {
	query, err := f.query(cmd)
	if err != nil {
		return usageError{err}
	}
	return withQueue(cmd, func(ctx context.Context, q *dueq.Queue) error {
		if err := checkKnown(ctx, cmd, q, args[0]); err != nil {
			return err
		}
		if f.all {
			return f.listAll(ctx, cmd, q, args[0], query)
		}
		return f.listSome(ctx, cmd, q, args[0], query)
	})
}

// query is what the flags ask for.
func (f *lsFlags) query(cmd *cobra.Command) (query dueq.Query, err error) {
	query = dueq.Query{State: dueq.State(f.state), Cursor: f.cursor, Limit: f.limit, Preview: f.preview}
	query.Filter, _, err = f.filter.filter(time.Now())
	switch {
	case err != nil:
	case f.limit < 1 || f.limit > lsPage:
		err = fmt.Errorf("--limit is %d, not from 1 to %d", f.limit, lsPage)
	case f.preview < 0 || f.preview > maxPreview:
		err = fmt.Errorf("--preview is %d, not from 0 to %d", f.preview, maxPreview)
	case f.all && cmd.Flags().Changed("limit"):
		err = errors.New("--all and --limit exclude each other")
	}
	return query, err
}

// listed is what ls prints as JSON.
type listed struct {
	Events []envelope.Info `json:"events"`
	Next   string          `json:"next,omitempty"`
}

// listSome prints up to the limit.
func (f *lsFlags) listSome(ctx context.Context, cmd *cobra.Command, q *dueq.Queue, topic string, query dueq.Query) error {
	var events []*dueq.EventInfo
	for { // with a filter a page may be short
		page, err := q.List(ctx, topic, query)
		if err != nil {
			return err
		}
		events = append(events, page.Events...)
		query.Cursor, query.Limit = page.Next, f.limit-len(events)
		if page.Next == "" || query.Limit == 0 {
			break
		}
	}
	if f.output == "json" {
		out := listed{Events: make([]envelope.Info, len(events)), Next: query.Cursor}
		for i, e := range events {
			out.Events[i] = envelope.NewInfo(e, false)
		}
		return printJSON(cmd.OutOrStdout(), out)
	}
	if err := writeEvents(cmd, query.State, events, true); err != nil {
		return err
	}
	if query.Cursor != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "there are more: add --cursor %s\n", query.Cursor)
	}
	return nil
}

// listAll prints one page after the other.
func (f *lsFlags) listAll(ctx context.Context, cmd *cobra.Command, q *dueq.Queue, topic string, query dueq.Query) error {
	query.Limit = lsPage
	for first := true; ; {
		page, err := q.List(ctx, topic, query)
		if err != nil {
			return err
		}
		query.Cursor = page.Next
		switch {
		case f.output == "json":
			for _, e := range page.Events {
				if err := printJSON(cmd.OutOrStdout(), envelope.NewInfo(e, false)); err != nil {
					return err
				}
			}
		case len(page.Events) > 0 || first && page.Next == "":
			if err := writeEvents(cmd, query.State, page.Events, first); err != nil {
				return err
			}
			first = false
		}
		if page.Next == "" {
			return nil
		}
	}
}

// writeEvents prints events for people, under a heading if they are the first.
func writeEvents(cmd *cobra.Command, state dueq.State, events []*dueq.EventInfo, first bool) error {
	if len(events) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "none is %s\n", state)
		return nil
	}
	table := newTable(cmd.OutOrStdout())
	if first {
		heads := map[dueq.State]string{
			dueq.StateScheduled: "DUE\t\tATTEMPTS\tBYTES\tBODY",
			dueq.StateDead:      "DIED\t\tATTEMPTS\tBYTES\tLAST ERROR",
			dueq.StateReady:     "EFFECT TIME\t\tATTEMPTS\tBYTES\tBODY",
			dueq.StateLeased:    "EFFECT TIME\t\tATTEMPTS\tBYTES\tBODY",
		}
		fmt.Fprintf(table, "ID\t%s\n", heads[state])
	}
	now := time.Now()
	for _, e := range events {
		at, text := e.EffectTime, bodyCell(e, bodyWidth)
		switch state {
		case dueq.StateScheduled:
			at = e.Due
		case dueq.StateDead:
			at, text = e.DiedAt, cell(e.LastError, bodyWidth)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", printable(e.ID), moment(at), distance(at, now), e.Attempts, digits.Group(e.BodySize), text)
	}
	return table.Flush()
}

// bodyCell is the beginning of a body, fit for a cell.
func bodyCell(e *dueq.EventInfo, most int) string {
	text := cell(string(envelope.Whole(e.Body)), most)
	if len(e.Body) > 0 && len(e.Body) < e.BodySize && !strings.HasSuffix(text, "…") {
		text += "…"
	}
	return text
}
