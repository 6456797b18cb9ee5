package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/envelope"
)

// publishFlags are the flags of the verb publish.
type publishFlags struct {
	in, at      string
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
	flags.StringVar(&f.in, "in", "", "due so long from now, as `1h30m`")
	flags.StringVar(&f.at, "at", "", "due at that `time`, as 2006-01-02T15:04:05Z (RFC 3339)")
	flags.StringVar(&f.id, "id", "", "the event's `id` (default: a random one)")
	flags.StringVar(&f.duplicate, "on-duplicate", "reject", "if an event has the id: `reject`, keep or replace")
	flags.IntVar(&f.maxAttempts, "max-attempts", 0, "after how many `attempts` it has failed for good (default: as its handlers' process is set)")
	flags.StringToStringVar(&f.metadata, "metadata", nil, "`name=value` for the handler; repeat it, or separate by commas")
	flags.StringVar(&f.file, "file", "", "publish the events in this NDJSON `file`; - is stdin")
	f.output.add(cmd)
	flags.SortFlags = false
	return cmd
}

func (f *publishFlags) run(cmd *cobra.Command, args []string) error {
	e, err := f.event(cmd, args)
	if err != nil {
		return usageError{err}
	}
	q, server, err := openQueue(cmd, dueq.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = server.close() }() // all that matters is done by then
	if f.file != "" {
		return f.publishFile(cmd, q, args[0])
	}
	return f.publishOne(cmd, q, args, e)
}

// event is the event that the flags tell of, without its body.
func (f *publishFlags) event(cmd *cobra.Command, args []string) (envelope.New, error) {
	e := envelope.New{In: f.in, At: f.at, Metadata: f.metadata}
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
	_, err := e.Event(time.Now())
	return e, err
}

// published is what publish prints of one event as JSON.
type published struct {
	ID         string    `json:"id"`
	Topic      string    `json:"topic"`
	EffectTime time.Time `json:"effect_time"`
}

func (f *publishFlags) publishOne(cmd *cobra.Command, q *dueq.Queue, args []string, e envelope.New) error {
	var body []byte
	if len(args) == 2 && args[1] != "-" {
		body = []byte(args[1])
	} else {
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
	ids, err := q.PublishEvents(cmd.Context(), args[0], []dueq.NewEvent{event})
	var batch *dueq.BatchError
	switch {
	case errors.As(err, &batch):
		return batch.Errs[0]
	case err != nil:
		return asUsage(err)
	case f.output == "json":
		return json.NewEncoder(cmd.OutOrStdout()).Encode(published{ids[0], args[0], event.EffectTime})
	}
	fmt.Fprintln(cmd.OutOrStdout(), ids[0])
	return nil
}

// asUsage makes what is wrong with the arguments a [usageError].
func asUsage(err error) error {
	for _, is := range []error{
		dueq.ErrTopicInvalid, dueq.ErrIDInvalid, dueq.ErrEventInvalid, dueq.ErrBodyTooLarge, dueq.ErrQueryInvalid, dueq.ErrSubscription,
	} {
		if errors.Is(err, is) {
			return usageError{err}
		}
	}
	return err
}

const (
	// maxStdin is the largest body read from stdin, more than any queue takes.
	maxStdin = 256 << 20
	// maxLine is the longest line: a body may have six bytes there for each of its own.
	maxLine = 8 << 20
	// fileBatch and fileBytes bound a batch.
	fileBatch = 500
	fileBytes = 4 << 20
	// maxFailures is how many failed lines are told of.
	maxFailures = 100
)

// filed is what publish prints of a file as JSON.
type filed struct {
	Published int       `json:"published"`
	Failed    int       `json:"failed"`
	Failures  []failure `json:"failures"` // the first hundred
}

// failure is a line that was not published.
type failure struct {
	Line  int    `json:"line"`
	Error string `json:"error"`
}

// publishFile publishes the lines of a file, or of stdin.
func (f *publishFlags) publishFile(cmd *cobra.Command, q *dueq.Queue, topic string) error {
	ctx, in, size := cmd.Context(), cmd.InOrStdin(), int64(0)
	if f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return usageError{err}
		}
		defer func() { _ = file.Close() }() // it was only read
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
			if err := eachBatch(ctx, file, func(batch) error { return nil }); err != nil {
				return fmt.Errorf("%s: %w; nothing was published", f.file, err)
			}
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				return err
			}
		}
		in = file
	}
	out := filed{Failures: []failure{}}
	p := newProgress(cmd.ErrOrStderr())
	shown := time.Now()
	err := eachBatch(ctx, in, func(b batch) error {
		err := out.publish(ctx, q, topic, b)
		if time.Since(shown) > p.interval() {
			shown = time.Now()
			p.show(out.progress(b.read, size))
		}
		return err
	})
	p.clear()
	if f.output == "json" {
		err = errors.Join(err, json.NewEncoder(cmd.OutOrStdout()).Encode(out))
	} else {
		out.write(cmd.OutOrStdout())
	}
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return asUsage(fmt.Errorf("%s: %w", f.file, err))
	case out.Failed > 0:
		return fmt.Errorf("%s not published", plural(out.Failed, "line"))
	}
	return nil
}

