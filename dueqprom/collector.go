// Package dueqprom exports what a dueq queue does to Prometheus.
//
// A [Collector] is registered like any other, and served by promhttp:
//
//	metrics := prometheus.NewRegistry()
//	metrics.MustRegister(dueqprom.NewCollector(q, dueqprom.Options{Depths: true}))
//	http.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
//
// Two queues in one process are told apart by a label:
// prometheus.WrapRegistererWith(prometheus.Labels{"namespace": "shop"}, metrics).
//
// Counters and histograms are of this process and begin with it: sum them over
// processes. Depths are read from Redis and are the same whichever process
// exports them: one is enough, and of several take the max.
package dueqprom

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dueq-io/dueq"
)

// Options say what a [Collector] exports besides the counts of its process. The
// zero value is good.
type Options struct {
	// Depths makes each scrape ask Redis how many events of each topic of the
	// namespace lie where, and how late all processes were: about three round
	// trips a topic, eight topics at a time.
	// Defaults to false: a scrape does not ask Redis.
	Depths bool

	// MaxTopics is the most topics of which there are metrics, the first in
	// alphabetical order: a topic has about ninety series, and another
	// forty for its depths.
	// Defaults to 500.
	MaxTopics int

	// Timeout bounds what a scrape waits for Redis.
	// Defaults to 5s, half of what Prometheus gives a scrape.
	Timeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.MaxTopics <= 0 {
		o.MaxTopics = 500
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	return o
}

// Collector collects the metrics of a queue, which may be shut down meanwhile.
type Collector struct {
	q          *dueq.Queue
	opts       Options
	counters   []counter
	histograms []histogram
	other      descs
	depths     *depths // nil: not asked for
}

// NewCollector returns a collector of the queue's metrics.
func NewCollector(q *dueq.Queue, opts Options) *Collector {
	c := &Collector{q: q, opts: opts.withDefaults(), counters: counters(), histograms: histograms(), other: newDescs()}
	if opts.Depths {
		c.depths = newDepths(q, c.opts)
	}
	return c
}

// counter is a number that a process has counted for a topic.
type counter struct {
	desc   *prometheus.Desc
	labels []string // besides the topic
	value  func(*dueq.TopicMetrics) int
}

// histogram is a distribution that a process has counted for a topic.
type histogram struct {
	desc  *prometheus.Desc
	value func(*dueq.TopicMetrics) dueq.Histogram
}

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("dueq_"+name, help, labels, nil)
}

// counters are the counters of a topic.
func counters() []counter {
	duplicates := newDesc("events_duplicate_total", "Publishes that found an event with their id, by the key policy that was applied.", "topic", "policy")
	one := func(name, help string, value func(*dueq.TopicMetrics) int) counter {
		return counter{desc: newDesc(name, help, "topic"), value: value}
	}
	return []counter{
		one("events_published_total", "Events stored by publishes, replacing included.", func(m *dueq.TopicMetrics) int { return m.Published }),
		{duplicates, []string{"keep"}, func(m *dueq.TopicMetrics) int { return m.Kept }},
		{duplicates, []string{"replace"}, func(m *dueq.TopicMetrics) int { return m.Replaced }},
		{duplicates, []string{"reject"}, func(m *dueq.TopicMetrics) int { return m.Duplicates }},
		one("events_delivered_total", "Events claimed for handlers.", func(m *dueq.TopicMetrics) int { return m.Delivered }),
		one("events_acked_total", "Events handled.", func(m *dueq.TopicMetrics) int { return m.Acked }),
		one("events_persisted_total", "Events that failed for good and were taken by PersistFn.", func(m *dueq.TopicMetrics) int { return m.Persisted }),
		one("events_retried_total", "Events scheduled again after a failure.", func(m *dueq.TopicMetrics) int { return m.Retried }),
		one("events_dead_total", "Events that failed for good and were put among the dead.", func(m *dueq.TopicMetrics) int { return m.Buried }),
		one("events_released_total", "Events given back unhandled.", func(m *dueq.TopicMetrics) int { return m.Released }),
		one("events_cancelled_total", "Events forgotten by a cancel or a purge.", func(m *dueq.TopicMetrics) int { return m.Cancelled }),
		one("events_rescheduled_total", "Events given another time.", func(m *dueq.TopicMetrics) int { return m.Rescheduled }),
		one("dead_events_dropped_total", "Dead events forgotten for their age or number.", func(m *dueq.TopicMetrics) int { return m.Dropped }),
		one("leases_lost_total", "Events whose leases were taken from this process, which was silent for too long.", func(m *dueq.TopicMetrics) int { return m.LeasesLost }),
		one("sessions_lost_total", "Times that this process lost its leases in a lane.", func(m *dueq.TopicMetrics) int { return m.SessionsLost }),
		one("audit_findings_total", "Events that a count found nowhere, or twice, or without a body, at each count.", func(m *dueq.TopicMetrics) int { return m.AuditFindings }),
	}
}

