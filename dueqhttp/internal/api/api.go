// Package api is the JSON API of a queue, under /v1.
package api

import (
	"context"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/access"
	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
)

// callTimeout is how long a call may take until its answer has left, unless its
// route says otherwise.
const callTimeout = 30 * time.Second

// maxAhead is the longest time that a caller may name.
const maxAhead = 100 * 365 * 24 * time.Hour

// Options say how the API behaves. All must be given.
type Options struct {
	Tokens    *access.Tokens
	MaxBody   int             // bytes of an event's body
	Ephemeral bool            // Redis keeps nothing
	Push      []Push          // topics that are forwarded to URLs, for everybody to see
	Draining  context.Context // ends when claims must not wait any longer
	Logger    *zap.Logger
}

// API serves /v1 and what is below.
type API struct {
	q         *dueq.Queue
	opts      Options
	consumers *consumers
	receipts  *receipts
	served    http.Handler
}

// New returns the API of a queue.
func New(q *dueq.Queue, opts Options) *API {
	a := &API{q: q, opts: opts, consumers: newConsumers(q), receipts: newReceipts()}
	mux := http.NewServeMux()
	for _, r := range a.Routes() {
		mux.Handle(r.Method+" "+r.Path, a.route(r))
	}
	a.served = problem.Mux(mux)
	return a
}

// ServeHTTP serves one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.served.ServeHTTP(w, r) }

// Route is one thing that the API does.
type Route struct {
	Method, Path string
	level        access.Level // that the caller needs
	handle       func(w http.ResponseWriter, r *http.Request) error
}

// Routes are all that the API serves, as the OpenAPI document describes them.
func (a *API) Routes() []Route {
	const (
		topic = "/v1/topics/{topic}"
		event = topic + "/events/{id}"
	)
	return []Route{
		{"GET", "/v1", access.Read, a.service},
		{"GET", "/v1/openapi.json", access.None, a.document},
		{"GET", "/v1/topics", access.Read, a.topics},
		{"GET", "/v1/stats", access.Read, a.allStats},
		{"GET", "/v1/sessions", access.Read, a.sessions},
		{"GET", "/v1/push", access.Read, a.push},

		{"POST", topic + "/events", access.Full, a.publish},
		{"POST", topic + "/raw", access.Full, a.publishRaw},
		{"POST", topic + "/batch", access.Full, a.publishBatch},

		{"GET", topic + "/events", access.Read, a.list},
		{"GET", event, access.Read, a.get},
		{"DELETE", event, access.Full, a.cancel},
		{"POST", event + "/reschedule", access.Full, a.reschedule},
		{"POST", event + "/requeue", access.Full, a.requeueOne},

		{"GET", topic + "/stats", access.Read, a.stats},
		{"GET", topic + "/forecast", access.Read, a.forecast},
		{"POST", topic + "/pause", access.Full, a.pause},
		{"POST", topic + "/resume", access.Full, a.resume},
		{"POST", topic + "/requeue", access.Full, a.requeue},
		{"POST", topic + "/purge", access.Full, a.purge},
		{"POST", topic + "/check", access.Full, a.check},

		{"POST", topic + "/claim", access.Full, a.claim},
		{"POST", "/v1/deliveries/{receipt}/ack", access.Full, a.settleOne(ack)},
		{"POST", "/v1/deliveries/{receipt}/retry", access.Full, a.settleOne(retry)},
		{"POST", "/v1/deliveries/{receipt}/fail", access.Full, a.settleOne(fail)},
		{"POST", "/v1/deliveries/{receipt}/release", access.Full, a.settleOne(release)},
		{"POST", "/v1/deliveries/{receipt}/extend", access.Full, a.settleOne(extend)},
		{"POST", "/v1/deliveries/ack", access.Full, a.settleMany(ack)},
		{"POST", "/v1/deliveries/retry", access.Full, a.settleMany(retry)},
		{"POST", "/v1/deliveries/fail", access.Full, a.settleMany(fail)},
		{"POST", "/v1/deliveries/release", access.Full, a.settleMany(release)},
		{"POST", "/v1/deliveries/extend", access.Full, a.settleMany(extend)},
	}
}

// route serves one route to those who may use it.
func (a *API) route(to Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		level := a.opts.Tokens.Level(r)
		switch {
		case level >= to.level:
		case level == access.None:
			problem.Unauthorized.New("send a header: Authorization: Bearer TOKEN").Write(w)
			return
		default:
			problem.ReadOnly.New("%s %s needs a token with full access", to.Method, to.Path).Write(w)
			return
		}
		allow(w, callTimeout)
		defer allow(w, 0) // for what follows on the connection
		if err := to.handle(w, r); err != nil {
			a.fail(w, r, err)
		}
		_ = http.NewResponseController(w).Flush() // all of it leaves in time; not supported: see allow
	})
}

// fail answers a request that failed.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if gone(r) && p.Status >= http.StatusInternalServerError { // its going ended the call
		leave()
	}
	if p.Status >= http.StatusInternalServerError {
		a.opts.Logger.Warn("request failed", zap.String("route", r.Pattern), zap.Error(err),
			zap.String("request_id", w.Header().Get("X-Request-Id")))
	}
	allow(w, callTimeout) // a body that was late has used it up
	p.Write(w)
}

// gone reports whether the caller has gone away, or has only closed its half of the
// connection, or was late: the server cannot tell.
func gone(r *http.Request) bool { return r.Context().Err() != nil }

// leave cuts the connection to a caller that has gone. Were there no answer, the
// server would send 200 to one that still listens.
func leave() { panic(http.ErrAbortHandler) }

// allow lets the answer take so long to leave from now on; 0 is forever. Where a
// writer cannot do that, the server's own timeouts hold.
func allow(w http.ResponseWriter, d time.Duration) {
	var deadline time.Time
	if d > 0 {
		deadline = time.Now().Add(d)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(deadline) // not supported: see above
}
