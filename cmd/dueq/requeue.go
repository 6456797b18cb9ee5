package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
)

// requeueFlags are the flags of the verb requeue.
type requeueFlags struct {
	all     bool
	filter  filterFlags
	due     dueFlags
	confirm confirmFlags
	output  outputFlag
}

// newRequeue is the verb requeue.
func newRequeue() *cobra.Command {
	var f requeueFlags
	cmd := &cobra.Command{
		Use:   "requeue TOPIC (ID ... | --all | FILTER)",
		Short: "Give dead events a new life",
		Long: `Gives dead events a new life: they are due at once, or at the given time, with all
their attempts. Name them, or take all, or those that a filter takes: --id-prefix,
--error, --since, --until. For all, and for those of a filter, it asks.

It works in small steps while the topic is in use. Interrupted, it stops in between;
another call goes on.

Exit codes: 0 done, 1 not all that were named were requeued, 2 called wrongly, 130
interrupted.

` + redisHelp,
		Example: `  dueq requeue order.close order-42 --redis redis://localhost:6379
  dueq requeue order.close --error 'no route' --since -24h --in 10m
  dueq requeue order.close --all --yes`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: f.run,
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "requeue all that are dead")
	f.filter.add(cmd)
	f.due.add(cmd)
	f.confirm.add(cmd)
	f.output.add(cmd)
	cmd.Flags().SortFlags = false
	completeTopics(cmd, false)
	return cmd
}

func (f *requeueFlags) run(cmd *cobra.Command, args []string) error {
	topic, ids := args[0], args[1:]
	filter, filtered, err := f.filter.filter(time.Now())
	if err == nil {
		err = f.check(cmd, len(ids), filtered)
	}
	var at time.Time
	if err == nil {
		at, err = f.due.time()
	}
	if err != nil {
		return usageError{err}
	}
	return withQueue(cmd, func(ctx context.Context, q *dueq.Queue) error {
		if err := checkKnown(ctx, cmd, q, topic); err != nil {
			return err
		}
		if len(ids) > 0 {
			return each(cmd, f.output, ids, "requeued", func(id string) error { return q.RequeueEvent(ctx, topic, id, at) })
		}
		if err := f.ask(ctx, cmd, q, topic, filter); err != nil {
			return err
		}
		n, err := q.Requeue(ctx, topic, filter, at)
		return printCount(cmd, f.output, n, "requeued", err)
	})
}

// check refuses what is too much or too little.
func (f *requeueFlags) check(cmd *cobra.Command, ids int, filtered bool) error {
	ways := 0
	for _, way := range []bool{ids > 0, f.all, filtered} {
		if way {
			ways++
		}
	}
	if ways != 1 {
		return errors.New("name ids, or use --all, or filter by --id-prefix, --error, --since and --until")
	}
	if ids > 0 {
		return nil
	}
	return f.confirm.check(cmd, f.output)
}

// ask asks, and says how many events it is about.
func (f *requeueFlags) ask(ctx context.Context, cmd *cobra.Command, q *dueq.Queue, topic string, filter dueq.Filter) error {
	if f.confirm.yes {
		return nil
	}
	n := 0
	query := dueq.Query{State: dueq.StateDead, Filter: filter, Limit: lsPage}
	for {
		page, err := q.List(ctx, topic, query)
		if err != nil {
			return err
		}
		n += len(page.Events)
		if query.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	return f.confirm.ask(ctx, cmd, fmt.Sprintf("Requeue %s of topic %s?", plural(n, "dead event"), printable(topic)))
}

// printCount prints how many events were changed, also if err says that it was
// not to the end.
func printCount(cmd *cobra.Command, output outputFlag, n int, done string, err error) error {
	if output == "json" {
		return errors.Join(err, printJSON(cmd.OutOrStdout(), changed{Count: n}))
	}
	if n > 0 || err == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", plural(n, "event"), done)
	}
	return err
}
