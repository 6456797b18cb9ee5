package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/chaos/history"
)

const (
	loadTick  = 10 * time.Millisecond
	mostCalls = 64 // on their way at a time
	keys      = 30 // ids of the caller's, in each topic
	mostBatch = 20
)

// load publishes, cancels and reschedules until ctx ends; what has begun by then
// hears its outcome.
func (w *worker) load(ctx context.Context) {
	var calls sync.WaitGroup
	defer calls.Wait()
	whole := context.WithoutCancel(ctx)
	free := make(chan struct{}, mostCalls)
	tick := time.NewTicker(loadTick)
	defer tick.Stop()
	owed, last := 0.0, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		owed = min(owed+now.Sub(last).Seconds()*float64(w.Rate), float64(w.Rate))
		last = now
		for owed >= 1 {
			n, act := w.choose(int(owed))
			owed -= float64(n)
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				return
			}
			calls.Go(func() {
				act(whole)
				<-free
			})
		}
	}
}

// choose picks something to do, which publishes n of at most the owed events.
func (w *worker) choose(owed int) (n int, act func(context.Context)) {
	switch dice := rand.IntN(100); {
	case dice < 4:
		return 1, w.cancel
	case dice < 8:
		return 1, w.reschedule
	case dice < 14 && owed > 1:
		n = 2 + rand.IntN(min(owed, mostBatch)-1)
		return n, func(ctx context.Context) { w.publishSome(ctx, n) }
	default:
		return 1, w.publishOne
	}
}

// dueTime is mostly soon, sometimes past.
func dueTime() time.Time {
	now := time.Now()
	switch dice := rand.IntN(10); {
	case dice < 3:
		return now.Add(-rand.N(time.Second))
	case dice < 8:
		return now.Add(rand.N(lease))
	default:
		return now.Add(rand.N(4 * lease))
	}
}

// body is what an event carries: the name of its publication, and some more.
func body(pub string) []byte {
	size := 0
	for _, b := range []byte(pub) {
		size = size*31 + int(b)
	}
	return []byte(pub + " " + strings.Repeat(".", (size&0xffff)%400))
}

// newEvent makes up an event, and the record that says so.
func (w *worker) newEvent(topic string) (dueq.NewEvent, history.Record) {
	op := w.history.Op()
	pub := w.Name + "/" + strconv.FormatInt(op, 10)
	e := dueq.NewEvent{Body: body(pub), EffectTime: dueTime()}
	r := history.Record{Kind: history.Publish, Op: op, Topic: topic, Pub: pub, Replicas: w.Replicas}
	if rand.IntN(4) == 0 {
		e.ID = fmt.Sprint("key", rand.IntN(keys))
		e.KeyPolicy = []dueq.KeyPolicy{dueq.KeyReject, dueq.KeyKeep, dueq.KeyReplace}[rand.IntN(3)]
		r.ID, r.Policy = e.ID, e.KeyPolicy.String()
	}
	if rand.IntN(8) == 0 {
		e.MaxAttempts = 1 + rand.IntN(maxAttempts)
	}
	r.Due = e.EffectTime.Add(time.Millisecond - 1).UnixMilli() // a part of a millisecond counts as one
	return e, r
}

func (w *worker) publishOne(ctx context.Context) {
	topic := topics[rand.IntN(len(topics))]
	e, r := w.newEvent(topic)
	var opts []dueq.PublishOption
	if e.ID != "" {
		opts = append(opts, dueq.WithID(e.ID), dueq.WithKeyPolicy(e.KeyPolicy))
	}
	if e.MaxAttempts > 0 {
		opts = append(opts, dueq.WithMaxAttempts(e.MaxAttempts))
	}
	w.history.Write(r)
	id, err := w.queue.PublishEvent(ctx, topic, e.Body, e.EffectTime, opts...)
	w.history.Write(w.published(r, id, err))
}

// publishSome publishes a batch.
func (w *worker) publishSome(ctx context.Context, n int) {
	topic := topics[rand.IntN(len(topics))]
	events, records := make([]dueq.NewEvent, n), make([]history.Record, n)
	for i := range n {
		events[i], records[i] = w.newEvent(topic)
	}
	w.history.Write(records...)
	ids, err := w.queue.PublishEvents(ctx, topic, events)
	var some *dueq.BatchError
	for i := range records {
		id, outcome := "", err
		if errors.As(err, &some) {
			outcome = some.Errs[i]
		}
		if i < len(ids) {
			id = ids[i]
		}
		records[i] = w.published(records[i], id, outcome)
	}
	w.history.Write(records...)
}

// published is the second record of a publish.
func (w *worker) published(r history.Record, id string, err error) history.Record {
	r.At, r.Kind = 0, history.Published
	r.Outcome, r.Text = outcomeOf(err)
	if id != "" {
		r.ID = id
		w.recent.add(r.Topic, id)
	}
	return r
}

// outcomeOf is what a call's error says about its effect.
func outcomeOf(err error) (history.Outcome, string) {
	switch {
	case err == nil:
		return history.OK, ""
	case errors.Is(err, dueq.ErrOutcomeUnknown):
		return history.Unknown, err.Error()
	case errors.Is(err, dueq.ErrNotReplicated):
		return history.Alone, err.Error()
	default:
		return history.Refused, err.Error()
	}
}

// cancel cancels an event that was published lately, or a key.
func (w *worker) cancel(ctx context.Context) {
	r := w.pick(history.Cancel)
	w.history.Write(r)
	err := w.queue.Cancel(ctx, r.Topic, r.ID)
	r.At, r.Kind = 0, history.Cancelled
	r.Outcome, r.Text = outcomeOf(err)
	w.history.Write(r)
}

// reschedule gives an event that was published lately, or a key, another time.
func (w *worker) reschedule(ctx context.Context) {
	r := w.pick(history.Reschedule)
	at := dueTime()
	r.Due = at.Add(time.Millisecond - 1).UnixMilli()
	w.history.Write(r)
	err := w.queue.Reschedule(ctx, r.Topic, r.ID, at)
	r.At, r.Kind = 0, history.Rescheduled
	r.Outcome, r.Text = outcomeOf(err)
	w.history.Write(r)
}

// pick chooses the event for a change.
func (w *worker) pick(kind history.Kind) history.Record {
	r := history.Record{Kind: kind, Op: w.history.Op()}
	if rand.IntN(5) > 0 {
		r.Topic, r.ID = w.recent.pick()
	}
	if r.ID == "" {
		r.Topic, r.ID = topics[rand.IntN(len(topics))], fmt.Sprint("key", rand.IntN(keys))
	}
	return r
}

// recent are the events that were published last.
type recent struct {
	mu   sync.Mutex
	list [60]struct{ topic, id string }
	n    int
}

func (r *recent) add(topic, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &r.list[r.n%len(r.list)]
	e.topic, e.id = topic, id
	r.n++
}

// pick is one of them, or nothing.
func (r *recent) pick() (topic, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.list[rand.IntN(len(r.list))]
	return e.topic, e.id
}
