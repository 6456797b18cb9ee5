package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
)

// newTopics is the verb topics.
func newTopics() *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "List the topics of the namespace",
		Long: `Lists the topics of the namespace by name, one a line: all that were ever
published or subscribed to. 'dueq stats' counts what is in them.

` + redisHelp,
		Example: `  dueq topics --redis redis://localhost:6379
  dueq topics --namespace shop -o json | jq -r '.topics[]'`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withQueue(cmd, func(ctx context.Context, q *dueq.Queue) error {
				topics, err := q.Topics(ctx)
				if err != nil {
					return err
				}
				if output == "json" {
					return printJSON(cmd.OutOrStdout(), map[string][]string{"topics": append([]string{}, topics...)})
				}
				for _, topic := range topics {
					fmt.Fprintln(cmd.OutOrStdout(), printable(topic))
				}
				return nil
			})
		},
	}
	output.add(cmd)
	return cmd
}

// newPause is the verb pause.
func newPause() *cobra.Command {
	cmd := pausing("pause", true)
	cmd.Short = "Stop the delivery of topics"
	cmd.Long = `Stops the delivery of topics in all processes at once, also in those that start
later, until 'dueq resume'. Events are published and fall due as ever; handlers
that run finish. A topic that is paused already stays so, and one that is not in
use yet may be paused, too.

` + redisHelp
	cmd.Example = `  dueq pause order.close --redis redis://localhost:6379
  dueq stats order.close        # says that it is paused
  dueq resume order.close`
	return cmd
}

// newResume is the verb resume.
func newResume() *cobra.Command {
	cmd := pausing("resume", false)
	cmd.Short = "Start the delivery of topics again"
	cmd.Long = `Starts the delivery of topics again that 'dueq pause' has stopped: what has fallen
due since is handled at once.

` + redisHelp
	cmd.Example = `  dueq resume order.close --redis redis://localhost:6379`
	return cmd
}

// paused is what pause and resume print as JSON.
type paused struct {
	Topics []string `json:"topics"`
	Paused bool     `json:"paused"`
}

// pausing is what the verbs pause and resume have in common.
func pausing(verb string, pause bool) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:  verb + " TOPIC ...",
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, topics []string) error {
			return withQueue(cmd, func(ctx context.Context, q *dueq.Queue) error {
				do, is := q.Pause, "paused"
				if !pause {
					do, is = q.Resume, "resumed"
					if err := checkKnown(ctx, cmd, q, topics...); err != nil {
						return err
					}
				}
				for _, topic := range topics {
					if err := do(ctx, topic); err != nil {
						return err
					}
					if output != "json" {
						fmt.Fprintf(cmd.OutOrStdout(), "%s is %s\n", printable(topic), is)
					}
				}
				if output == "json" {
					return printJSON(cmd.OutOrStdout(), paused{topics, pause})
				}
				return nil
			})
		},
	}
	output.add(cmd)
	completeTopics(cmd, true)
	return cmd
}
