package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/envelope"
)

// maxStdin is the largest body read from stdin, more than any queue takes.
const maxStdin = 256 << 20

// publishFlags are the flags of the verb publish.
type publishFlags struct {
	due         dueFlags
	id          string
	duplicate   string
	maxAttempts int
	metadata    map[string]string
	file        string
	output      outputFlag
}

// newPublish is the verb publish.
func newPublish() *cobra.Command {
	var f publishFlags
	cmd := &cobra.Command{
		Use:   "publish TOPIC [BODY]",
		Short: "Publish an event, or a file of them",
		Long: `Publishes an event, due at once or at the given time, and prints its id. The body
is taken as it is; without one, or with -, it is read from stdin.

With --file it publishes events in NDJSON: one JSON object a line, with any of

  body          any JSON value: the body is its text    (at most one
  text          the body as a string                     of these)
  base64        the body in base64
  in or at      as the flags; without them it is due at once
  id, on_duplicate, max_attempts, metadata

The form of a file's lines is checked before anything of it is published; what comes
from a pipe is published up to the first bad line. It prints how many were published, and which
lines were not, such as those whose id exists.

Exit codes: 0 done, 1 not all were published, 2 called wrongly, 130 interrupted.

` + redisHelp,
		Example: `  dueq publish order.close '{"order":42}' --in 30m --id order-42
  dueq publish report --at 2030-01-01T08:00:00+01:00 < report.json
  dueq publish order.close '{"order":42}' --in 45m --id order-42 --on-duplicate replace
  dueq publish order.close --file orders.ndjson`,
		Args: usageArgs(cobra.RangeArgs(1, 2)),
		RunE: f.run,
	}
	flags := cmd.Flags()
	f.due.add(cmd)
	flags.StringVar(&f.id, "id", "", "the event's `id` (default: a random one)")
	flags.StringVar(&f.duplicate, "on-duplicate", "reject", "if an event has the id, this `policy`: reject, keep or replace")
	flags.IntVar(&f.maxAttempts, "max-attempts", 0, "after how many `attempts` it has failed for good (default: as its handlers' process is set)")
	flags.StringToStringVar(&f.metadata, "metadata", nil, "`name=value` for the handler; repeat it, or separate by commas")
	flags.StringVar(&f.file, "file", "", "publish the events in this NDJSON `file`; - is stdin")
	f.output.add(cmd)
	flags.SortFlags = false
	completeFlag(cmd, "on-duplicate", "reject", "keep", "replace")
	completeTopics(cmd, false)
	return cmd
}

func (f *publishFlags) run(cmd *cobra.Command, args []string) error {
	e, err := f.event(cmd, args)
	if err != nil {
		return usageError{err}
	}
	return withQueue(cmd, func(ctx context.Context, q *dueq.Queue) error {
		if f.file != "" {
			return f.publishFile(ctx, cmd, q, args[0])
		}
		return f.publishOne(ctx, cmd, q, args, e)
	})
}

// event is the event that the flags tell of, without its body.
func (f *publishFlags) event(cmd *cobra.Command, args []string) (envelope.New, error) {
	e := envelope.New{In: f.due.in, At: f.due.at, Metadata: f.metadata}
	set := cmd.Flags().Changed
	if f.file != "" {
		for _, name := range []string{"in", "at", "id", "on-duplicate", "max-attempts", "metadata"} {
			if set(name) {
				return e, fmt.Errorf("--file and --%s exclude each other: each line has its own", name)
			}
		}
		if len(args) > 1 {
			return e, errors.New("--file and a body exclude each other")
		}
		return e, nil
	}
	if set("id") {
		e.ID = &f.id
	}
	if set("on-duplicate") {
		e.OnDuplicate = f.duplicate
	}
	if set("max-attempts") {
		e.MaxAttempts = &f.maxAttempts
	}
	if _, err := e.Event(time.Now()); err != nil {
		return e, asFlag(err)
	}
	return e, nil
}

// published is what publish prints of one event as JSON.
type published struct {
	ID         string `json:"id"`
	Topic      string `json:"topic"`
	EffectTime string `json:"effect_time"`
}

func (f *publishFlags) publishOne(ctx context.Context, cmd *cobra.Command, q *dueq.Queue, args []string, e envelope.New) error {
	var body []byte
	if len(args) == 2 && args[1] != "-" {
		body = []byte(args[1])
	} else {
		if isTerminal(cmd.InOrStdin()) {
			fmt.Fprintln(cmd.ErrOrStderr(), "the body is read from here, until Ctrl-D")
		}
		var err error
		if body, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxStdin+1)); err != nil {
			return fmt.Errorf("read the body: %w", err)
		}
	}
	event, err := e.Event(time.Now()) // the time that --in counts from
	if err != nil {
		return usageError{err}
	}
	event.Body = body
	ids, err := q.PublishEvents(ctx, args[0], []dueq.NewEvent{event})
	var batch *dueq.BatchError
	switch {
	case errors.As(err, &batch):
		return batch.Errs[0]
	case err != nil:
		return err
	case f.output == "json":
		return printJSON(cmd.OutOrStdout(), published{ids[0], args[0], envelope.Stamp(event.EffectTime)})
	}
	fmt.Fprintln(cmd.OutOrStdout(), ids[0])
	return nil
}