// histograms are the distributions of a topic.
func histograms() []histogram {
	return []histogram{
		{newDesc("event_claim_lateness_seconds", "From an event's effect time to its first claim.", "topic"), func(m *dueq.TopicMetrics) dueq.Histogram { return m.Ready }},
		{newDesc("event_lateness_seconds", "From an event's effect time to the start of its handler at the first delivery.", "topic"), func(m *dueq.TopicMetrics) dueq.Histogram { return m.Lateness }},
		{newDesc("handler_duration_seconds", "What the handlers of a delivery took.", "topic"), func(m *dueq.TopicMetrics) dueq.Histogram { return m.Handling }},
	}
}

// descs are what does not belong to a topic.
type descs struct{ publishBatch, settleBatch, callTook, callFailed *prometheus.Desc }

func newDescs() descs {
	return descs{
		newDesc("publish_batch_events", "Events that were published in one batch."),
		newDesc("settle_batch_events", "Outcomes that were sent in one batch."),
		newDesc("redis_call_duration_seconds", "Round trips to Redis, by what was called.", "call"),
		newDesc("redis_call_failures_total", "Calls that Redis refused or did not answer, by what was called.", "call"),
	}
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range c.counters {
		to <- m.desc
	}
	for _, m := range c.histograms {
		to <- m.desc
	}
	d := c.other
	for _, desc := range []*prometheus.Desc{d.publishBatch, d.settleBatch, d.callTook, d.callFailed} {
		to <- desc
	}
	if c.depths != nil {
		c.depths.describe(to)
	}
}

// Collect sends all metrics. If Redis does not answer those of the process come
// all the same.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	m := c.q.Metrics()
	names := slices.Sorted(maps.Keys(m.Topics))
	for _, name := range names[:min(len(names), c.opts.MaxTopics)] {
		topic := m.Topics[name]
		for _, n := range c.counters {
			to <- prometheus.MustNewConstMetric(n.desc, prometheus.CounterValue, float64(n.value(&topic)), append([]string{name}, n.labels...)...)
		}
		for _, h := range c.histograms {
			to <- durations(h.desc, h.value(&topic), name)
		}
	}
	d := c.other
	to <- sizes(d.publishBatch, m.PublishBatches)
	to <- sizes(d.settleBatch, m.SettleBatches)
	for name, call := range m.Calls {
		to <- durations(d.callTook, call.Took, name)
		to <- prometheus.MustNewConstMetric(d.callFailed, prometheus.CounterValue, float64(call.Failed), name)
	}
	if c.depths != nil {
		c.depths.collect(to)
	}
}

// durations is a histogram in seconds.
func durations(desc *prometheus.Desc, h dueq.Histogram, labels ...string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(h.Counts))
	below := 0
	for i, bound := range h.Bounds() {
		below += h.Counts[i]
		buckets[bound.Seconds()] = uint64(below)
	}
	return prometheus.MustNewConstHistogram(desc, uint64(h.Count()), h.Sum.Seconds(), buckets, labels...)
}

// sizes is a histogram of batches.
func sizes(desc *prometheus.Desc, s dueq.Sizes) prometheus.Metric {
	buckets := make(map[float64]uint64, len(s.Counts))
	below := 0
	for i, bound := range s.Bounds() {
		below += s.Counts[i]
		buckets[float64(bound)] = uint64(below)
	}
	return prometheus.MustNewConstHistogram(desc, uint64(s.Count()), float64(s.Sum), buckets)
}
