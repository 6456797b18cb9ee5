package api

import (
	"context"
	"net/http"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
	"github.com/dueq-io/dueq/internal/envelope"
)

// maxPreview is the most bytes of each body in a list.
const maxPreview = 64 << 10

// page is some of a topic's events.
type page struct {
	Events []envelope.Info `json:"events"`
	Next   string          `json:"next,omitempty"`
}

// list lists a topic's events in one state.
func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	q, err := newQuery(r, "state", "cursor", "limit", "preview", "bodies", "id_prefix", "error", "since", "until")
	if err != nil {
		return err
	}
	base64, err := exact(q.text("bodies"))
	if err != nil {
		return err
	}
	f := filter{IDPrefix: q.text("id_prefix"), Error: q.text("error"), Since: q.text("since"), Until: q.text("until")}
	query := dueq.Query{Cursor: q.text("cursor")}
	if query.Filter, err = f.filter(); err != nil {
		return err
	}
	if query.State, err = state(q.text("state")); err != nil {
		return err
	}
	if query.Limit, err = within(q, "limit", 1, 500); err != nil {
		return err
	}
	if query.Preview, err = within(q, "preview", 0, maxPreview); err != nil {
		return err
	}
	found, err := a.q.List(r.Context(), r.PathValue("topic"), query)
	if err != nil {
		return err
	}
	out := page{Events: []envelope.Info{}, Next: found.Next}
	for _, e := range found.Events {
		out.Events = append(out.Events, envelope.NewInfo(e, base64))
	}
	return answer(w, http.StatusOK, out)
}

// within is a number of the query; 0 if it is not given.
func within(q query, name string, low, high int) (int, error) {
	n, err := q.number(name)
	switch {
	case err != nil || n == nil:
		return 0, err
	case *n < low || *n > high:
		return 0, invalid(name, "is %d, not from %d to %d", *n, low, high)
	}
	return *n, nil
}

func state(name string) (dueq.State, error) {
	switch s := dueq.State(name); s {
	case dueq.StateScheduled, dueq.StateReady, dueq.StateLeased, dueq.StateDead:
		return s, nil
	}
	return "", invalid("state", "is %q, not scheduled, ready, leased or dead", cut(name))
}

// filter narrows events down.
type filter struct {
	IDPrefix string `json:"id_prefix"`
	Error    string `json:"error"`
	Since    string `json:"since"`
	Until    string `json:"until"`
}

func (f *filter) filter() (out dueq.Filter, err error) {
	out.IDPrefix, out.Error = f.IDPrefix, f.Error
	if out.Since, err = moment("since", f.Since); err != nil {
		return out, err
	}
	out.Until, err = moment("until", f.Until)
	return out, err
}

// get tells what and where an event is.
func (a *API) get(w http.ResponseWriter, r *http.Request) error {
	q, err := newQuery(r, "bodies")
	if err != nil {
		return err
	}
	base64, err := exact(q.text("bodies"))
	if err != nil {
		return err
	}
	info, err := a.q.Get(r.Context(), r.PathValue("topic"), r.PathValue("id"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, envelope.NewInfo(info, base64))
}

// cancel forgets an event.
func (a *API) cancel(w http.ResponseWriter, r *http.Request) error {
	if _, err := newQuery(r); err != nil {
		return err
	}
	if err := a.q.Cancel(r.Context(), r.PathValue("topic"), r.PathValue("id")); err != nil {
		return err
	}
	return done(w)
}

// due is when an event is to be due; now if neither is given.
type due struct {
	In string `json:"in"`
	At string `json:"at"`
}

func (d due) time() (time.Time, error) {
	t, err := envelope.Time(d.In, d.At, time.Now())
	if err != nil {
		err = formProblem(problem.Invalid, err)
	}
	return t, err
}

// rescheduled is the answer to a new effect time.
type rescheduled struct {
	EffectTime string `json:"effect_time"`
}

// reschedule gives an event a new effect time.
func (a *API) reschedule(w http.ResponseWriter, r *http.Request) error {
	at, err := decodeDue(w, r, true)
	if err != nil {
		return err
	}
	return a.retime(w, r, at, a.q.Reschedule)
}

// requeueOne gives a dead event a new life.
func (a *API) requeueOne(w http.ResponseWriter, r *http.Request) error {
	at, err := decodeDue(w, r, false)
	if err != nil {
		return err
	}
	return a.retime(w, r, at, a.q.RequeueEvent)
}

// retime answers with the new effect time of an event.
func (a *API) retime(w http.ResponseWriter, r *http.Request, at time.Time,
	move func(ctx context.Context, topic, id string, effectTime time.Time) error,
) error {
	if err := move(r.Context(), r.PathValue("topic"), r.PathValue("id"), at); err != nil {
		return err
	}
	return answer(w, http.StatusOK, rescheduled{envelope.Stamp(at)})
}

func decodeDue(w http.ResponseWriter, r *http.Request, must bool) (time.Time, error) {
	if _, err := newQuery(r); err != nil {
		return time.Time{}, err
	}
	var in due
	if err := decode(w, r, smallBody, &in); err != nil {
		return time.Time{}, err
	}
	if must && in == (due{}) {
		return time.Time{}, invalid("in", `is not given, nor is at; "0s" is now`)
	}
	return in.time()
}
