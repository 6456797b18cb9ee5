package subscriber

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dueq-io/dueq/internal/script"
	"github.com/dueq-io/dueq/internal/tracing"
	"github.com/dueq-io/dueq/readyqueue"
)

// Delivery is an event that a consumer has claimed. One of Ack, Retry, Fail and
// Release ends it, the first that is called; a later one returns [ErrLeaseLost].
// So does each of them once the visibility time has passed, which is a failed
// attempt, or the lease is lost: then the event has come again.
//
// They return when Redis has the outcome. If ctx ends before, the error wraps
// [ErrOutcomeUnknown] and ctx's, and Redis gets the outcome as soon as it can; a
// ctx that has ended to begin with changes nothing. ErrOutcomeUnknown comes also
// when a connection broke at a moment that leaves it open who ended the lease, and
// [ErrStopping] when ShutDown's deadline passed first: the event goes back.
type Delivery struct {
	*Event

	lease *delivery
	gone  chan struct{} // closed when it has ended
	told  chan error    // gets what became of the outcome

	mu         sync.Mutex
	visibility time.Duration
	timer      *time.Timer   // of the visibility time; nil: not started
	began      time.Time     // when it was handed over
	span       *tracing.Span // nil: none
	failure    error         // why the attempt failed; nil: it did not
	taken      bool          // its outcome is being decided
	left       bool          // gone is closed
	counted    bool          // among the subscriber's workers: Drain waits for it
	isOver     bool          // its outcome is decided, or its lease lost
}

// ErrOutcomeUnknown says that Redis was sent an outcome and that its reply did not
// come.
var ErrOutcomeUnknown = script.ErrOutcomeUnknown

var errNoCause = errors.New("no cause was given")

func newDelivery(d *delivery) *Delivery {
	return &Delivery{Event: d.copy(), lease: d, gone: make(chan struct{}), told: make(chan error, 1)}
}

// Ack forgets the event.
func (d *Delivery) Ack(ctx context.Context) error {
	return d.end(ctx, "ack", func() { d.lease.settle(readyqueue.Settlement{Outcome: readyqueue.Ack}) })
}

// Retry makes the event come again after a pause, one attempt used up. Below zero
// the pause is that of Options.Backoff. After the last attempt the event has
// failed for good instead. cause is kept with the event; it may be nil.
func (d *Delivery) Retry(ctx context.Context, pause time.Duration, cause error) error {
	return d.end(ctx, "retry", func() { d.miss(pause, false, cause) })
}

// Fail makes the event fail for good: PersistFn gets it, or it goes to dead. cause
// is kept with the event; it may be nil.
func (d *Delivery) Fail(ctx context.Context, cause error) error {
	return d.end(ctx, "fail", func() { d.miss(0, true, cause) })
}

// Release gives the event back at no cost in attempts, to come again at once.
func (d *Delivery) Release(ctx context.Context) error {
	return d.end(ctx, "release", d.lease.giveBack)
}

// Extend makes the visibility time end so long from now, 100 milliseconds to 24
// hours. It returns [ErrClaimInvalid] or, when the delivery has ended,
// [ErrLeaseLost].
func (d *Delivery) Extend(visibility time.Duration) error {
	if err := checkVisibility(visibility); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.taken || d.left || !d.timer.Stop() {
		return d.failed("extend", ErrLeaseLost)
	}
	d.visibility = visibility
	d.timer.Reset(visibility)
	return nil
}

// Done is closed when the delivery has ended, by whichever hand, or when its lease
// may have run out because Redis cannot be reached.
func (d *Delivery) Done() <-chan struct{} { return d.gone }

// WithSpan is ctx with the delivery's span: that of Options.TracerProvider, from the
// claim to the end of the delivery, a child of the one in Claim's ctx.
func (d *Delivery) WithSpan(ctx context.Context) context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.span.Context(ctx)
}

func (d *Delivery) failed(verb string, err error) error {
	return fmt.Errorf("subscriber: %s id %q in topic %q: %w", verb, d.lease.id, d.lease.lane.topic.name, err)
}

