package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/dueq-io/dueq"
)

const (
	eventsPerPage = 50
	previewBytes  = 160
)

// errInput says that a form's field is not what it should be.
var errInput = errors.New("invalid input")

// states are those of events, in the order in which an event passes them.
var states = []dueq.State{dueq.StateScheduled, dueq.StateReady, dueq.StateLeased, dueq.StateDead}

// eventList is a page of a topic's events in one state.
type eventList struct {
	Topic  string
	State  dueq.State
	Filter dueq.Filter
	Cursor string
	Ahead  string // the range of the forecast beside it, kept in its links

	Err    error // why there is none
	Events []*dueq.EventInfo
	Next   string
}

// newEventList takes the query parameters of a topic's page.
func newEventList(r *http.Request) (*eventList, error) {
	l := &eventList{
		Topic: r.FormValue("topic"), State: dueq.State(r.FormValue("state")), Cursor: r.FormValue("cursor"),
		Ahead: r.FormValue("ahead"),
	}
	if l.State == "" {
		l.State = dueq.StateScheduled
	}
	if !slices.Contains(states, l.State) {
		return nil, fmt.Errorf("%w: state %.80q is not scheduled, ready, leased or dead", errInput, l.State)
	}
	if l.Ahead == "" {
		l.Ahead = aheads[0].name
	}
	var err error
	l.Filter, err = filterOf(r)
	return l, err
}

// filterOf takes a filter from a query or a form.
func filterOf(r *http.Request) (f dueq.Filter, err error) {
	f.IDPrefix, f.Error = r.FormValue("prefix"), r.FormValue("error")
	if f.Since, err = timeOf(r, "since"); err != nil {
		return f, err
	}
	f.Until, err = timeOf(r, "until")
	return f, err
}

// timeOf parses a time from a form: RFC 3339, or what browsers send for a
// datetime-local, which is taken as UTC. It is zero if there is none.
func timeOf(r *http.Request, name string) (time.Time, error) {
	text := r.FormValue(name)
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil && !t.IsZero() {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%w: %s is %.80q, not a time such as 2026-01-31T12:30", errInput, name, text)
}

func (l *eventList) list(ctx context.Context, q *dueq.Queue) {
	found, err := q.List(ctx, l.Topic, dueq.Query{
		State: l.State, Filter: l.Filter, Cursor: l.Cursor, Limit: eventsPerPage, Preview: previewBytes,
	})
	if err != nil {
		l.Err = err
		return
	}
	l.Events, l.Next = found.Events, found.Next
}

// link is a link to the list with some parameters changed.
func (l *eventList) link(changes ...string) string {
	pairs := []string{
		"topic", l.Topic, "state", string(l.State), "ahead", l.Ahead, "cursor", l.Cursor,
		"prefix", l.Filter.IDPrefix, "error", l.Filter.Error,
		"since", inputTime(l.Filter.Since), "until", inputTime(l.Filter.Until),
	}
	return with("topic", append(pairs, changes...)...)
}

// Tab is a link to the topic's events in another state.
func (l *eventList) Tab(state dueq.State) string {
	return with("topic", "topic", l.Topic, "state", string(state), "ahead", l.Ahead) + "#events"
}

// Here is a link to this list.
func (l *eventList) Here() string { return l.link() + "#events" }

// First is a link to the first page.
func (l *eventList) First() string { return l.link("cursor", "") + "#events" }

// NextPage is a link to the next page.
func (l *eventList) NextPage() string { return l.link("cursor", l.Next) + "#events" }

// States are those that there are tabs for.
func (l *eventList) States() []dueq.State { return states }

// HasTimes reports whether events of the state can be filtered by time and by
// error.
func (l *eventList) HasTimes() bool {
	return l.State == dueq.StateScheduled || l.State == dueq.StateDead
}

// Filtered reports whether the list may leave events out.
func (l *eventList) Filtered() bool { return l.Filter != dueq.Filter{} }
