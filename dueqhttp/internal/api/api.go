// Package api is the JSON API of a queue, under /v1.
package api

import (
	"context"
	"net/http"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/access"
	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
)

// Options say how the API behaves. All must be given.
type Options struct {
	Tokens    *access.Tokens
	MaxBody   int             // bytes of an event's body
	Ephemeral bool            // Redis keeps nothing
	Draining  context.Context // ends when claims must not wait any longer
	Logger    *zap.Logger
}

// API serves /v1 and what is below.
type API struct {
	q    *dueq.Queue
	opts Options
}

// New returns the API of a queue.
func New(q *dueq.Queue, opts Options) *API { return &API{q: q, opts: opts} }

// ServeHTTP serves one request.
func (a *API) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	problem.NoRoute.New("not built yet").Write(w)
}
