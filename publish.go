package dueq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/tracing"
	"github.com/dueq-io/dueq/readyqueue"
)

const (
	// crowd is about how many waiting publishes make a second batch leave beside
	// the first.
	crowd = 64
	// flights is how many batches of one PublishEvents are on their way at a time.
	flights = 2
	// maxBatchBytes is about how large one batch may be.
	maxBatchBytes = 1 << 20
	// perEvent is what an event takes in a batch besides its record.
	perEvent = 100
)

// publication is one event on its way to Redis, and its caller.
type publication struct {
	topic *topic
	lane  *key.Lane
	event bucket.Event
	state atomic.Int32  // queued, sent or withdrawn
	done  chan struct{} // gets a value when event.Err says the outcome
}

// newPublication makes one for a queue's spares: its channel is most of what one
// costs.
func newPublication() any { return &publication{done: make(chan struct{}, 1)} }

const (
	queued = iota
	sent
	withdrawn
)

func (p *publication) size() int { return perEvent + len(p.event.ID) + len(p.event.Record) }

// PublishEvent stores an event and schedules it for effectTime, rounded up to
// the millisecond; a time that is past means now. It returns the event's id: a
// random one unless [WithID] gives it. Once it returns nil, Redis has the event.
//
// Calls from many goroutines travel together, without waiting for each other.
// When ctx ends first, the error wraps ctx's and, if the event was on its way,
// [ErrOutcomeUnknown]: it may have been stored or not. Other errors wrap
// [ErrTopicInvalid], [ErrIDInvalid], [ErrEventInvalid], [ErrBodyTooLarge],
// [ErrDuplicateID], [ErrShutDown] or why Redis refused; then nothing was stored.
// Only with [ErrNotReplicated], which says that the event exists but a failover
// may lose it, there is an id as well.
func (q *Queue) PublishEvent(ctx context.Context, topic string, body []byte, effectTime time.Time, opts ...PublishOption) (id string, err error) {
	e := NewEvent{Body: body, EffectTime: effectTime}
	if len(opts) > 0 {
		if e, err = e.with(opts); err != nil {
			return "", err
		}
	}
	span := q.tracer.Publish(ctx, topic, 1)
	id, err = q.publishOne(ctx, topic, &e, span.Origin())
	span.Stored(id, len(body))
	span.End(err)
	return id, err
}

func (q *Queue) publishOne(ctx context.Context, topic string, e *NewEvent, origin tracing.Origin) (id string, err error) {
	event, err := q.prepare(e, time.Now(), origin)
	if err != nil {
		return "", fmt.Errorf("publish to topic %.80q: %w", topic, err)
	}
	t, err := q.open(ctx, topic)
	if err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("dueq: publish to topic %q: not sent: %w", topic, err)
	}
	p := q.spares.Get().(*publication)
	p.topic, p.lane, p.event = t, t.lane(event.ID), event
	p.state.Store(queued)
	q.publishes.Add(p)
	select {
	case <-p.done:
	case <-ctx.Done():
		if p.state.CompareAndSwap(queued, withdrawn) {
			return "", fmt.Errorf("dueq: publish to topic %q: not sent: %w", topic, context.Cause(ctx))
		}
		select {
		case <-p.done: // its outcome came as well
		default:
			return "", fmt.Errorf("dueq: publish to topic %q: %w: %w", topic, ErrOutcomeUnknown, context.Cause(ctx))
		}
	}
	err = p.event.Err
	p.event = bucket.Event{} // it may be large
	q.spares.Put(p)
	if err == nil {
		return event.ID, nil
	}
	if errors.Is(err, ErrNotReplicated) {
		id = event.ID
	}
	return id, fmt.Errorf("dueq: %w", err)
}

// publish sends a batch of publications.
func (q *Queue) publish(batch []*publication) {
	var b batches
	for _, p := range batch {
		if p.state.CompareAndSwap(queued, sent) {
			b.add(p.lane, &p.event)
		}
	}
	bucket.Publish(context.Background(), q.rdb, b.list, q.opts.Replicas)
	q.batches.Observe(len(batch))
	for _, p := range batch {
		if p.state.Load() == sent {
			p.topic.count(&p.event)
		}
		p.done <- struct{}{}
	}
}

// batches are events by lane.
type batches struct {
	list []bucket.Batch
	of   map[*key.Lane]int
}

func (b *batches) add(l *key.Lane, e *bucket.Event) {
	if n := len(b.list); n > 0 && b.list[n-1].Lane == l {
		b.list[n-1].Events = append(b.list[n-1].Events, e)
		return
	}
	i, ok := b.of[l]
	if !ok {
		if b.of == nil {
			b.of = make(map[*key.Lane]int)
		}
		i = len(b.list)
		b.of[l] = i
		b.list = append(b.list, bucket.Batch{Lane: l})
	}
	b.list[i].Events = append(b.list[i].Events, e)
}

