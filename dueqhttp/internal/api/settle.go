package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
)

// settleTimeout is how long Redis has to take note of an outcome.
const settleTimeout = 20 * time.Second

// verb is a way to settle a delivery, or to go on with it.
type verb struct {
	after, cause, visibility bool // what it takes
	do                       func(ctx context.Context, d *dueq.Delivery, t *terms) error
}

// terms are what a verb takes.
type terms struct {
	after, visibility time.Duration
	cause             error
}

var (
	ack   = verb{do: func(ctx context.Context, d *dueq.Delivery, _ *terms) error { return d.Ack(ctx) }}
	retry = verb{after: true, cause: true, do: func(ctx context.Context, d *dueq.Delivery, t *terms) error {
		return d.Retry(ctx, t.after, t.cause)
	}}
	fail = verb{cause: true, do: func(ctx context.Context, d *dueq.Delivery, t *terms) error { return d.Fail(ctx, t.cause) }}

	release = verb{do: func(ctx context.Context, d *dueq.Delivery, _ *terms) error { return d.Release(ctx) }}
	extend  = verb{visibility: true, do: func(_ context.Context, d *dueq.Delivery, t *terms) error { return d.Extend(t.visibility) }}
)

// settleIn says how to settle.
type settleIn struct {
	After      string `json:"after"`
	Error      string `json:"error"`
	Visibility string `json:"visibility"`
}

// terms are what a verb is given, or a problem if it does not take them.
func (in *settleIn) terms(v verb) (t terms, err error) {
	for _, field := range []struct {
		name, value string
		taken       bool
	}{{"after", in.After, v.after}, {"error", in.Error, v.cause}, {"visibility", in.Visibility, v.visibility}} {
		if field.value != "" && !field.taken {
			p := problem.BadRequest.New("unknown field %q", field.name)
			p.Field = field.name
			return t, p
		}
	}
	if t.after, err = lasting("after", in.After, -1, 0, maxAhead); err != nil {
		return t, err
	}
	if in.Error != "" {
		t.cause = errors.New(in.Error)
	}
	t.visibility, err = lasting("visibility", in.Visibility, defaultVisibility, minVisibility, maxVisibility)
	return t, err
}

// settleOne settles the delivery of the receipt in the path.
func (a *API) settleOne(v verb) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var in settleIn
		if err := decodeAll(w, r, &in); err != nil {
			return err
		}
		t, err := in.terms(v)
		if err != nil {
			return err
		}
		if err := a.settle(r.Context(), v, r.PathValue("receipt"), &t); err != nil {
			return err
		}
		return done(w)
	}
}

// settleManyIn says how to settle several deliveries, all in one way.
type settleManyIn struct {
	Receipts []string `json:"receipts"`
	settleIn
}

// settledMany says what became of each.
type settledMany struct {
	Results []settled `json:"results"`
	Failed  int       `json:"failed"`
}

// settled says what became of one.
type settled struct {
	Receipt string        `json:"receipt"`
	Error   *problem.Body `json:"error,omitempty"`
}

// settleMany settles the deliveries of the receipts in the body.
func (a *API) settleMany(v verb) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var in settleManyIn
		if err := decodeAll(w, r, &in); err != nil {
			return err
		}
		if n := len(in.Receipts); n < 1 || n > maxClaim {
			return invalid("receipts", "are %d, not from 1 to %d", n, maxClaim)
		}
		t, err := in.terms(v)
		if err != nil {
			return err
		}
		out := settledMany{Results: make([]settled, len(in.Receipts))}
		var wg sync.WaitGroup
		for i, receipt := range in.Receipts {
			out.Results[i].Receipt = receipt
			wg.Go(func() {
				if err := a.settle(r.Context(), v, receipt, &t); err != nil {
					body := problemOf(err).Body("") // the request's id is in the header
					out.Results[i].Error = &body
				}
			})
		}
		wg.Wait()
		for i := range out.Results {
			if out.Results[i].Error != nil {
				out.Failed++
			}
		}
		return answer(w, http.StatusOK, out)
	}
}

// settle settles the delivery of a receipt.
func (a *API) settle(ctx context.Context, v verb, receipt string, t *terms) error {
	d, err := a.receipts.find(receipt)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	err = v.do(ctx, d, t)
	if err == nil && !v.visibility || errors.Is(err, dueq.ErrLeaseLost) {
		a.receipts.forget(receipt)
	}
	return err
}
