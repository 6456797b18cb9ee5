package dueq

import "github.com/dueq-io/dueq/internal/metric"

// Metrics are what this process has done since its queue was made. What lies in
// Redis, and what all processes have done, tells [Queue.Stats].
type Metrics struct {
	Topics         map[string]TopicMetrics // that are subscribed to, or for which something was counted
	Calls          map[string]CallMetrics  // to Redis, by move: publish, claim, settle, …
	PublishBatches Sizes                   // events that travelled together
	SettleBatches  Sizes                   // outcomes that travelled together
}

// TopicMetrics count what a process has done for a topic.
type TopicMetrics struct {
	Published  int // stored, replacing included
	Kept       int // publishes that found their key, with KeyKeep
	Replaced   int // publishes that found their key, with KeyReplace
	Duplicates int // publishes that found their key, with KeyReject

	Delivered    int // leases taken
	Acked        int // handled
	Persisted    int // taken by PersistFn
	Retried      int // scheduled again after a failure
	Buried       int // put among the dead
	Released     int // given back unhandled
	LeasesLost   int // taken away: this process was silent for too long
	SessionsLost int // times that this happened, lane by lane

	Cancelled     int // forgotten by Cancel or Purge
	Rescheduled   int
	Dropped       int // dead, and forgotten for their age or number
	AuditFindings int // found nowhere, or twice, or without a body

	// First deliveries, by the server's clock, from the effect time: an event
	// that was published later than that counts as late from the beginning.
	Ready    Histogram // to the claim
	Lateness Histogram // to the handler's start, or until a Consumer handed it over
	Handling Histogram // what the handlers of a delivery took, all together, or until it was settled
}

// CallMetrics tell about the calls of one move.
type CallMetrics struct {
	Took   Histogram // of the round trips in which they travelled
	Failed int
}

// Metrics tells what this process has done. It does not ask Redis.
func (q *Queue) Metrics() Metrics {
	m := Metrics{
		Topics: make(map[string]TopicMetrics), Calls: make(map[string]CallMetrics),
		PublishBatches: loadSizes(&q.batches), SettleBatches: loadSizes(&q.settlements),
	}
	q.mu.Lock()
	for name, t := range q.topics {
		if loaded := loadTopic(&t.metrics); t.subscription != nil || loaded != (TopicMetrics{}) {
			m.Topics[name] = loaded
		}
	}
	q.mu.Unlock()
	q.calls.Each(func(name string, c *metric.Call) {
		m.Calls[name] = CallMetrics{Took: loadHistogram(&c.Took), Failed: int(c.Failed.Load())}
	})
	return m
}

func loadTopic(t *metric.Topic) TopicMetrics {
	return TopicMetrics{
		Published: int(t.Published.Load()), Kept: int(t.Kept.Load()),
		Replaced: int(t.Replaced.Load()), Duplicates: int(t.Duplicates.Load()),
		Delivered: int(t.Delivered.Load()), Acked: int(t.Acked.Load()), Persisted: int(t.Persisted.Load()),
		Retried: int(t.Retried.Load()), Buried: int(t.Buried.Load()), Released: int(t.Released.Load()),
		LeasesLost: int(t.Lost.Load()), SessionsLost: int(t.Sessions.Load()),
		Cancelled: int(t.Cancelled.Load()), Rescheduled: int(t.Rescheduled.Load()),
		Dropped: int(t.Dropped.Load()), AuditFindings: int(t.Findings.Load()),
		Ready: loadHistogram(&t.Ready), Lateness: loadHistogram(&t.Lateness), Handling: loadHistogram(&t.Handling),
	}
}

// topicMetrics counts for the topic with this name.
func (q *Queue) topicMetrics(name string) *metric.Topic {
	q.mu.Lock()
	defer q.mu.Unlock()
	return &q.topic(name).metrics
}
