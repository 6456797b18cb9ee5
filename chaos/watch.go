package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dueq-io/dueq/chaos/history"
	"github.com/dueq-io/dueq/internal/conserve"
)

const checkPeriod = 2 * time.Second // between two looks at conservation

// watch looks at conservation again and again, and prints progress.
func (a *arena) watch(ctx context.Context, start time.Time) {
	shown := time.Now()
	for pause(ctx, checkPeriod) {
		live := a.conserve(ctx)
		if time.Since(shown) >= 10*time.Second {
			shown = time.Now()
			fmt.Fprintf(a.progress, "chaos: %v of %v, %d events in Redis\n", time.Since(start).Round(time.Second), a.duration, live)
		}
	}
}

// conserve looks at conservation once, and counts the events that are not dead:
// -1 if it could not.
func (a *arena) conserve(ctx context.Context) (live int64) {
	a.serverMu.Lock()
	defer a.serverMu.Unlock()
	masters := a.redis.nodes
	if a.shape != single {
		v := a.look(ctx)
		if !v.whole { // a server may take over without being asked to
			return -1
		}
		masters = v.masters
	}
	var breaches []string
	for _, m := range masters {
		n, some, err := conserve.Breaches(ctx, m.rdb, "{"+namespace+":*")
		if err != nil {
			if ctx.Err() == nil && a.shape == single {
				a.breach(err.Error())
			}
			return -1
		}
		live += n
		breaches = slices.Concat(breaches, some)
	}
	for _, b := range breaches {
		a.breach("conservation: " + b)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checks++
	return live
}

// feel watches the servers until ctx ends: whether they answer and, if they are
// several, who leads.
func (a *arena) feel(ctx context.Context) {
	var watchers sync.WaitGroup
	defer watchers.Wait()
	for _, node := range a.redis.nodes {
		watchers.Go(func() { a.feelNode(ctx, node) })
	}
	if a.shape != single {
		watchers.Go(func() { a.watchServers(ctx) })
	}
}

// feelNode records when a server was silent, whoever is to blame.
func (a *arena) feelNode(ctx context.Context, node *server) {
	for pause(ctx, stallTick) {
		if node.down.Load() {
			continue
		}
		start := time.Now()
		_ = node.rdb.Ping(ctx).Err()
		if silent := time.Since(start); silent > stallLimit && !node.down.Load() {
			a.history.Write(history.Record{Kind: history.Stalled, Delay: silent.Milliseconds()})
		}
	}
}
