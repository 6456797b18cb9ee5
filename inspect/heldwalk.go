package inspect

import (
	"context"
	_ "embed"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

//go:embed scan.lua
var scanSource string

var scanScript = script.New(scanSource)

// heldWalk takes what sessions hold: one lane after the other, of each the sessions
// by name, of each its events by id. So that a page's cost is bounded, the events of
// a session that holds more than maxLooked come in the order of the set's hash table.
type heldWalk struct {
	rdb     redis.UniversalClient
	lanes   []*key.Lane
	after   *Mark // where the last listing ended; nil: before the lane
	lane    int
	open    bool      // holders is what is left of the lane
	holders []*holder // by name
	slice   int
	marks   []*Mark // read and not taken yet
}

// holder is a session of which not all has been read.
type holder struct {
	name  string
	held  int64 // events
	after *Mark // the last event listed, of a set or chain that has more; nil: of a new one
	from  int64 // the SSCAN cursor from which to go on, if chained says so
}

// chained reports whether the session's events come in the hash table's order. It
// stays what it was on the page before.
func (h *holder) chained() bool {
	if h.after != nil {
		return h.after.Scan != 0 || h.after.End != 0
	}
	return h.from != 0 || h.held > maxLooked
}

func newHeldWalk(rdb redis.UniversalClient, l Listing) *heldWalk {
	w := &heldWalk{rdb: rdb, lanes: l.Lanes, after: l.After, slice: min(l.Limit+minSlice, maxStep)}
	if l.After != nil {
		w.lane = l.After.Lane
	}
	return w
}

func (w *heldWalk) next(ctx context.Context) (*Mark, error) {
	for len(w.marks) == 0 {
		if w.lane >= len(w.lanes) {
			return nil, nil
		}
		if err := w.fill(ctx, w.lanes[w.lane]); err != nil {
			return nil, fmt.Errorf("inspect: list topic %q: %w", w.lanes[w.lane].Topic, err)
		}
	}
	m := w.marks[0]
	w.marks = w.marks[1:]
	return m, nil
}

// fill reads some of what a lane's sessions hold, or goes on to the next lane.
func (w *heldWalk) fill(ctx context.Context, lane *key.Lane) error {
	if lane != nil && !w.open {
		if err := w.enter(ctx, lane); err != nil {
			return err
		}
	}
	if len(w.holders) == 0 {
		w.lane, w.open, w.after = w.lane+1, false, nil
		return nil
	}
	if w.holders[0].chained() {
		return w.readChains(ctx, lane, w.holders[0])
	}
	some, held := 1, w.holders[0].held
	for some < len(w.holders) && held+w.holders[some].held <= maxStep {
		held += w.holders[some].held
		some++
	}
	return w.readSets(ctx, lane, some)
}

// enter finds the lane's sessions that hold something, from the one on at which the
// last listing ended.
func (w *heldWalk) enter(ctx context.Context, lane *key.Lane) error {
	names, err := w.rdb.ZRange(ctx, lane.Sessions, 0, -1).Result()
	if err != nil {
		return err
	}
	slices.Sort(names)
	if w.after != nil {
		at, _ := slices.BinarySearch(names, w.after.Session)
		names = names[at:]
	}
	for some := range slices.Chunk(names, maxStep) {
		counts := make([]*redis.IntCmd, len(some))
		_, err := w.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, name := range some {
				counts[i] = pipe.SCard(ctx, lane.Held(name))
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i, name := range some {
			h := &holder{name: name, held: counts[i].Val()}
			if w.after != nil && w.after.Session == name {
				h.from = w.after.Scan
				if h.from == 0 || h.from != w.after.End {
					h.after = w.after
				}
			}
			if h.held > 0 {
				w.holders = append(w.holders, h)
			}
		}
	}
	w.open = true
	return nil
}

// readSets reads all that the next sessions hold, in small steps.
func (w *heldWalk) readSets(ctx context.Context, lane *key.Lane, some int) error {
	ids := make(map[*holder][]string, some)
	cursors := make(map[*holder]uint64, some)
	for _, h := range w.holders[:some] {
		cursors[h] = 0
	}
	for len(cursors) > 0 {
		scans := make(map[*holder]*redis.ScanCmd, len(cursors))
		_, err := w.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for h, cursor := range cursors {
				scans[h] = pipe.SScan(ctx, lane.Held(h.name), cursor, "", maxStep)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for h, scan := range scans {
			found, cursor := scan.Val()
			ids[h] = append(ids[h], found...)
			if cursors[h] = cursor; cursor == 0 {
				delete(cursors, h)
			}
		}
	}
	for _, h := range w.holders[:some] {
		slices.Sort(ids[h])
		for _, id := range slices.Compact(ids[h]) { // SSCAN may repeat
			if h.after == nil || id > h.after.ID {
				w.marks = append(w.marks, &Mark{Lane: w.lane, Session: h.name, ID: id})
			}
		}
	}
	w.holders = w.holders[some:]
	return nil
}

// readChains reads the next chains of a session's set. One of which the last page
// has listed a part may be several chains by now, for the table has grown.
func (w *heldWalk) readChains(ctx context.Context, lane *key.Lane, h *holder) error {
	c := &script.Call{Script: scanScript, Keys: []string{lane.Held(h.name)}, Args: []any{h.from, w.slice}}
	if err := script.Run(ctx, w.rdb, c); err != nil {
		return err
	}
	var begun []string // of that one
	end := h.from
	for _, reply := range c.Reply {
		chain, _ := reply.([]any)
		var err error
		if end, err = strconv.ParseInt(str(chain[0]), 10, 64); err != nil {
			return err
		}
		ids := make([]string, len(chain)-1)
		for i := range ids {
			ids[i] = str(chain[i+1])
		}
		if h.after != nil && !behind(end, h.after.End) {
			if begun = append(begun, ids...); end != h.after.End {
				continue
			}
			ids = nil
		}
		if h.after != nil {
			w.takeChain(h, begun, h.after.End)
		}
		w.takeChain(h, ids, end)
	}
	if h.after != nil {
		w.takeChain(h, begun, end)
	}
	if end == 0 {
		w.holders = w.holders[1:]
	}
	return nil
}

// takeChain takes what is not listed yet of the chain that leads to a cursor.
func (w *heldWalk) takeChain(h *holder, ids []string, end int64) {
	slices.Sort(ids)
	if h.after != nil {
		ids = slices.DeleteFunc(ids, func(id string) bool { return id <= h.after.ID })
	}
	for i, id := range ids {
		m := &Mark{Lane: w.lane, Session: h.name, Scan: h.from, End: end, ID: id}
		if i == len(ids)-1 && end != 0 {
			m.Scan = end // behind it is the next chain, whatever becomes of this one
		}
		w.marks = append(w.marks, m)
	}
	h.from, h.after = end, nil
}

// behind reports whether one SSCAN cursor lies behind another: their order is that
// of their bits reversed, and 0 is the end.
func behind(a, b int64) bool {
	if a == 0 || b == 0 {
		return a == 0 && b != 0
	}
	return bits.Reverse64(uint64(a)) > bits.Reverse64(uint64(b))
}
