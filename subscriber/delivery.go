package subscriber

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq/internal/tracing"
	"github.com/dueq-io/dueq/readyqueue"
)

// delivery is one lease on its way through a handler, or through the hands of a
// consumer's caller.
type delivery struct {
	lane     *Lane
	session  string
	id       string
	event    Event // without a body
	body     string
	attempts readyqueue.Attempts
	claimed  time.Time
	late     time.Duration // how long it had been due when it was claimed, by the server's clock
	record   uint64        // hash of its record
	doubtful bool          // the lane's mu guards it; see [Lane.doubt]
	pulled   *Delivery     // as a consumer hands it over; nil: handlers have it

	settled atomic.Bool     // its outcome is decided, or its lease lost
	ending  ending          // its outcome
	origin  *tracing.Origin // of its publish; nil: none, or nobody traces
	span    *tracing.Span   // of the handlers; nil: none
	stored  bool            // PersistFn has taken it

	mu  sync.Mutex
	ctx *handlerContext // while a function of the user's runs
}

// handle runs the handlers that have not succeeded yet, and settles the outcome.
func (t *Topic) handle(d *delivery) {
	if d.settled.Load() {
		return // lost while it waited
	}
	defer d.buryUnsettled()
	if d.worn() {
		t.fail(d, errors.New(d.attempts.Cause))
		return
	}
	d.span = t.s.opts.Tracer.Deliver(t.s.handlers, d.message())
	err := errExited
	defer func() { d.span.End(err) }()
	ctx := t.start(d)
	defer ctx.end(nil)
	exited := true
	defer func() {
		if exited {
			t.conclude(ctx, d, err)
		}
	}()
	start := time.Now()
	if d.event.Attempt == 1 {
		t.metrics.Lateness.Observe(d.late + start.Sub(d.claimed))
	}
	err = t.run(ctx, d)
	t.metrics.Handling.Observe(time.Since(start))
	exited = false
	t.conclude(ctx, d, err)
}

// worn reports whether the event has kept killing its process until no attempt
// was left.
func (d *delivery) worn() bool { return d.attempts.Count >= d.event.MaxAttempts }

// buryUnsettled ends a delivery whose PersistFn called runtime.Goexit.
func (d *delivery) buryUnsettled() {
	if !d.settled.Load() {
		d.settle(readyqueue.Settlement{Outcome: readyqueue.Bury, Attempts: d.attempts})
	}
}

// start makes the context for a function of the user's.
func (t *Topic) start(d *delivery) *handlerContext {
	ctx := newHandlerContext(d.span.Context(t.s.handlers), t.s.opts.HandlerTimeout)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ctx = ctx
	return ctx
}

// cancelWith ends the handler's context.
func (d *delivery) cancelWith(cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx != nil {
		d.ctx.end(cause)
	}
	if d.pulled != nil {
		d.pulled.leave()
	}
}

// end drops the lease: whatever its handler returns changes nothing any more.
func (d *delivery) end(cause error) {
	if !d.settled.Swap(true) {
		d.tell(cause)
		d.over(cause)
	}
	d.cancelWith(cause)
}

// run calls the handlers, and notes which have succeeded.
func (t *Topic) run(ctx context.Context, d *delivery) error {
	var failed []error
	for i, h := range t.handlers {
		bit := uint64(1) << i
		if d.attempts.Done&bit != 0 {
			continue
		}
		if i > 0 && ctx.Err() != nil {
			failed = append(failed, context.Cause(ctx))
			break
		}
		e := d.copy()
		if err := call(func() error { return h.HandleEvent(ctx, e) }); err != nil {
			failed = append(failed, err)
		} else {
			d.attempts.Done |= bit
		}
	}
	if len(failed) == 1 {
		return failed[0]
	}
	return errors.Join(failed...)
}

// message is what the delivery's span tells.
func (d *delivery) message() tracing.Message {
	m := tracing.Message{ID: d.id, Topic: d.event.Topic, Size: len(d.body), Attempt: d.event.Attempt}
	if d.origin != nil {
		m.Origin = *d.origin
	}
	return m
}

// copy is the event for one function of the user's, which may change it.
func (d *delivery) copy() *Event {
	e := d.event
	e.Body, e.Metadata = []byte(d.body), maps.Clone(e.Metadata)
	return &e
}

