package envelope

import "github.com/dueq-io/dueq"

// Stats count a topic's events.
type Stats struct {
	Topic     string   `json:"topic"`
	Scheduled int      `json:"scheduled"`
	Ready     int      `json:"ready"`
	Leased    int      `json:"leased"`
	Dead      int      `json:"dead"`
	OldestDue string   `json:"oldest_due,omitempty"`
	Paused    bool     `json:"paused"`
	Lateness  Lateness `json:"lateness"`
	Counters  Counters `json:"counters"`
}

// Counted is a topic's stats, or why it could not be counted.
type Counted struct {
	Topic string `json:"topic"`
	Error string `json:"error,omitempty"`
	*Stats
}

// NewCounted is a topic's stats in JSON; a problem that is not "" is in their place.
func NewCounted(topic string, s *dueq.Stats, problem string) Counted {
	c := Counted{Topic: topic, Error: problem}
	if problem == "" {
		stats := NewStats(topic, s)
		c.Stats = &stats
	}
	return c
}

// Lateness tells how long after their time deliveries began.
type Lateness struct {
	Deliveries int     `json:"deliveries"`
	P50        float64 `json:"p50_seconds"`
	P99        float64 `json:"p99_seconds"`
}

// Counters count since the topic's beginning.
type Counters struct {
	Published   int `json:"published"`
	Kept        int `json:"kept"`
	Duplicates  int `json:"duplicates"`
	Delivered   int `json:"delivered"`
	Acked       int `json:"acked"`
	Retried     int `json:"retried"`
	Released    int `json:"released"`
	Expired     int `json:"expired"`
	Buried      int `json:"buried"`
	Dropped     int `json:"dropped"`
	Cancelled   int `json:"cancelled"`
	Rescheduled int `json:"rescheduled"`
}

// NewStats are a topic's stats in JSON.
func NewStats(topic string, s *dueq.Stats) Stats {
	return Stats{
		Topic: topic, Scheduled: s.Scheduled, Ready: s.Ready, Leased: s.Leased, Dead: s.Dead,
		OldestDue: Stamp(s.OldestDue), Paused: s.Paused,
		Lateness: newLateness(s.Lateness),
		Counters: Counters{
			Published: s.Published, Kept: s.Kept, Duplicates: s.Duplicates, Delivered: s.Delivered,
			Acked: s.Acked, Retried: s.Retried, Released: s.Released, Expired: s.Expired, Buried: s.Buried,
			Dropped: s.Dropped, Cancelled: s.Cancelled, Rescheduled: s.Rescheduled,
		},
	}
}

// newLateness is what a histogram of delays says.
func newLateness(h dueq.Histogram) Lateness {
	return Lateness{Deliveries: h.Count(), P50: h.Quantile(0.5).Seconds(), P99: h.Quantile(0.99).Seconds()}
}
