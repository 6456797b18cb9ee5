package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq"
)

const (
	// drainTime is how long handlers may take to finish once a signal has come.
	drainTime = 30 * time.Second
	// surplusTime is how long events that nobody wants any more are kept before they
	// go back. Those that are wanted have ended by then, but for a few instructions.
	surplusTime = 200 * time.Millisecond
)

// errOwn is what a handler's error wraps that is this process's, not the event's.
var errOwn = errors.New("stopped")

// meter is a handler that passes on as many deliveries as are wanted. It holds the
// rest back, as well as all that come after a failure of this process's own: they
// go back to the queue when that shuts down.
type meter struct {
	next   dueq.Handler
	log    *zap.Logger
	ready  chan struct{}   // closed when deliveries may begin
	broken context.Context // ends when nothing more can be done
	fail   context.CancelCauseFunc
	ended  chan struct{} // closed when all that are wanted have ended

	mu     sync.Mutex
	wanted int // deliveries that may still begin
	open   int // deliveries that have not ended, of those that are wanted
}

// newMeter is a meter for count deliveries; 0 is for any number.
func newMeter(next dueq.Handler, count int, log *zap.Logger) *meter {
	m := &meter{
		next: next, log: log, ready: make(chan struct{}), ended: make(chan struct{}),
		wanted: count, open: count,
	}
	m.broken, m.fail = context.WithCancelCause(context.Background())
	if count == 0 {
		m.wanted = -1 // which never comes to 0
	}
	return m
}

// HandleEvent handles the event if it is wanted, or waits for the end.
func (m *meter) HandleEvent(ctx context.Context, e *dueq.Event) error {
	if !m.begin(ctx) {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	defer m.end()
	err := m.next.HandleEvent(ctx, e)
	switch {
	case errors.Is(err, errOwn):
		m.fail(err)
		<-ctx.Done() // so that it goes back as it came
	case err != nil:
		m.log.Warn("a delivery failed", zap.String("topic", e.Topic), zap.String("id", e.ID),
			zap.Int("attempt", e.Attempt), zap.Int("max_attempts", e.MaxAttempts), zap.Error(err))
	}
	return err
}

// begin reports whether a delivery is wanted.
func (m *meter) begin(ctx context.Context) bool {
	select {
	case <-m.ready:
	case <-ctx.Done():
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wanted == 0 || m.broken.Err() != nil {
		return false
	}
	m.wanted--
	return true
}

func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open--; m.open == 0 {
		close(m.ended)
	}
}

// wait waits for a signal, for as many deliveries as are wanted, or for a failure,
// and shuts the queue down.
func (m *meter) wait(ctx context.Context, q *dueq.Queue) error {
	var why error
	patience := surplusTime
	select {
	case <-ctx.Done():
		patience = drainTime
	case <-m.broken.Done():
		why = context.Cause(m.broken)
	case <-m.ended:
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := q.ShutDown(ctx)
	if patience == surplusTime && !errors.Is(err, dueq.ErrOutcomeUnknown) {
		err = nil // what was held back has gone back
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open > 0 && why == nil {
		why = errInterrupted
	}
	return errors.Join(why, err)
}