// call turns a panic into an error with the stack, also one of the error itself:
// a nil pointer is a common mistake.
func call(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	err = f()
	if err != nil {
		_, _ = err.Error(), errors.Is(err, errNone)
	}
	return err
}

var (
	errExited = errors.New("the handler called runtime.Goexit")
	errNone   = errors.New("none") // which no error wraps
)

// backoff asks the user's function for a pause.
func (t *Topic) backoff(attempt int, cause error) (pause time.Duration) {
	err := call(func() error {
		pause = t.s.opts.Backoff(attempt, cause)
		return nil
	})
	if err != nil {
		t.s.opts.Logger.Error("Backoff failed; the event will be tried again in a minute", zap.Error(err))
		pause = time.Minute
	}
	return pause
}

// conclude settles a delivery whose handlers have returned err.
func (t *Topic) conclude(ctx context.Context, d *delivery, err error) {
	if err == nil {
		d.settle(readyqueue.Settlement{Outcome: readyqueue.Ack})
		return
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrStopping) || errors.Is(cause, ErrLeaseLost) {
		d.giveBack()
		return
	} else if errors.Is(cause, ErrHandlerTimeout) {
		err = fmt.Errorf("%w after %v: %w", ErrHandlerTimeout, t.s.opts.HandlerTimeout, err)
	}
	var skip *skipRetryError
	if d.miss(err); d.worn() || errors.As(err, &skip) {
		t.fail(d, err)
		return
	}
	delay := time.Duration(-1)
	if after, ok := errors.AsType[*retryAfterError](err); ok {
		delay = after.delay
	}
	t.retry(d, delay, err)
}

// miss uses up an attempt.
func (d *delivery) miss(err error) {
	d.attempts.Count++
	d.attempts.Cause = err.Error()
}

// retry settles a delivery that has failed, but not for good. A delay below zero
// is that of the user's function.
func (t *Topic) retry(d *delivery, delay time.Duration, err error) {
	if delay < 0 {
		delay = t.backoff(d.attempts.Count, err)
	}
	d.settle(readyqueue.Settlement{Outcome: readyqueue.Retry, Delay: max(delay, 0), Attempts: d.attempts})
}

// giveBack ends a lease whose event was not handled, at no cost in attempts.
func (d *delivery) giveBack() {
	if d.attempts.Done == 0 {
		d.settle(readyqueue.Settlement{Outcome: readyqueue.Release})
	} else { // some handlers have succeeded, which must not be forgotten
		d.settle(readyqueue.Settlement{Outcome: readyqueue.Retry, Attempts: d.attempts})
	}
}

// fail settles a delivery that has failed for good.
func (t *Topic) fail(d *delivery, cause error) {
	s := readyqueue.Settlement{Outcome: readyqueue.Bury, Attempts: d.attempts}
	if persist := t.s.opts.PersistFn; persist != nil {
		ctx := t.start(d)
		defer ctx.end(nil)
		err := call(func() error { return persist(ctx, d.copy(), cause) })
		switch stopped := context.Cause(ctx); {
		case err == nil:
			s.Outcome, d.stored = readyqueue.Ack, true
		case errors.Is(stopped, ErrStopping) || errors.Is(stopped, ErrLeaseLost):
			s.Outcome, s.Attempts.Count = readyqueue.Retry, d.event.Attempt-1 // as it was claimed
			d.tell(stopped)
		default:
			s.Attempts.Cause += "\npersistFn: " + err.Error()
		}
	}
	if s.Outcome == readyqueue.Bury {
		t.s.opts.Logger.Error("an event has failed for good; it lies among the dead",
			zap.String("topic", t.name), zap.String("id", d.id), zap.Int("attempts", s.Attempts.Count), zap.Error(cause))
	}
	d.settle(s)
}

// settle hands the outcome on to Redis, once.
func (d *delivery) settle(s readyqueue.Settlement) {
	if d.settled.Swap(true) {
		return
	}
	s.ID = d.id
	d.ending = ending{delivery: d, Settlement: s}
	if d.pulled != nil {
		d.pulled.leave() // before anybody else can get the event
	}
	d.lane.s.settles.Add(&d.ending)
	d.over(nil)
}
