package dashboard

import (
	"net/http"
	"time"

	"github.com/dueq-io/dueq"
)

// topicData is the page of one topic.
type topicData struct {
	topicState
	Rates    rates
	Lateness *lateness // nil: no deliveries of late
	Latest   point
	Forecast *forecast
	Events   *eventList
	Purge    confirmation
	Requeue  confirmation // of the dead events that are listed
}

func (d *dashboard) topic(r *http.Request) (*page, error) {
	list, err := newEventList(r)
	if err != nil {
		return nil, err
	}
	state, err := d.sampler.topic(r.Context(), list.Topic)
	if err != nil {
		return nil, err
	}
	list.list(r.Context(), d.q)
	f := newFrame(state.Points, time.Now())
	data := &topicData{
		topicState: state,
		Rates:      newRates(state.Points, f), Lateness: newLateness(state.Points, f), Latest: now(state.Points),
		Forecast: d.forecast(r.Context(), list, state.Stats.Scheduled),
		Events:   list,
		Purge:    purgeConfirmation(list.Topic, list.State),
		Requeue:  requeueConfirmation(list),
	}
	return &page{name: "topic", Title: list.Topic, Nav: "topics", Live: true, Data: data}, nil
}

// Used reports whether the topic has ever had events.
func (t *topicData) Used() bool {
	s := t.Stats
	return s.Published > 0 || s.Scheduled+s.Ready+s.Leased+s.Dead > 0
}

// Of is how many events are in a state.
func (t *topicData) Of(state dueq.State) int {
	switch state {
	case dueq.StateScheduled:
		return t.Stats.Scheduled
	case dueq.StateReady:
		return t.Stats.Ready
	case dueq.StateLeased:
		return t.Stats.Leased
	default:
		return t.Stats.Dead
	}
}
