package inspect

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

//go:embed behind.lua
var behindSource string

var behindScript = script.New(behindSource)

// readyWalk takes one lane's ready list after the other, each in its order.
type readyWalk struct {
	rdb   redis.UniversalClient
	lanes []*key.Lane
	at    Mark // the last event taken
	slice int
	ids   []string // read and not taken yet
	over  bool     // the lane has no more than these
}

func newReadyWalk(rdb redis.UniversalClient, l Listing) *readyWalk {
	w := &readyWalk{rdb: rdb, lanes: l.Lanes, slice: min(l.Limit+1, maxStep)}
	if l.After != nil {
		w.at = *l.After
	}
	return w
}

func (w *readyWalk) next(ctx context.Context) (*Mark, error) {
	for len(w.ids) == 0 {
		if w.over {
			w.at, w.over = Mark{Lane: w.at.Lane + 1}, false
		}
		if w.at.Lane >= len(w.lanes) {
			return nil, nil
		}
		lane := w.lanes[w.at.Lane]
		if lane == nil {
			w.over = true
			continue
		}
		c := &script.Call{Script: behindScript, Keys: []string{lane.Ready}, Args: []any{w.at.ID, w.slice}}
		if err := script.Run(ctx, w.rdb, c); err != nil {
			return nil, fmt.Errorf("inspect: list topic %q: %w", lane.Topic, err)
		}
		for _, id := range c.Reply {
			w.ids = append(w.ids, str(id))
		}
		w.over = len(w.ids) < w.slice
	}
	w.at.ID = w.ids[0]
	w.ids = w.ids[1:]
	mark := w.at
	return &mark, nil
}
