package inspect

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

const (
	maxLooked = 5000    // most ids that one page looks at
	peekBytes = 1 << 20 // of records, after which one look at them ends
)

// Listing asks for some of the events of lanes that are in one state.
type Listing struct {
	State   string      // scheduled, ready, leased or dead
	Lanes   []*key.Lane // in the order in which events of one time are listed; nil where there is none
	After   *Mark       // where the last listing ended; nil: from the beginning
	Limit   int         // most events, at most 500
	Preview int         // most bytes of each body

	Prefix string // only ids that begin with it
	Error  string // only events whose last error contains it
	Since  int64  // only what is due, or died, at this time (ms) or later; 0: at any time
	Until  int64  // only what is due, or died, before this time (ms); 0: at any time
}

// Mark is an event's place in the order of a listing.
type Mark struct {
	At     string // when it is due or died, as Redis writes it; "" in states without times
	Lane   int    // index in Lanes
	Bucket int
	ID     string

	// Of what is leased: who holds it, and of who holds very much, the SSCAN cursors
	// that lead to and behind the event's place. If they are equal, it is behind it.
	Session   string
	Scan, End int64
}

// Listed is an event of a listing.
type Listed struct {
	Place // its record only with the beginning of the body
	Lane  *key.Lane
	ID    string
	Size  int // bytes of the whole record
}

//go:embed peek.lua
var peekSource string

var peekScript = script.New(peekSource)

// walk finds the events of a listing in order.
type walk interface {
	// next is the next event, or nil.
	next(ctx context.Context) (*Mark, error)
}

// Run lists events: what is scheduled by due time, what is dead with the newest
// death first, what is ready in each lane's order, what is leased by lane, session
// and id (see [heldWalk]). It looks at some thousands of ids at most, so it may find
// less than the limit although there are more: next, unless nil, is where to go on.
// Events that move meanwhile may be missed, or listed twice.
func (l Listing) Run(ctx context.Context, rdb redis.UniversalClient) (found []Listed, next *Mark, err error) {
	w, err := l.walk(ctx, rdb)
	if err != nil {
		return nil, nil, err
	}
	next = l.After
	for looked := 0; ; {
		var some []*Mark
		for len(found)+len(some) < l.Limit && looked < maxLooked {
			m, err := w.next(ctx)
			if err != nil {
				return nil, nil, err
			}
			if m == nil {
				more, err := l.peek(ctx, rdb, some)
				return append(found, more...), nil, err
			}
			looked++
			next = m
			if strings.HasPrefix(m.ID, l.Prefix) {
				some = append(some, m)
			}
		}
		if len(some) == 0 {
			break
		}
		more, err := l.peek(ctx, rdb, some)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, more...)
	}
	if m, err := w.next(ctx); m == nil {
		return found, nil, err
	}
	return found, next, nil
}

func (l Listing) walk(ctx context.Context, rdb redis.UniversalClient) (walk, error) {
	switch l.State {
	case "ready":
		return newReadyWalk(rdb, l), nil
	case "leased":
		return newHeldWalk(rdb, l), nil
	}
	return newSortedWalk(ctx, rdb, l)
}

// peek reads the events at the given places, without those that are gone by now
// or have another error.
func (l Listing) peek(ctx context.Context, rdb redis.UniversalClient, marks []*Mark) ([]Listed, error) {
	found := make([]*Listed, len(marks))
	rest := make(map[int][]int) // indexes of marks by lane
	for i, m := range marks {
		rest[m.Lane] = append(rest[m.Lane], i)
	}
	for len(rest) > 0 {
		var lanes []int
		var calls []*script.Call
		for lane, indexes := range rest {
			args := []any{l.Preview, l.Error, peekBytes}
			for _, i := range indexes {
				args = append(args, marks[i].ID)
			}
			keys := []string{l.Lanes[lane].Pool, l.Lanes[lane].Attempts}
			lanes, calls = append(lanes, lane), append(calls, &script.Call{Script: peekScript, Keys: keys, Args: args})
		}
		script.RunAll(ctx, rdb, calls)
		for c, lane := range lanes {
			if err := calls[c].Err; err != nil {
				return nil, fmt.Errorf("inspect: list topic %q: %w", l.Lanes[lane].Topic, err)
			}
			indexes, reply := rest[lane], calls[c].Reply
			for ; len(reply) > 4; reply = reply[4:] {
				i := indexes[num(reply[1])-1]
				found[i] = l.listed(marks[i], str(reply[2]), num(reply[3]), str(reply[4]))
			}
			if indexes = indexes[num(calls[c].Reply[0]):]; len(indexes) > 0 {
				rest[lane] = indexes
			} else {
				delete(rest, lane)
			}
		}
	}
	var list []Listed
	for _, e := range found {
		if e != nil {
			list = append(list, *e)
		}
	}
	return list, nil
}

func (l Listing) listed(m *Mark, record string, size int64, attempts string) *Listed {
	return &Listed{
		Place: Place{State: l.State, At: num(m.At), Record: record, Attempts: attempts},
		Lane:  l.Lanes[m.Lane], ID: m.ID, Size: int(size),
	}
}
