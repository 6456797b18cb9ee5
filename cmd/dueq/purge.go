package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/digits"
)

// purgeFlags are the flags of the verb purge.
type purgeFlags struct {
	states  []string
	confirm confirmFlags
	output  outputFlag
}

// newPurge is the verb purge.
func newPurge() *cobra.Command {
	var f purgeFlags
	cmd := &cobra.Command{
		Use:   "purge TOPIC",
		Short: "Forget all events of a topic that no process holds",
		Long: `Forgets all events of a topic that no process holds, with their bodies: those that
are scheduled, ready or dead, or only those in the states named. It asks.

It works in small steps while the topic is in use. Interrupted, it stops in between;
another call goes on.

` + redisHelp,
		Example: `  dueq purge order.close --state dead --redis redis://localhost:6379
  dueq purge order.close --yes -o json | jq .count`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: f.run,
	}
	cmd.Flags().StringSliceVar(&f.states, "state", nil, "only events in this `state`: scheduled, ready or dead, or several of them, separated by commas")
	f.confirm.add(cmd)
	f.output.add(cmd)
	cmd.Flags().SortFlags = false
	completeTopics(cmd, false)
	completeFlag(cmd, "state", string(dueq.StateScheduled), string(dueq.StateReady), string(dueq.StateDead))
	return cmd
}

func (f *purgeFlags) run(cmd *cobra.Command, args []string) error {
	states := make([]dueq.State, len(f.states))
	var err error
	for i, name := range f.states {
		states[i] = dueq.State(name)
		if err == nil && !slices.Contains([]dueq.State{dueq.StateScheduled, dueq.StateReady, dueq.StateDead}, states[i]) {
			err = fmt.Errorf("--state is %.40q, not scheduled, ready or dead", name)
		}
	}
	if err == nil && len(states) == 0 && cmd.Flags().Changed("state") { // all is not what was meant
		err = errors.New("--state names no state")
	}
	if err == nil {
		err = f.confirm.check(cmd, f.output)
	}
	if err != nil {
		return usageError{err}
	}
	return withQueue(cmd, func(ctx context.Context, q *dueq.Queue) error {
		topic := args[0]
		if err := checkKnown(ctx, cmd, q, topic); err != nil {
			return err
		}
		if err := f.ask(ctx, cmd, q, topic); err != nil {
			return err
		}
		n, err := q.Purge(ctx, topic, states...)
		return printCount(cmd, f.output, n, "forgotten", err)
	})
}

// ask asks, and says how many events it is about.
func (f *purgeFlags) ask(ctx context.Context, cmd *cobra.Command, q *dueq.Queue, topic string) error {
	if f.confirm.yes {
		return nil
	}
	s, err := q.Stats(ctx, topic)
	if err != nil {
		return err
	}
	var parts []string
	for _, part := range []struct {
		state dueq.State
		n     int
	}{{dueq.StateScheduled, s.Scheduled}, {dueq.StateReady, s.Ready}, {dueq.StateDead, s.Dead}} {
		if len(f.states) == 0 || slices.Contains(f.states, string(part.state)) {
			parts = append(parts, digits.Group(part.n)+" "+string(part.state))
		}
	}
	return f.confirm.ask(ctx, cmd, fmt.Sprintf("Forget the events of topic %s: %s?", printable(topic), strings.Join(parts, ", ")))
}
