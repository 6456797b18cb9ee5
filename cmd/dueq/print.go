package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/envelope"
)

// shownBody is how much of a body a table shows, in bytes.
const shownBody = 200

// newPrinter is a handler that prints events, a line each: as JSON, or for people.
func newPrinter(w io.Writer, output outputFlag) dueq.Handler {
	format := jsonLine
	if output == "table" {
		format = tableLine
	}
	w = together(w)
	return dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
		var line bytes.Buffer
		if err := format(&line, e); err != nil {
			return err
		}
		if _, err := w.Write(line.Bytes()); err != nil {
			return fmt.Errorf("%w: %w", errOwn, err)
		}
		return nil
	})
}

func jsonLine(w io.Writer, e *dueq.Event) error {
	return printJSON(w, envelope.NewDelivery(e, false))
}

func tableLine(w io.Writer, e *dueq.Event) error {
	body := string(e.Body)
	if len(body) > shownBody {
		body = string(envelope.Whole(e.Body[:shownBody])) + "…"
	}
	_, err := fmt.Fprintf(w, "%s  %s  %s  %d/%d  %s\n", envelope.Stamp(e.EffectTime), e.Topic, printable(e.ID), e.Attempt, e.MaxAttempts, printable(body))
	return err
}

// together is w for many goroutines. A file is that as it is, and can be handed to
// other processes.
func together(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		return f
	}
	return &lockedWriter{w: w}
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(text)
}
