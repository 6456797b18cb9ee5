package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
	"github.com/dueq-io/dueq/internal/envelope"
)

const (
	ndjson = "application/x-ndjson"
	// batchLines and batchBytes bound what is in memory of a batch.
	batchLines = 500
	batchBytes = 4 << 20
)

// batchLine says what became of one line. Empty lines count, and get none.
type batchLine struct {
	Line  int           `json:"line"` // from 1
	ID    string        `json:"id,omitempty"`
	Error *problem.Body `json:"error,omitempty"`
}

// batchEnd is the last line of the answer.
type batchEnd struct {
	Done   bool          `json:"done"` // all lines were read
	Stored int           `json:"stored"`
	Failed int           `json:"failed"`
	Error  *problem.Body `json:"error,omitempty"` // why reading ended before
}

// batch is one request of many events on its way.
type batch struct {
	a          *API
	w          http.ResponseWriter
	control    *http.ResponseController
	topic      string
	failedOnly bool

	in   *bufio.Reader
	line int // read so far
	end  batchEnd
	out  bytes.Buffer

	// What waits to be stored, and the lines it came in.
	lines  []batchLine
	events []dueq.NewEvent
	size   int
}

// publishBatch publishes the events of an NDJSON body, some at a time, and tells of
// each line what became of it. A bad line does not stop the others.
func (a *API) publishBatch(w http.ResponseWriter, r *http.Request) error {
	q, err := newQuery(r, "results")
	if err != nil {
		return err
	}
	results := q.text("results")
	if q.has("results") && results != "all" && results != "failed" {
		return invalid("results", "is %q, not all or failed", cut(results))
	}
	if err := checkMediaType(r, ndjson); err != nil {
		return err
	}
	topic := r.PathValue("topic")
	if _, err := a.q.Stats(r.Context(), topic); err != nil { // a bad topic, or no Redis
		return err
	}
	b := &batch{
		a: a, w: w, control: http.NewResponseController(w), topic: topic, failedOnly: results == "failed",
		in: bufio.NewReaderSize(r.Body, 64<<10),
	}
	if r.ProtoMajor == 1 {
		_ = b.control.EnableFullDuplex() // where it is not supported, reading ends with the first answer
		// A server that reads while it writes would take what is left of a body that
		// was given up for the next request.
		w.Header().Set("Connection", "close")
	}
	w.Header().Set("Content-Type", ndjson)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	b.run(context.WithoutCancel(r.Context())) // which ends when a line fails to come: those before it are stored
	return nil
}

// run reads, stores and answers until the body ends.
func (b *batch) run(ctx context.Context) {
	var stop error
	for stop == nil {
		_ = b.control.SetReadDeadline(time.Now().Add(callTimeout)) // not supported: the server's own timeouts hold
		stop = b.fill()
		if err := b.store(ctx); err != nil {
			stop = err
		}
		allow(b.w, callTimeout)
		if _, err := b.w.Write(b.out.Bytes()); err != nil {
			return // the client went away
		}
		b.out.Reset()
		_ = b.control.Flush() // not supported: it comes in the end
	}
	b.end.Done = errors.Is(stop, io.EOF)
	if !b.end.Done {
		b.end.Error = b.body(problemOf(stop))
	}
	if data, err := encode(b.end); err == nil {
		_, _ = b.w.Write(data) // likewise
	}
}

func (b *batch) body(p *problem.Problem) *problem.Body {
	body := p.Body("") // the request's id is in the header
	return &body
}

// fill reads lines until there is enough for a call, or no more has come yet. It
// returns io.EOF at the body's end.
func (b *batch) fill() error {
	for len(b.lines) < batchLines && b.size < batchBytes && (len(b.lines) == 0 || b.in.Buffered() > 0) {
		data, err := b.readLine()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(data) > 0 {
			b.add(data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readLine reads the next line. Of one that is too long it is the beginning, still
// too long.
func (b *batch) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := b.in.ReadSlice('\n')
		if room := int(b.a.eventLimit()) + 1 - len(line); len(part) > room {
			part = part[:room]
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		b.line++
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, readProblem(err)
		}
		return bytes.TrimSpace(line), err
	}
}

// add takes up one line.
func (b *batch) add(data []byte) {
	b.size += len(data)
	line := batchLine{Line: b.line}
	event, err := b.parse(data)
	if err != nil {
		line.Error = b.body(problemOf(err))
	} else {
		b.events = append(b.events, event)
	}
	b.lines = append(b.lines, line)
}

func (b *batch) parse(data []byte) (dueq.NewEvent, error) {
	if int64(len(data)) > b.a.eventLimit() {
		return dueq.NewEvent{}, problem.TooLarge.New("the line has more than %d bytes", b.a.eventLimit())
	}
	var in envelope.New
	if err := decodeObject(data, &in); err != nil {
		return dueq.NewEvent{}, err
	}
	return b.a.event(&in)
}

// store stores what waits, and writes the answers.
func (b *batch) store(ctx context.Context) error {
	ids, errs := b.publish(ctx, b.events)
	var last error
	i := 0
	for _, line := range b.lines {
		if line.Error == nil {
			line.ID = ids[i]
			if errs[i] != nil {
				last = errs[i]
				line.Error = b.body(problemOf(errs[i]))
			}
			i++
		}
		if line.Error != nil {
			b.end.Failed++
		} else {
			b.end.Stored++
		}
		if line.Error == nil && b.failedOnly {
			continue
		}
		if data, err := encode(line); err == nil {
			b.out.Write(data)
		}
	}
	b.lines, b.events, b.size = b.lines[:0], b.events[:0], 0
	if last != nil && problemOf(last).Status == http.StatusServiceUnavailable {
		return last // the rest would fare no better
	}
	return nil
}

// publish stores events and returns for each its id, or why it was not stored. An
// event that the queue does not take keeps it from taking any, so it is looked
// for by halves.
func (b *batch) publish(ctx context.Context, events []dueq.NewEvent) (ids []string, errs []error) {
	if len(events) == 0 {
		return nil, nil
	}
	ids, err := b.a.q.PublishEvents(ctx, b.topic, events)
	errs = make([]error, len(events))
	var some *dueq.BatchError
	switch {
	case err == nil:
	case errors.As(err, &some):
		for i, err := range some.Errs {
			errs[i] = err
		}
	case len(events) == 1 || problemOf(err).Status == http.StatusServiceUnavailable:
		ids = make([]string, len(events))
		for i := range errs {
			errs[i] = err
		}
	default:
		half := len(events) / 2
		firstIDs, firstErrs := b.publish(ctx, events[:half])
		restIDs, restErrs := b.publish(ctx, events[half:])
		return append(firstIDs, restIDs...), append(firstErrs, restErrs...)
	}
	return ids, errs
}
