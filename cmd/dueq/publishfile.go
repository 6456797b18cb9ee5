package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/digits"
	"github.com/dueq-io/dueq/internal/envelope"
)

const (
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
func (f *publishFlags) publishFile(ctx context.Context, cmd *cobra.Command, q *dueq.Queue, topic string) error {
	in, size := cmd.InOrStdin(), int64(0)
	p := newProgress(cmd.ErrOrStderr())
	if f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return usageError{err}
		}
		defer func() { _ = file.Close() }() // it was only read
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
			err := eachBatch(ctx, file, func(b batch) error {
				p.sometimes(func() string { return bar(b.read, size) + " checked" })
				return nil
			})
			p.clear()
			if err != nil {
				return fmt.Errorf("%s: %w; nothing was published", f.file, err)
			}
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				return err
			}
		}
		in = file
	}
	out := filed{Failures: []failure{}}
	err := eachBatch(ctx, in, func(b batch) error {
		err := out.publish(ctx, q, topic, b)
		p.sometimes(func() string { return out.progress(b.read, size) })
		return err
	})
	p.clear()
	if f.output == "json" {
		err = errors.Join(err, printJSON(cmd.OutOrStdout(), out))
	} else {
		out.write(cmd.OutOrStdout())
	}
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return fmt.Errorf("%s: %w", f.file, err)
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
				r.Failures = append(r.Failures, failure{line, tell(err)})
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
	done := digits.Group(r.Published) + " published"
	if size == 0 {
		return done
	}
	return bar(read, size) + " " + done
}

// write prints the outcome for people.
func (r *filed) write(w io.Writer) {
	fmt.Fprintf(w, "%s published", digits.Group(r.Published))
	if r.Failed > 0 {
		fmt.Fprintf(w, ", %s not", digits.Group(r.Failed))
	}
	fmt.Fprintln(w)
	for _, f := range r.Failures {
		fmt.Fprintf(w, "  line %d: %s\n", f.Line, printable(f.Error))
	}
	if more := r.Failed - len(r.Failures); more > 0 {
		fmt.Fprintf(w, "  and %s more\n", digits.Group(more))
	}
}
