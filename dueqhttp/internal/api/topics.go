package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/dueq-io/dueq"
)

// maxForecast is the most times of a forecast.
const maxForecast = 100

// topicNames are the namespace's topics.
type topicNames struct {
	Topics []string `json:"topics"`
}

// topics lists the topics by name.
func (a *API) topics(w http.ResponseWriter, r *http.Request) error {
	if _, err := newQuery(r); err != nil {
		return err
	}
	names, err := a.q.Topics(r.Context())
	if err != nil {
		return err
	}
	if names == nil {
		names = []string{}
	}
	return answer(w, http.StatusOK, topicNames{names})
}

// topicStats counts a topic's events.
type topicStats struct {
	Topic     string   `json:"topic"`
	Scheduled int      `json:"scheduled"`
	Ready     int      `json:"ready"`
	Leased    int      `json:"leased"`
	Dead      int      `json:"dead"`
	OldestDue string   `json:"oldest_due,omitempty"`
	Paused    bool     `json:"paused"`
	Lateness  lateness `json:"lateness"`
	Counters  counters `json:"counters"`
}

// lateness tells how long after their time deliveries began.
type lateness struct {
	Deliveries int     `json:"deliveries"`
	P50        float64 `json:"p50_seconds"`
	P99        float64 `json:"p99_seconds"`
}

// counters count since the topic's beginning.
type counters struct {
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

func newTopicStats(topic string, s *dueq.Stats) topicStats {
	deliveries := 0
	for _, n := range s.Lateness.Counts {
		deliveries += n
	}
	return topicStats{
		Topic: topic, Scheduled: s.Scheduled, Ready: s.Ready, Leased: s.Leased, Dead: s.Dead,
		OldestDue: stamp(s.OldestDue), Paused: s.Paused,
		Lateness: lateness{
			Deliveries: deliveries,
			P50:        s.Lateness.Quantile(0.5).Seconds(), P99: s.Lateness.Quantile(0.99).Seconds(),
		},
		Counters: counters{
			Published: s.Published, Kept: s.Kept, Duplicates: s.Duplicates, Delivered: s.Delivered,
			Acked: s.Acked, Retried: s.Retried, Released: s.Released, Expired: s.Expired, Buried: s.Buried,
			Dropped: s.Dropped, Cancelled: s.Cancelled, Rescheduled: s.Rescheduled,
		},
	}
}

// stats counts one topic's events.
func (a *API) stats(w http.ResponseWriter, r *http.Request) error {
	if _, err := newQuery(r); err != nil {
		return err
	}
	topic := r.PathValue("topic")
	s, err := a.q.Stats(r.Context(), topic)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, newTopicStats(topic, &s))
}

// statsOfAll counts the events of all topics.
type statsOfAll struct {
	Topics []topicStats `json:"topics"`
}

// allStats counts each topic's events.
func (a *API) allStats(w http.ResponseWriter, r *http.Request) error {
	if _, err := newQuery(r); err != nil {
		return err
	}
	names, err := a.q.Topics(r.Context())
	if err != nil {
		return err
	}
	all := statsOfAll{Topics: make([]topicStats, 0, len(names))}
	for _, name := range names {
		s, err := a.q.Stats(r.Context(), name)
		if err != nil {
			return err
		}
		all.Topics = append(all.Topics, newTopicStats(name, &s))
	}
	allow(w, callTimeout)
	return answer(w, http.StatusOK, all)
}

// forecast is how many events come due when.
type forecast struct {
	Topic string         `json:"topic"`
	Due   []forecastSpan `json:"due"`
}

// forecastSpan counts events from the span before to its own end.
type forecastSpan struct {
	Within string `json:"within"`
	Count  int    `json:"count"`
}

// forecast counts a topic's scheduled events by when they are due.
func (a *API) forecast(w http.ResponseWriter, r *http.Request) error {
	q, err := newQuery(r, "within")
	if err != nil {
		return err
	}
	names := []string{"1m", "1h", "24h"}
	if q.has("within") {
		names = strings.Split(q.text("within"), ",")
	}
	if len(names) > maxForecast {
		return invalid("within", "has %d times, more than %d", len(names), maxForecast)
	}
	ahead := make([]time.Duration, len(names))
	for i := range names {
		if ahead[i], err = lasting("within", names[i], 0, time.Millisecond, maxAhead); err != nil {
			return err
		}
		if ahead[i] == 0 || i > 0 && ahead[i] <= ahead[i-1] {
			return invalid("within", "is %q, not durations in order", cut(q.text("within")))
		}
	}
	topic := r.PathValue("topic")
	counts, err := a.q.Forecast(r.Context(), topic, ahead...)
	if err != nil {
		return err
	}
	out := forecast{Topic: topic, Due: make([]forecastSpan, len(counts))}
	for i, n := range counts {
		out.Due[i] = forecastSpan{Within: names[i], Count: n}
	}
	return answer(w, http.StatusOK, out)
}

// sessionList are the sessions that were seen of late.
type sessionList struct {
	Sessions []session `json:"sessions"`
}

// session is a process that subscribes to topics.
type session struct {
	ID       string   `json:"id"`
	Host     string   `json:"host"`
	PID      int      `json:"pid"`
	Started  string   `json:"started,omitempty"`
	LastSeen string   `json:"last_seen,omitempty"`
	Topics   []string `json:"topics"`
	Held     int      `json:"held"`
}

// sessions lists the processes that take events.
func (a *API) sessions(w http.ResponseWriter, r *http.Request) error {
	if _, err := newQuery(r); err != nil {
		return err
	}
	found, err := a.q.Sessions(r.Context())
	if err != nil {
		return err
	}
	out := sessionList{Sessions: []session{}}
	for _, s := range found {
		topics := s.Topics
		if topics == nil {
			topics = []string{}
		}
		out.Sessions = append(out.Sessions, session{
			ID: s.ID, Host: s.Host, PID: s.PID, Started: stamp(s.Started), LastSeen: stamp(s.LastSeen),
			Topics: topics, Held: s.Held,
		})
	}
	return answer(w, http.StatusOK, out)
}
