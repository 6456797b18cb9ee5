package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dueq-io/dueq/chaos/history"
)

const guardTick = 200 * time.Millisecond

// guard notices that a server has taken over from another, whoever is to blame.
type guard struct {
	mu   sync.Mutex
	mode string    // why, if it happens now: one of package history's
	last time.Time // when all was well
	ids  []string  // of the masters' data
}

// watchServers looks at the servers until ctx ends.
func (a *arena) watchServers(ctx context.Context) {
	for pause(ctx, guardTick) {
		a.look(ctx)
	}
}

// look looks at the servers, and records that one has taken over since all was
// well the last time.
func (a *arena) look(ctx context.Context) view {
	g := &a.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	began := time.Now()
	v := a.redis.look(ctx)
	if !v.whole {
		return v
	}
	if len(g.ids) > 0 && !slices.Equal(v.ids, g.ids) {
		r := history.Record{Op: a.history.Op(), Name: history.Takeover, Mode: g.mode}
		over := r
		r.Kind, r.At = history.Fault, g.last.UnixNano()
		over.Kind = history.Healed
		a.history.Write(r, over)
	}
	g.last, g.ids = began, v.ids
	return v
}

// expect says why servers will take over.
func (a *arena) expect(mode string) {
	a.guard.mu.Lock()
	defer a.guard.mu.Unlock()
	a.guard.mode = mode
}

// awaitWhole returns once all is well with the servers.
func (a *arena) awaitWhole(ctx context.Context) (v view, err error) {
	err = await(ctx, "all servers agree", func() bool {
		v = a.look(ctx)
		return v.whole
	})
	return v, err
}
