package history

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Writer appends the records of one process to its file. Each call is one
// write: a process that is killed leaves every record whose call has returned,
// and at most one torn line.
type Writer struct {
	proc string
	ops  atomic.Int64

	mu   sync.Mutex
	file *os.File
	err  error // the first
}

// Create makes the file of a process.
func Create(path, proc string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("history: create: %w", err)
	}
	return &Writer{proc: proc, file: f}, nil
}

// Op is a new operation number.
func (w *Writer) Op() int64 { return w.ops.Add(1) }

// Write appends records. Those without a time get the present.
func (w *Writer) Write(records ...Record) {
	now := time.Now().UnixNano()
	var lines []byte
	for i := range records {
		r := &records[i]
		r.Proc = w.proc
		if r.At == 0 {
			r.At = now
		}
		line, err := json.Marshal(r)
		if err != nil {
			w.fail(err)
			return
		}
		lines = append(append(lines, line...), '\n')
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.file.Write(lines); err != nil && w.err == nil {
		w.err = err
	}
}

func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// Close closes the file, and returns the first error there was.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.file.Close(); w.err == nil {
		w.err = err
	}
	if w.err != nil {
		return fmt.Errorf("history: write: %w", w.err)
	}
	return nil
}
