package api

import (
	"net/http"

	"github.com/dueq-io/dueq"
)

// counted is the answer to what is done to many events.
type counted struct {
	Count int `json:"count"`
}

// nothing is the body of a call that takes no more than its path.
type nothing struct{}

// pause stops the delivery of a topic.
func (a *API) pause(w http.ResponseWriter, r *http.Request) error {
	if err := decodeAll(w, r, &nothing{}); err != nil {
		return err
	}
	if err := a.q.Pause(r.Context(), r.PathValue("topic")); err != nil {
		return err
	}
	return done(w)
}

// resume starts the delivery of a topic again.
func (a *API) resume(w http.ResponseWriter, r *http.Request) error {
	if err := decodeAll(w, r, &nothing{}); err != nil {
		return err
	}
	if err := a.q.Resume(r.Context(), r.PathValue("topic")); err != nil {
		return err
	}
	return done(w)
}

// decodeAll is [decode] for calls that take small bodies and no query.
func decodeAll(w http.ResponseWriter, r *http.Request, into any) error {
	if _, err := newQuery(r); err != nil {
		return err
	}
	return decode(w, r, smallBody, into)
}

// requeueMany says which dead events get a new life, and when.
type requeueMany struct {
	filter
	due
	All bool `json:"all"` // there is no filter
}

// requeue gives the dead events that a filter takes a new life.
func (a *API) requeue(w http.ResponseWriter, r *http.Request) error {
	var in requeueMany
	if err := decodeAll(w, r, &in); err != nil {
		return err
	}
	if in.All == (in.filter != filter{}) {
		return invalid("all", "has to be true, or there has to be a filter, and not both")
	}
	f, err := in.filter.filter()
	if err != nil {
		return err
	}
	at, err := in.time()
	if err != nil {
		return err
	}
	allow(w, 0) // as long as it takes: it ends when the client goes
	n, err := a.q.Requeue(r.Context(), r.PathValue("topic"), f, at)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, counted{n})
}

// purgeIn says what is purged.
type purgeIn struct {
	States []dueq.State `json:"states"`
}

// purge forgets all events of a topic that nobody holds, or those in some states.
func (a *API) purge(w http.ResponseWriter, r *http.Request) error {
	in := purgeIn{[]dueq.State{dueq.StateScheduled, dueq.StateReady, dueq.StateDead}} // null is none
	if err := decodeAll(w, r, &in); err != nil {
		return err
	}
	if len(in.States) == 0 {
		return invalid("states", "are none")
	}
	allow(w, 0)
	n, err := a.q.Purge(r.Context(), r.PathValue("topic"), in.States...)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, counted{n})
}

// checkIn says whether a check mends what it finds.
type checkIn struct {
	Repair bool `json:"repair"`
}

// checked is what a check found.
type checked struct {
	*dueq.Report
	Left int `json:"left"` // findings that are not repaired
}

// check looks whether each of a topic's events lies where it should.
func (a *API) check(w http.ResponseWriter, r *http.Request) error {
	var in checkIn
	if err := decodeAll(w, r, &in); err != nil {
		return err
	}
	audit := a.q.Check
	if in.Repair {
		audit = a.q.Repair
	}
	allow(w, 0)
	report, err := audit(r.Context(), r.PathValue("topic"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, checked{report, report.Left()})
}
