package api

import (
	"net/http"
	"net/url"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/envelope"
)

// stored is the answer to a publish.
type stored struct {
	ID string `json:"id"`
}

// publish publishes one event.
func (a *API) publish(w http.ResponseWriter, r *http.Request) error {
	var in envelope.New
	if err := decode(w, r, a.eventLimit(), &in); err != nil {
		return err
	}
	e, err := a.event(&in)
	if err != nil {
		return err
	}
	return a.publishOne(w, r, &e)
}

// eventLimit is the most bytes of JSON that one event takes: a body with every
// second byte escaped, and the metadata.
func (a *API) eventLimit() int64 { return 2*int64(a.opts.MaxBody) + smallBody }

// publishRaw publishes the request's body as it is.
func (a *API) publishRaw(w http.ResponseWriter, r *http.Request) error {
	q, err := newQuery(r, "in", "at", "id", "on_duplicate", "max_attempts")
	if err != nil {
		return err
	}
	in := envelope.New{In: q.text("in"), At: q.text("at"), OnDuplicate: q.text("on_duplicate")}
	if q.has("id") {
		id := q.text("id")
		in.ID = &id
	}
	if in.MaxAttempts, err = q.number("max_attempts"); err != nil {
		return err
	}
	e, err := a.event(&in)
	if err != nil {
		return err
	}
	if e.Body, err = readBody(w, r, int64(a.opts.MaxBody)); err != nil {
		return err
	}
	return a.publishOne(w, r, &e)
}

func (a *API) publishOne(w http.ResponseWriter, r *http.Request, e *dueq.NewEvent) error {
	opts := []dueq.PublishOption{dueq.WithKeyPolicy(e.KeyPolicy), dueq.WithMetadata(e.Metadata)}
	if e.ID != "" {
		opts = append(opts, dueq.WithID(e.ID))
	}
	if e.MaxAttempts != 0 {
		opts = append(opts, dueq.WithMaxAttempts(e.MaxAttempts))
	}
	id, err := a.q.PublishEvent(r.Context(), r.PathValue("topic"), e.Body, e.EffectTime, opts...)
	if err != nil {
		p := problemOf(err)
		p.ID = id // it exists all the same
		return p
	}
	w.Header().Set("Location", "events/"+url.PathEscape(id))
	return answer(w, http.StatusCreated, stored{id})
}
