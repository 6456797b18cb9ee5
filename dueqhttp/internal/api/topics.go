package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq/internal/census"
	"github.com/dueq-io/dueq/internal/envelope"
)

const (
	// maxForecast is the most times of a forecast.
	maxForecast = 100
	// countTimeout is how long the topics that can be counted wait for the others.
	countTimeout = 10 * time.Second
)

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
	return answer(w, http.StatusOK, envelope.NewStats(topic, &s))
}

// statsOfAll counts the events of all topics.
type statsOfAll struct {
	Topics []envelope.Counted `json:"topics"`
}

// allStats counts each topic's events. One that cannot be counted does not keep the
// others back.
func (a *API) allStats(w http.ResponseWriter, r *http.Request) error {
	if _, err := newQuery(r); err != nil {
		return err
	}
	names, err := a.q.Topics(r.Context())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), countTimeout)
	defer cancel()
	all := statsOfAll{Topics: make([]envelope.Counted, len(names))}
	for i, t := range census.Count(ctx, a.q, names) {
		why := ""
		if t.Err != nil {
			why = problemOf(t.Err).Detail
			a.opts.Logger.Warn("topic not counted", zap.String("topic", t.Name), zap.Error(t.Err),
				zap.String("request_id", w.Header().Get("X-Request-Id")))
		}
		all.Topics[i] = envelope.NewCounted(t.Name, &t.Stats, why)
	}
	if gone(r) {
		return context.Cause(r.Context())
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
	Sessions []envelope.Session `json:"sessions"`
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
	out := sessionList{Sessions: make([]envelope.Session, len(found))}
	for i, session := range found {
		out.Sessions[i] = envelope.NewSession(session)
	}
	return answer(w, http.StatusOK, out)
}
