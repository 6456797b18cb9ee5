// Package dashboard shows a queue in a browser, and lets people act on it.
//
// Its pages are rendered here and work without JavaScript; with it they stay up
// to date by themselves. All links are relative, so that the handler may be
// mounted under any prefix.
package dashboard

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/access"
)

// Options say how a dashboard behaves. The zero value is good.
type Options struct {
	// Tokens say who may do what.
	// Defaults to nil: whoever reaches the dashboard may do everything.
	Tokens *access.Tokens

	// Done ends the streams that keep open pages up to date. Close it before
	// [http.Server.Shutdown], which would wait for them.
	// Defaults to nil: they end with their pages.
	Done <-chan struct{}

	// Ephemeral says that this queue's Redis keeps nothing, so that every page can
	// tell.
	// Defaults to false.
	Ephemeral bool

	// Every is how often an open page is brought up to date.
	// Defaults to 2s.
	Every time.Duration

	// Streams is the most pages that are kept up to date at once.
	// Defaults to 100.
	Streams int
}

func (o Options) withDefaults() Options {
	if o.Tokens == nil {
		o.Tokens = &access.Tokens{}
	}
	if o.Every <= 0 {
		o.Every = 2 * time.Second
	}
	if o.Streams <= 0 {
		o.Streams = 100
	}
	return o
}

type dashboard struct {
	q       *dueq.Queue
	opts    Options
	sampler *sampler
	streams atomic.Int64 // that are open

	checking sync.Mutex // held by the check that runs
}

// New is a dashboard for a queue. Who serves it keeps other sites' pages away from
// it, as [http.CrossOriginProtection] does.
func New(q *dueq.Queue, opts Options) http.Handler {
	opts = opts.withDefaults()
	d := &dashboard{q: q, opts: opts, sampler: newSampler(q, opts.Every)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", d.page(access.Read, d.topics))
	mux.HandleFunc("GET /topic", d.page(access.Read, d.topic))
	mux.HandleFunc("GET /event", d.page(access.Read, d.event))
	mux.HandleFunc("GET /body", d.body)
	mux.HandleFunc("GET /sessions", d.page(access.Read, d.sessions))
	mux.HandleFunc("GET /check", d.page(access.Read, d.check))
	mux.HandleFunc("POST /check", d.page(access.Read, d.runCheck))
	mux.HandleFunc("GET /confirm", d.page(access.Full, d.confirm))
	mux.HandleFunc("GET /login", d.page(access.None, d.login))
	mux.HandleFunc("POST /login", d.logIn)
	mux.HandleFunc("POST /logout", d.logOut)
	for name, do := range map[string]action{
		"fire": d.fire, "reschedule": d.reschedule, "cancel": d.cancel,
		"requeue": d.requeue, "purge": d.purge, "pause": d.pause, "resume": d.resume,
	} {
		mux.HandleFunc("POST /"+name, d.act(do))
	}
	mux.HandleFunc("POST /repair", d.page(access.Full, d.repair))
	mux.HandleFunc("GET /static/{name}", static)
	mux.HandleFunc("/", d.nowhere)
	return withHeaders(mux)
}

// withHeaders forbids everything that these pages do not need.
func withHeaders(next http.Handler) http.Handler {
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		// Not no-referrer: it would make browsers send forms with "Origin: null".
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		next.ServeHTTP(w, r)
	})
}
