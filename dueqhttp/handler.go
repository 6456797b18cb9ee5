// Package dueqhttp serves a queue over HTTP: a JSON API under /v1, a dashboard at
// /, health checks and metrics. It is what `dueq serve` serves, and a handler for
// servers of your own:
//
//	h, err := dueqhttp.New(q, dueqhttp.Options{Tokens: []string{token}})
//	mux.Handle("/dueq/", http.StripPrefix("/dueq", h))
package dueqhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/access"
	"github.com/dueq-io/dueq/dueqhttp/internal/api"
	"github.com/dueq-io/dueq/dueqhttp/internal/dashboard"
	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
)

// Options say how a [Handler] behaves. The zero value is good for a handler that
// is reached by nobody else.
type Options struct {
	// Tokens are bearer tokens that give full access, each of 16 to 1,024 letters,
	// digits and -._~+/ characters.
	// Defaults to nil: everyone has full access, unless there are ReadTokens.
	Tokens []string

	// ReadTokens are bearer tokens with which one may look at everything, bodies
	// included, and change nothing.
	// Defaults to nil.
	ReadTokens []string

	// Hosts are the names, without a port, by which requests may call the service.
	// A service without tokens needs them: a web page can point a name of its own
	// at this machine's address. Health checks go by any name.
	// Defaults to nil: any.
	Hosts []string

	// MaxBody is the largest event body that the API takes, in bytes. The queue's
	// own MaxBody holds as well.
	// Defaults to 1 MiB.
	MaxBody int

	// Push are the topics that are forwarded to URLs, for the API to list. Who
	// forwards them is the caller, with [Forward].
	// Defaults to nil: none.
	Push []Push

	// Metrics is served at /metrics to those who may read.
	// Defaults to nil: there is no such path.
	Metrics http.Handler

	// Ephemeral says that this queue's Redis keeps nothing, so that the service
	// can tell.
	// Defaults to false.
	Ephemeral bool

	// Logger gets one line for each request, without bodies and tokens, and what
	// goes wrong.
	// Defaults to nil: silent.
	Logger *zap.Logger
}

func (o Options) withDefaults() Options {
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

// Push is a topic that is forwarded to a URL.
type Push struct {
	Topic       string
	URL         string // shown without user, password, query and fragment; to those who may only read, as scheme and host
	Timeout     time.Duration
	Concurrency int
	Signed      bool
}

// list is what others may see of them.
func list(pushes []Push) []api.Push {
	var out []api.Push
	for _, p := range pushes {
		shown := api.Push{Topic: p.Topic, Concurrency: p.Concurrency, Timeout: p.Timeout.Seconds(), Signed: p.Signed}
		if u, err := url.Parse(p.URL); err == nil {
			shown.URL = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
		}
		out = append(out, shown)
	}
	return out
}

// Handler serves a queue over HTTP.
type Handler struct {
	q      *dueq.Queue
	opts   Options
	tokens *access.Tokens
	served http.Handler

	draining context.Context
	drain    context.CancelFunc
}

// New returns a handler that serves the queue, which stays the caller's to shut
// down. Its error says which option is wrong.
func New(q *dueq.Queue, opts Options) (*Handler, error) {
	if q == nil {
		return nil, errors.New("dueqhttp: the queue is nil")
	}
	opts = opts.withDefaults()
	if opts.MaxBody < 1 || opts.MaxBody > 256<<20 {
		return nil, fmt.Errorf("dueqhttp: option MaxBody is %d, not from 1 to %d", opts.MaxBody, 256<<20)
	}
	tokens, err := access.New(opts.Tokens, opts.ReadTokens)
	if err != nil {
		return nil, fmt.Errorf("dueqhttp: %w", err)
	}
	h := &Handler{q: q, opts: opts, tokens: tokens}
	h.draining, h.drain = context.WithCancel(context.Background())
	h.served = h.logged(h.recovered(timed(h.guarded(h.mux()))))
	return h, nil
}

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.served.ServeHTTP(w, r) }

// Drain makes /readyz fail from now on, and ends the claims that wait for events.
// Everything else is served as before. Call it before the queue's ShutDown.
func (h *Handler) Drain() { h.drain() }

// mux is what lies where.
func (h *Handler) mux() http.Handler {
	mux := http.NewServeMux()
	v1 := api.New(h.q, api.Options{
		Tokens: h.tokens, MaxBody: h.opts.MaxBody, Ephemeral: h.opts.Ephemeral,
		Push: list(h.opts.Push), Draining: h.draining, Logger: h.opts.Logger,
	})
	mux.Handle("/v1", v1)
	mux.Handle("/v1/", v1)
	get := func(path string, handler http.Handler) {
		mux.Handle("GET "+path, handler)
		mux.HandleFunc(path, getOnly)
	}
	get("/healthz", http.HandlerFunc(h.healthz))
	get("/readyz", http.HandlerFunc(h.readyz))
	if h.opts.Metrics != nil {
		get("/metrics", h.readers(h.opts.Metrics))
	}
	mux.Handle("/", dashboard.New(h.q, dashboard.Options{Tokens: h.tokens, Done: h.draining.Done(), Ephemeral: h.opts.Ephemeral}))
	return problem.Mux(mux)
}

// getOnly refuses what is not a GET: the dashboard, which gets the rest, does not
// know the path.
func getOnly(w http.ResponseWriter, r *http.Request) {
	p := problem.NoMethod.New("%.80s is not among GET, HEAD", r.Method)
	p.Allow = "GET, HEAD"
	p.Write(w)
}

// readers serves only those who may read.
func (h *Handler) readers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.tokens.Level(r) < access.Read {
			problem.Unauthorized.New("send a header: Authorization: Bearer TOKEN").Write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}