// batch is some events of a file.
type batch struct {
	events []dueq.NewEvent
	lines  []int // where they stood
	bytes  int   // of the bodies
	read   int64 // bytes of the file until here
}

// eachBatch calls do with the events of NDJSON. Its error names the line.
func eachBatch(ctx context.Context, r io.Reader, do func(batch) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	var b batch
	line := 0
	flush := func() error {
		if len(b.events) == 0 {
			return ctx.Err()
		}
		err := errors.Join(do(b), ctx.Err())
		b.events, b.lines, b.bytes = b.events[:0], b.lines[:0], 0
		return err
	}
	for lines.Scan() {
		line++
		text := lines.Bytes()
		b.read += int64(len(text)) + 1
		if len(text) == 0 {
			continue
		}
		read, err := envelope.Decode(text)
		var e dueq.NewEvent
		if err == nil {
			e, err = read.Event(time.Now())
		}
		if err != nil {
			return errors.Join(flush(), fmt.Errorf("line %d: %w", line, err))
		}
		b.events, b.lines, b.bytes = append(b.events, e), append(b.lines, line), b.bytes+len(e.Body)
		if len(b.events) == fileBatch || b.bytes > fileBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	err := flush()
	switch {
	case errors.Is(lines.Err(), bufio.ErrTooLong):
		err = errors.Join(err, fmt.Errorf("line %d is longer than %d bytes", line+1, maxLine))
	case lines.Err() != nil:
		err = errors.Join(err, fmt.Errorf("line %d: %w", line+1, lines.Err()))
	}
	return err
}

// publish publishes a batch and counts.
func (r *filed) publish(ctx context.Context, q *dueq.Queue, topic string, b batch) error {
	_, err := q.PublishEvents(ctx, topic, b.events)
	var partly *dueq.BatchError
	switch {
	case err == nil:
		r.Published += len(b.events)
		return nil
	case !errors.As(err, &partly):
		return fmt.Errorf("lines %d to %d: %w", b.lines[0], b.lines[len(b.lines)-1], err)
	}
	r.Published += partly.Stored
	for i, line := range b.lines {
		if err := partly.Errs[i]; err != nil {
			r.Failed++
			if len(r.Failures) < maxFailures {
				r.Failures = append(r.Failures, failure{line, err.Error()})
			}
			if !errors.Is(err, dueq.ErrDuplicateID) {
				return fmt.Errorf("line %d: %w", line, err) // the next batch would fare no better
			}
		}
	}
	return nil
}

// progress is a bar if the size is known.
func (r *filed) progress(read, size int64) string {
	done := thousands(r.Published) + " published"
	if size == 0 {
		return done
	}
	return bar(read, size) + " " + done
}

// write prints the outcome for people.
func (r *filed) write(w io.Writer) {
	fmt.Fprintf(w, "%s published", thousands(r.Published))
	if r.Failed > 0 {
		fmt.Fprintf(w, ", %s not", thousands(r.Failed))
	}
	fmt.Fprintln(w)
	for _, f := range r.Failures {
		fmt.Fprintf(w, "  line %d: %s\n", f.Line, printable(f.Error))
	}
	if more := r.Failed - len(r.Failures); more > 0 {
		fmt.Fprintf(w, "  and %s more\n", thousands(more))
	}
}
