package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/envelope"
)

// dueFlags are the flags that say when an event is to be due.
type dueFlags struct {
	in, at string
	now    bool
}

func (f *dueFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.in, "in", "", "due this `duration` from now, as 1h30m")
	flags.StringVar(&f.at, "at", "", "due at that `time`, as 2006-01-02T15:04:05Z (RFC 3339)")
}

// time is what the flags say; now if they say nothing.
func (f *dueFlags) time() (time.Time, error) {
	if f.now && f.in+f.at != "" {
		return time.Time{}, errors.New("--now excludes --in and --at")
	}
	t, err := envelope.Time(f.in, f.at, time.Now())
	if err != nil {
		err = asFlag(err)
	}
	return t, err
}

// asFlag names flags where err, of an event's envelope, begins with a field.
func asFlag(err error) error {
	field, rule, _ := strings.Cut(err.Error(), " ")
	return fmt.Errorf("--%s %s", strings.ReplaceAll(field, "_", "-"), strings.Replace(rule, "and at ", "and --at ", 1))
}

// newReschedule is the verb reschedule.
func newReschedule() *cobra.Command {
	var due dueFlags
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "reschedule TOPIC ID (--in TIME | --at TIME | --now)",
		Short: "Give an event another time",
		Long: `Gives an event that no process holds another effect time. One that was dead starts
anew, with all its attempts.

` + redisHelp,
		Example: `  dueq reschedule order.close order-42 --in 30m --redis redis://localhost:6379
  dueq reschedule order.close order-42 --now`,
		Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			at, err := due.time()
			if err == nil && due.in == "" && due.at == "" && !due.now {
				err = errors.New("say when: --in, --at or --now")
			}
			if err != nil {
				return usageError{err}
			}
			return withQueue(cmd, func(ctx context.Context, q *dueq.Queue) error {
				if err := q.Reschedule(ctx, args[0], args[1], at); err != nil {
					return err
				}
				if output == "json" {
					return printJSON(cmd.OutOrStdout(), published{args[1], args[0], envelope.Stamp(at)})
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is due %s, %s\n", printable(args[1]), moment(at), distance(at, now))
				return nil
			})
		},
	}
	due.add(cmd)
	cmd.Flags().BoolVar(&due.now, "now", false, "due at once")
	output.add(cmd)
	cmd.Flags().SortFlags = false
	completeTopics(cmd, false)
	return cmd
}

// newCancel is the verb cancel.
func newCancel() *cobra.Command {
	var confirm confirmFlags
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "cancel TOPIC ID ...",
		Short: "Forget events",
		Long: `Forgets events that no process holds, dead or alive, with their bodies. It asks if
they are more than one.

Exit codes: 0 done, 1 not all were forgotten, 2 called wrongly, 130 interrupted.

` + redisHelp,
		Example: `  dueq cancel order.close order-42 --redis redis://localhost:6379
  dueq ls order.close --state dead --all -o json | jq -r .id | xargs -r dueq cancel order.close --yes`,
		Args: usageArgs(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, ids := args[0], args[1:]
			if len(ids) == 1 {
				confirm.yes = true
			}
			if err := confirm.check(cmd, output); err != nil {
				return usageError{err}
			}
			return withQueue(cmd, func(ctx context.Context, q *dueq.Queue) error {
				question := fmt.Sprintf("Forget %s of topic %s?", plural(len(ids), "event"), printable(topic))
				if err := confirm.ask(ctx, cmd, question); err != nil {
					return err
				}
				return each(cmd, output, ids, "cancelled", func(id string) error { return q.Cancel(ctx, topic, id) })
			})
		},
	}
	confirm.add(cmd)
	output.add(cmd)
	cmd.Flags().SortFlags = false
	completeTopics(cmd, false)
	return cmd
}

// changed is what verbs that change several events print as JSON.
type changed struct {
	Count    int             `json:"count"`
	Failures []changeFailure `json:"failures,omitempty"`
}

// changeFailure is an event that was not changed.
type changeFailure struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

// each changes one event after the other, and prints which it could not change.
// done is what the others are now.
func each(cmd *cobra.Command, output outputFlag, ids []string, done string, change func(id string) error) error {
	var out changed
	var stopped error // there was no use in going on
	for _, id := range ids {
		err := change(id)
		switch {
		case err == nil:
			out.Count++
			continue
		case errors.Is(err, dueq.ErrNotFound), errors.Is(err, dueq.ErrLeased), errors.Is(err, dueq.ErrNotDead):
			out.Failures = append(out.Failures, changeFailure{id, tell(err)})
			continue
		}
		stopped = err
		break
	}
	if stopped != nil && out.Count == 0 && len(out.Failures) == 0 {
		return stopped
	}
	if output == "json" {
		stopped = errors.Join(stopped, printJSON(cmd.OutOrStdout(), out))
	} else {
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", plural(out.Count, "event"), done)
		for _, f := range out.Failures {
			fmt.Fprintf(cmd.OutOrStdout(), "  %s: %s\n", printable(f.ID), printable(f.Error))
		}
	}
	if n := len(out.Failures); n > 0 && stopped == nil {
		return fmt.Errorf("%s not %s", plural(n, "event"), done)
	}
	return stopped
}