// end ends the delivery and waits until Redis knows.
func (d *Delivery) end(ctx context.Context, verb string, settle func()) error {
	if ctx.Err() != nil {
		return d.failed(verb, context.Cause(ctx))
	}
	if !d.take() {
		return d.failed(verb, ErrLeaseLost)
	}
	settle()
	if err := d.hear(ctx); err != nil {
		return d.failed(verb, err)
	}
	return nil
}

// hear waits until it is known what became of the outcome. If that and the end of
// the wait come together, it is known all the same.
func (d *Delivery) hear(ctx context.Context) (err error) {
	select {
	case err := <-d.told:
		return err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-d.lease.lane.s.settling.Done():
		err = ErrStopping
	}
	select {
	case err := <-d.told:
		return err
	default:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
}

// take reports whether the caller is to decide the outcome: the first to ask is.
func (d *Delivery) take() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.taken || d.isOver {
		return false
	}
	d.taken = true
	if d.timer != nil {
		d.timer.Stop()
		d.lease.lane.topic.metrics.Handling.Observe(time.Since(d.began))
	}
	return true
}

// start begins the visibility time.
func (d *Delivery) start(visibility time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.visibility, d.began = visibility, time.Now()
	if !d.isOver { // else its lease was lost at once
		d.timer = time.AfterFunc(visibility, d.expire)
	}
	if d.Attempt == 1 {
		l := d.lease
		l.lane.topic.metrics.Lateness.Observe(l.late + d.began.Sub(l.claimed))
	}
	d.count()
}

// trace begins the delivery's span.
func (d *Delivery) trace(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.isOver {
		d.span = d.lease.lane.s.opts.Tracer.Deliver(ctx, d.lease.message())
	}
}

// count makes Drain wait for the delivery. mu is held, as is the topic's, and the
// topic is not closed.
func (d *Delivery) count() {
	if !d.isOver {
		d.counted = true
		d.lease.lane.s.workers.Add(1)
	}
}

// expire is called when the visibility time has passed.
func (d *Delivery) expire() {
	d.mu.Lock()
	visibility := d.visibility
	d.mu.Unlock()
	if d.take() {
		d.miss(0, false, fmt.Errorf("visibility time of %v passed", visibility))
	}
}

// miss settles the delivery as a failed attempt.
func (d *Delivery) miss(pause time.Duration, final bool, cause error) {
	if cause == nil {
		cause = errNoCause
	}
	d.mu.Lock()
	d.failure = cause
	d.lease.span = d.span // for PersistFn
	d.mu.Unlock()
	d.lease.miss(cause)
	t := d.lease.lane.topic
	if !final && !d.lease.worn() {
		t.retry(d.lease, pause, cause)
		return
	}
	t.mu.Lock()
	t.consumer.failing++
	t.mu.Unlock()
	go t.consumer.fail(d.lease, cause)
}

// failWorn fails an event that has no attempt left, before anybody gets it. The
// topic's mu is held.
func (d *Delivery) failWorn() {
	d.mu.Lock()
	lost := d.isOver
	d.taken = true
	d.count()
	d.mu.Unlock()
	if lost {
		return
	}
	c := d.lease.lane.topic.consumer
	c.failing++
	go c.fail(d.lease, errors.New(d.lease.attempts.Cause))
}

// leave tells the holder that the delivery has ended.
func (d *Delivery) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.left {
		d.left = true
		close(d.gone)
	}
}

// over notes that the outcome is decided, or why there will be none.
func (d *delivery) over(lost error) {
	p := d.pulled
	if p == nil {
		return
	}
	p.leave()
	p.mu.Lock()
	first, counted, span, failure := !p.isOver, p.counted, p.span, cmp.Or(p.failure, lost)
	p.isOver, p.counted = true, false
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	if first {
		span.End(failure)
	}
	if counted {
		d.lane.s.workers.Done()
	}
}

// tell says what became of the outcome to who waits for it. Only the first word
// counts.
func (d *delivery) tell(err error) {
	if d.pulled == nil {
		return
	}
	select {
	case d.pulled.told <- err:
	default:
	}
}
