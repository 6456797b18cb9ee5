package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
	"github.com/dueq-io/dueq/internal/envelope"
)

const (
	maxClaim          = 500
	maxWait           = time.Minute
	defaultWait       = 20 * time.Second
	minWait           = 250 * time.Millisecond // a look at Redis
	minVisibility     = 100 * time.Millisecond
	maxVisibility     = 24 * time.Hour
	defaultVisibility = 30 * time.Second
	// maxAnswer is about the most bytes of bodies in one answer.
	maxAnswer = 16 << 20
	// maxWaiting is the most claims that wait in one process.
	maxWaiting = 10_000
)

// consumers claim events, one for each topic that was asked for.
type consumers struct {
	q       *dueq.Queue
	waiting chan struct{} // has an element for each claim that waits

	mu sync.Mutex
	of map[string]*dueq.Consumer
}

func newConsumers(q *dueq.Queue) *consumers {
	return &consumers{q: q, waiting: make(chan struct{}, maxWaiting), of: make(map[string]*dueq.Consumer)}
}

// consumer is the one of a topic.
func (c *consumers) consumer(topic string) (*dueq.Consumer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.of[topic]; found != nil {
		return found, nil
	}
	fresh, err := c.q.Consume(topic)
	if err != nil {
		return nil, err
	}
	c.of[topic] = fresh
	return fresh, nil
}

// claimIn says what a caller claims.
type claimIn struct {
	Max        *int   `json:"max"`
	Wait       string `json:"wait"`
	Visibility string `json:"visibility"`
	Bodies     string `json:"bodies"`

	max              int
	wait, visibility time.Duration
	base64           bool
}

func (in *claimIn) check() (err error) {
	in.max = 1
	if in.Max != nil {
		in.max = *in.Max
	}
	if in.max < 1 || in.max > maxClaim {
		return invalid("max", "is %d, not from 1 to %d", in.max, maxClaim)
	}
	if in.wait, err = lasting("wait", in.Wait, defaultWait, 0, maxWait); err != nil {
		return err
	}
	if in.visibility, err = lasting("visibility", in.Visibility, defaultVisibility, minVisibility, maxVisibility); err != nil {
		return err
	}
	in.base64, err = exact(in.Bodies)
	return err
}

// claimed are the events that a caller has now.
type claimed struct {
	Events []claimedEvent `json:"events"`
}

// claimedEvent is an event that a caller has until it settles it.
type claimedEvent struct {
	Receipt string `json:"receipt"`
	envelope.Delivery
	Expires string `json:"expires_at"` // when it is taken away again
}

// claim hands out events that are due, and waits until there are any.
func (a *API) claim(w http.ResponseWriter, r *http.Request) error {
	var in claimIn
	if err := decodeAll(w, r, &in); err != nil {
		return err
	}
	if err := in.check(); err != nil {
		return err
	}
	if a.opts.Draining.Err() != nil {
		return dueq.ErrShutDown
	}
	if room := a.receipts.room(); room < in.max {
		return tooMany("this process keeps %d claimed events, all that it may", maxHeld)
	}
	select {
	case a.consumers.waiting <- struct{}{}:
		defer func() { <-a.consumers.waiting }()
	default:
		return tooMany("%d claims wait here already", maxWaiting)
	}
	c, err := a.consumers.consumer(r.PathValue("topic"))
	if err != nil {
		return err
	}
	allow(w, in.wait+callTimeout)
	ctx, cancel := context.WithTimeout(r.Context(), max(in.wait, minWait))
	defer cancel()
	defer context.AfterFunc(a.opts.Draining, cancel)()
	deliveries, err := c.Claim(ctx, in.max, in.visibility)
	if err != nil && (!errors.Is(err, dueq.ErrShutDown) || a.opts.Draining.Err() == nil) {
		return err
	}
	return a.handOut(w, r, &in, deliveries)
}

func tooMany(format string, args ...any) error {
	p := problem.TooMany.New(format, args...)
	p.RetryAfter = later
	return p
}

// handOut answers with the deliveries. Those of which the caller does not hear, and
// those for which there is no room in one answer, go back.
func (a *API) handOut(w http.ResponseWriter, r *http.Request, in *claimIn, deliveries []*dueq.Delivery) error {
	expires := envelope.Stamp(time.Now().Add(in.visibility))
	if gone(r) {
		a.giveBack(deliveries)
		leave()
	}
	size := 0
	for i, d := range deliveries {
		if size += len(d.Body); size > maxAnswer && i > 0 {
			a.giveBack(deliveries[i:])
			deliveries = deliveries[:i]
			break
		}
	}
	out := claimed{Events: make([]claimedEvent, len(deliveries))}
	texts := a.receipts.add(deliveries)
	for i, d := range deliveries {
		out.Events[i] = claimedEvent{Receipt: texts[i], Delivery: envelope.NewDelivery(d.Event, in.base64), Expires: expires}
	}
	if send(w, http.StatusOK, out) != nil { // a caller that has all may hang up: that says nothing
		a.receipts.forget(texts...)
		a.giveBack(deliveries)
	}
	return nil
}

// giveBack gives events back at no cost in attempts.
func (a *API) giveBack(deliveries []*dueq.Delivery) {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, d := range deliveries {
		wg.Go(func() {
			if err := d.Release(ctx); err != nil && !errors.Is(err, dueq.ErrLeaseLost) {
				a.opts.Logger.Warn("cannot give an event back that was not handed out",
					zap.String("topic", d.Topic), zap.String("id", d.ID), zap.Error(err))
			}
		})
	}
	wg.Wait()
}