// BatchError says what became of the events of a [Queue.PublishEvents] that did
// not store them all.
type BatchError struct {
	Stored int           // events that Redis has, on as many replicas as it must
	Errs   map[int]error // by index: why the others were not stored, or that it is unknown whether they were, or on too few replicas
}

// Error counts the events and quotes one cause.
func (e *BatchError) Error() string {
	first := -1
	unknown, unreplicated := 0, 0
	for i, err := range e.Errs {
		if first < 0 || i < first {
			first = i
		}
		switch {
		case errors.Is(err, ErrOutcomeUnknown):
			unknown++
		case errors.Is(err, ErrNotReplicated):
			unreplicated++
		}
	}
	few := ""
	if unreplicated > 0 {
		few = fmt.Sprintf("%d on too few replicas, ", unreplicated)
	}
	return fmt.Sprintf("dueq: of %d events %d were stored, %s%d were not, of %d it is unknown; the first of these, %d: %v",
		e.Stored+len(e.Errs), e.Stored, few, len(e.Errs)-unknown-unreplicated, unknown, first, e.Errs[first])
}

// Unwrap gives all causes to [errors.Is].
func (e *BatchError) Unwrap() []error {
	errs := make([]error, 0, len(e.Errs))
	for _, err := range e.Errs {
		errs = append(errs, err)
	}
	return errs
}

// PublishEvents stores any number of events, in batches. ids has one id per
// event, "" for those that were not stored, or of which it is unknown; then err
// is a [*BatchError]. Those that fail with [ErrNotReplicated] exist, and have
// their ids. If any event is invalid, none is stored and the error says
// which and why, as those of [Queue.PublishEvent] do.
func (q *Queue) PublishEvents(ctx context.Context, topic string, events []NewEvent) (ids []string, err error) {
	span := q.tracer.Publish(ctx, topic, len(events))
	defer func() { span.End(err) }()
	origin := span.Origin()
	prepared := make([]bucket.Event, len(events))
	for i := range events {
		if prepared[i], err = q.prepare(&events[i], time.Now(), origin); err != nil {
			return nil, fmt.Errorf("publish to topic %.80q: event %d: %w", topic, i, err)
		}
	}
	t, err := q.open(ctx, topic)
	if err != nil {
		return nil, err
	}
	q.publishAll(ctx, t, prepared)
	ids = make([]string, len(events))
	failed := &BatchError{Errs: make(map[int]error)}
	for i := range prepared {
		if err := prepared[i].Err; err != nil {
			failed.Errs[i] = err
			if errors.Is(err, ErrNotReplicated) {
				ids[i] = prepared[i].ID
			}
			continue
		}
		ids[i] = prepared[i].ID
		failed.Stored++
	}
	if len(failed.Errs) > 0 {
		return ids, failed
	}
	return ids, nil
}

// publishAll sends events in batches, some at a time, until ctx ends.
func (q *Queue) publishAll(ctx context.Context, t *topic, events []bucket.Event) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, flights)
	if slices.ContainsFunc(events, func(e bucket.Event) bool { return e.Keyed }) {
		slots = make(chan struct{}, 1) // equal keys keep their order
	}
	for len(events) > 0 {
		n, size := 0, 0
		for n < len(events) && n < readyqueue.MaxBatch && size < maxBatchBytes {
			size += perEvent + len(events[n].ID) + len(events[n].Record)
			n++
		}
		some := events[:n]
		events = events[n:]
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			q.publishSome(ctx, t, some)
		})
	}
}

func (q *Queue) publishSome(ctx context.Context, t *topic, events []bucket.Event) {
	if err := ctx.Err(); err != nil {
		for i := range events {
			events[i].Err = fmt.Errorf("not sent: %w", context.Cause(ctx))
		}
		return
	}
	var b batches
	for i := range events {
		b.add(t.lane(events[i].ID), &events[i])
	}
	bucket.Publish(context.WithoutCancel(ctx), q.rdb, b.list, q.opts.Replicas)
	q.batches.Observe(len(events))
	for i := range events {
		t.count(&events[i])
	}
}

// count counts an event that was published, or was not.
func (t *topic) count(e *bucket.Event) {
	m := &t.metrics
	switch {
	case errors.Is(e.Err, ErrDuplicateID):
		m.Duplicates.Add(1)
		return
	case e.Err != nil && !errors.Is(e.Err, ErrNotReplicated):
		return
	case e.Found && e.Policy == KeyKeep:
		m.Kept.Add(1)
		return
	case e.Found:
		m.Replaced.Add(1)
	}
	m.Published.Add(1)
}
