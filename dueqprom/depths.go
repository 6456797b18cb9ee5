package dueqprom

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/census"
)

// depths reads at each scrape what lies in Redis.
type depths struct {
	q      *dueq.Queue
	opts   Options
	slot   chan struct{} // taken while Redis is read: a scrape that gave up may still wait
	errors atomic.Int64

	up, failures, omitted, events, oldest, paused, lateness, moves *prometheus.Desc
}

func newDepths(q *dueq.Queue, opts Options) *depths {
	return &depths{
		q: q, opts: opts, slot: make(chan struct{}, 1),
		up:       newDesc("up", "Whether this scrape read the depths of all topics from Redis."),
		failures: newDesc("scrape_errors_total", "Reads from Redis that failed, or took too long, in scrapes."),
		omitted:  newDesc("topics_omitted", "Topics without depths, because there are more than MaxTopics."),
		events:   newDesc("topic_events", "Events of a topic, by where they lie: scheduled, ready, leased, dead.", "topic", "state"),
		oldest:   newDesc("topic_oldest_due_age_seconds", "For how long the oldest event that is due and that nobody has is due; 0: there is none.", "topic"),
		paused:   newDesc("topic_paused", "Whether the delivery of a topic is paused.", "topic"),
		lateness: newDesc("topic_lateness_seconds", "From an event's effect time to the start of its handler at the first delivery, in all processes since the topic began.", "topic"),
		moves:    newDesc("topic_moves_total", "What all processes have done with a topic's events since the topic began: published, delivered, acked and so on.", "topic", "move"),
	}
}

func (d *depths) describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{d.up, d.failures, d.omitted, d.events, d.oldest, d.paused, d.lateness, d.moves} {
		to <- desc
	}
}

// depth is one topic's.
type depth struct {
	topic string
	stats dueq.Stats
	err   error
}

// collect sends what could be read in time.
func (d *depths) collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), d.opts.Timeout)
	defer cancel()
	up := 1.0
	if failed := d.collectTopics(ctx, to); failed > 0 {
		up = 0
		d.errors.Add(int64(failed))
	}
	to <- prometheus.MustNewConstMetric(d.up, prometheus.GaugeValue, up)
	to <- prometheus.MustNewConstMetric(d.failures, prometheus.CounterValue, float64(d.errors.Load()))
}

// collectTopics returns how many reads failed.
func (d *depths) collectTopics(ctx context.Context, to chan<- prometheus.Metric) (failed int) {
	select {
	case d.slot <- struct{}{}:
	case <-ctx.Done():
		return 1
	}
	listed := make(chan []string, 1)
	read := make(chan depth, d.opts.MaxTopics) // never waited for
	go func() {
		defer func() { <-d.slot }()
		topics, err := d.q.Topics(ctx)
		if err != nil {
			close(listed)
			return
		}
		listed <- topics
		topics = topics[:min(len(topics), d.opts.MaxTopics)]
		census.Each(ctx, d.q, topics, func(i int, stats dueq.Stats, err error) { read <- depth{topics[i], stats, err} })
	}()
	left := 0
	select {
	case topics, ok := <-listed:
		if !ok {
			return 1
		}
		left = min(len(topics), d.opts.MaxTopics)
		to <- prometheus.MustNewConstMetric(d.omitted, prometheus.GaugeValue, float64(len(topics)-left))
	case <-ctx.Done():
		return 1
	}
	for ; left > 0; left-- {
		select {
		case t := <-read:
			if t.err != nil {
				failed++
			} else {
				d.send(to, t)
			}
		case <-ctx.Done():
			return failed + left
		}
	}
	return failed
}

func (d *depths) send(to chan<- prometheus.Metric, t depth) {
	gauge := func(desc *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
	}
	for state, n := range map[dueq.State]int{
		dueq.StateScheduled: t.stats.Scheduled, dueq.StateReady: t.stats.Ready, dueq.StateLeased: t.stats.Leased, dueq.StateDead: t.stats.Dead,
	} {
		gauge(d.events, float64(n), t.topic, string(state))
	}
	age := 0.0
	if !t.stats.OldestDue.IsZero() {
		age = max(time.Since(t.stats.OldestDue).Seconds(), 0)
	}
	gauge(d.oldest, age, t.topic)
	paused := 0.0
	if t.stats.Paused {
		paused = 1
	}
	gauge(d.paused, paused, t.topic)
	to <- durations(d.lateness, t.stats.Lateness, t.topic)
	for move, n := range map[string]int{
		"published": t.stats.Published, "kept": t.stats.Kept, "duplicate": t.stats.Duplicates, "delivered": t.stats.Delivered,
		"acked": t.stats.Acked, "retried": t.stats.Retried, "released": t.stats.Released, "expired": t.stats.Expired,
		"buried": t.stats.Buried, "dropped": t.stats.Dropped, "cancelled": t.stats.Cancelled, "rescheduled": t.stats.Rescheduled,
	} {
		to <- prometheus.MustNewConstMetric(d.moves, prometheus.CounterValue, float64(n), t.topic, move)
	}
}
