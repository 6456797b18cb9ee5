package inspect

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

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

// heldWalk takes what sessions hold, by id and lane. There are no more than handlers
// run and consumers hold at a time, so it reads all ids first, in small steps.
type heldWalk struct{ marks []*Mark }

func (w *heldWalk) next(context.Context) (*Mark, error) {
	if len(w.marks) == 0 {
		return nil, nil
	}
	m := w.marks[0]
	w.marks = w.marks[1:]
	return m, nil
}

func newHeldWalk(ctx context.Context, rdb redis.UniversalClient, l Listing) (*heldWalk, error) {
	w := &heldWalk{}
	for i, lane := range l.Lanes {
		if lane == nil {
			continue
		}
		err := eachHeld(ctx, rdb, lane, func(id string) {
			m := &Mark{Lane: i, ID: id}
			if strings.HasPrefix(id, l.Prefix) && (l.After == nil || compareMarks(m, l.After) > 0) {
				w.marks = append(w.marks, m)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("inspect: list topic %q: %w", lane.Topic, err)
		}
	}
	slices.SortFunc(w.marks, compareMarks)
	w.marks = slices.CompactFunc(w.marks, func(a, b *Mark) bool { return compareMarks(a, b) == 0 }) // SSCAN may repeat
	return w, nil
}

func compareMarks(a, b *Mark) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Lane, b.Lane))
}

// eachHeld calls do with all ids that the lane's sessions hold, some of them
// twice.
func eachHeld(ctx context.Context, rdb redis.UniversalClient, lane *key.Lane, do func(id string)) error {
	sessions, err := rdb.ZRange(ctx, lane.Sessions, 0, -1).Result()
	if err != nil {
		return err
	}
	for some := range slices.Chunk(sessions, maxStep) {
		cursors := make(map[string]uint64, len(some))
		for _, s := range some {
			cursors[s] = 0
		}
		for len(cursors) > 0 {
			scans := make(map[string]*redis.ScanCmd, len(cursors))
			_, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for s, cursor := range cursors {
					scans[s] = pipe.SScan(ctx, lane.Held(s), cursor, "", maxStep)
				}
				return nil
			})
			if err != nil {
				return err
			}
			for s, scan := range scans {
				ids, cursor := scan.Val()
				for _, id := range ids {
					do(id)
				}
				if cursors[s] = cursor; cursor == 0 {
					delete(cursors, s)
				}
			}
		}
	}
	return nil
}
