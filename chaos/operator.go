package main

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/chaos/history"
)

const (
	operatorTick = lease / 4
	mostPages    = 3
)

// operator does what people do to topics. It reaches a single server by a link of
// its own, and keeps its history in the program's.
type operator struct {
	history *history.Writer
	rdb     redis.UniversalClient
	queue   *dueq.Queue
}

func newOperator(s shape, addrs []string, to *history.Writer) (*operator, error) {
	rdb := dial(s, addrs)
	queue, err := dueq.New(rdb, dueq.Options{Namespace: namespace, Buckets: buckets, Partitions: s.partitions()})
	return &operator{to, rdb, queue}, err
}

func (o *operator) close() { _ = o.rdb.Close() } // the queue has started nothing

// work pauses and resumes topics, requeues the dead and lists events until ctx
// ends. Then a topic may be left paused.
func (o *operator) work(ctx context.Context) {
	var loops sync.WaitGroup
	for _, topic := range topics {
		loops.Go(func() {
			for pause(ctx, lease/2+rand.N(2*lease)) {
				o.setPaused(topic, true)
				pause(ctx, rand.N(3*lease))
				for !o.setPaused(topic, false) && pause(ctx, operatorTick) {
					continue
				}
			}
		})
	}
	loops.Go(func() {
		for pause(ctx, rand.N(2*operatorTick)) {
			o.list(topics[rand.IntN(len(topics))])
		}
	})
	loops.Go(func() {
		for pause(ctx, lease/2+rand.N(lease)) {
			o.requeue(topics[rand.IntN(len(topics))])
		}
	})
	loops.Wait()
}

// patience is the ctx of one call.
func patience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), lease)
}

// setPaused pauses or resumes a topic, and reports whether that is certain.
func (o *operator) setPaused(topic string, paused bool) bool {
	ctx, cancel := patience()
	defer cancel()
	r := history.Record{Kind: history.Resume, Op: o.history.Op(), Topic: topic}
	done, call := history.Resumed, o.queue.Resume
	if paused {
		r.Kind, done, call = history.Pause, history.Paused, o.queue.Pause
	}
	o.history.Write(r)
	err := call(ctx, topic)
	r.At, r.Kind, r.Outcome = 0, done, history.OK
	if err != nil { // some of its lanes may be paused
		r.Outcome, r.Text = history.Unknown, err.Error()
	}
	o.history.Write(r)
	return err == nil
}

// resumeAll resumes the topics that are paused.
func (o *operator) resumeAll(ctx context.Context) {
	for _, topic := range topics {
		if stats, err := o.queue.Stats(ctx, topic); err != nil || stats.Paused {
			o.setPaused(topic, false)
		}
	}
}

// requeue gives dead events a new life: all, or those under keys.
func (o *operator) requeue(topic string) {
	ctx, cancel := patience()
	defer cancel()
	due := dueTime()
	r := history.Record{Kind: history.Requeue, Op: o.history.Op(), Topic: topic, Due: due.Add(time.Millisecond - 1).UnixMilli()}
	if rand.IntN(4) == 0 {
		r.Name = "key"
	}
	o.history.Write(r)
	n, err := o.queue.Requeue(ctx, topic, dueq.Filter{IDPrefix: r.Name}, due)
	r.At, r.Kind, r.Count = 0, history.Requeued, n
	r.Outcome = history.OK
	if err != nil { // the steps before have had their effect
		r.Outcome, r.Text = history.Unknown, err.Error()
	}
	o.history.Write(r)
}

// list reads some pages.
func (o *operator) list(topic string) {
	ctx, cancel := patience()
	defer cancel()
	states := []dueq.State{dueq.StateScheduled, dueq.StateReady, dueq.StateLeased, dueq.StateDead}
	q := dueq.Query{State: states[rand.IntN(len(states))], Limit: 1 + rand.IntN(20), Preview: 100 + rand.IntN(400)}
	for range mostPages {
		r := history.Record{Kind: history.List, Op: o.history.Op(), Topic: topic, State: string(q.State)}
		o.history.Write(r)
		page, err := o.queue.List(ctx, topic, q)
		if err != nil {
			r.Kind, r.At, r.Text = history.Noted, 0, err.Error()
			o.history.Write(r)
			return
		}
		seen := make([]history.Record, len(page.Events))
		for i, e := range page.Events {
			seen[i] = seenOf(r, e, q.Preview)
		}
		if len(seen) > q.Limit {
			r.Kind, r.At, r.Text = history.Seen, 0, "more than the limit"
			seen = append(seen, r)
		}
		o.history.Write(seen...)
		if page.Next == "" {
			return
		}
		q.Cursor = page.Next
	}
}

// seenOf is the record of an event on a page.
func seenOf(r history.Record, e *dueq.EventInfo, preview int) history.Record {
	r.Kind, r.At, r.Topic, r.ID, r.State = history.Seen, 0, e.Topic, e.ID, string(e.State)
	switch e.State {
	case dueq.StateScheduled:
		r.Due = e.Due.UnixMilli()
	case dueq.StateDead:
		r.Due = e.DiedAt.UnixMilli()
	}
	pub, _, _ := strings.Cut(string(e.Body), " ")
	whole := body(pub)
	if string(e.Body) != string(whole[:min(preview, len(whole))]) || e.BodySize != len(whole) {
		r.Text = string(e.Body)
		return r
	}
	r.Pub = pub
	return r
}
