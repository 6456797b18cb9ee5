// Package readyqueue says who has a due event now: it claims, settles (ack,
// retry, bury, release) and expires leases.
package readyqueue

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

const (
	// MaxBatch is the most events in one call.
	MaxBatch = 500
	// maxBytes is how many bytes of records one claim returns, or at most 64
	// records more.
	maxBytes = 4 << 20
)

// ErrLost says that a session's leases in a lane were taken away: it was silent
// for too long.
var ErrLost = errors.New("lease lost")

// Lease is one claimed event.
type Lease struct {
	ID       string
	Record   string // as it lies in the pool
	Missing  bool   // there is no record: some other hand removed it
	Attempts Attempts
}

// Head is when a bucket's earliest event is due.
type Head struct {
	Bucket int
	Due    int64 // milliseconds since 1970
	Empty  bool  // there is none
}

// Claim asks for due events.
type Claim struct {
	Session   string
	Lease     time.Duration
	Holds     bool  // the session believes that it holds events of the lane
	Extend    bool  // push the session's deadline on: it was not for a while
	Check     bool  // see whether other bucket counts were registered
	Limit     int   // most events to claim; 0 carries what is due to ready instead
	HighWater int   // most ids in ready
	Due       []int // the buckets that may hold due events
}

// Claimed is what a claim found.
type Claimed struct {
	Now    int64  // the server's clock, microseconds since 1970
	Left   int    // ids left in ready
	Heads  []Head // of the buckets asked for
	Leases []Lease
	Paused bool // nothing is given out
}

//go:embed claim.lua
var claimSource string

var claimScript = script.New(claimSource)

// Run claims events of a lane. Its errors are [ErrLost], or why the call
// failed; after a call whose reply was lost the session may hold events it does
// not know of: [Extend] tells how many.
func (c Claim) Run(ctx context.Context, rdb redis.UniversalClient, l *key.Lane) (Claimed, error) {
	const tries = 4
	for try := 1; ; try++ {
		counts := l.Counts()
		call := c.call(l, counts)
		if err := script.Run(ctx, rdb, call); err != nil {
			return Claimed{}, fmt.Errorf("readyqueue: claim in topic %q: %w", l.Topic, err)
		}
		switch call.Reply[0] {
		case "ok":
			claimed := c.parse(call.Reply)
			if counts.Stored != counts.Wanted && c.Limit > 0 && !claimed.Paused {
				l.Learn(counts.Wanted)
			}
			return claimed, nil
		case "lost":
			return Claimed{}, fmt.Errorf("readyqueue: claim in topic %q: %w", l.Topic, ErrLost)
		}
		if stored, ok := call.Reply[1].(string); ok && try < tries {
			l.Learn(stored)
			continue
		}
		return Claimed{}, fmt.Errorf("readyqueue: claim in topic %q: bucket counts change too fast (Redis has %v)", l.Topic, call.Reply[1])
	}
}

func (c Claim) call(l *key.Lane, counts *key.Counts) *script.Call {
	keys := append(make([]string, 0, 9+len(c.Due)),
		l.Ready, l.Bell, l.Pool, l.Held(c.Session), l.Sessions, l.Attempts, l.Again, l.Meta, l.Stats)
	for _, i := range c.Due {
		keys = append(keys, l.Bucket(i))
	}
	known := "*"
	if c.Check || counts.Stored != counts.Wanted {
		known = counts.Stored
	}
	return &script.Call{Script: claimScript, Keys: keys, Args: []any{
		known, min(c.Limit, MaxBatch), MaxBatch, c.HighWater, c.Session, c.Lease.Milliseconds(), flag(c.Holds), l.Alarm, maxBytes, flag(c.Extend), counts.Wanted,
	}}
}

// parse reads {'ok', now, left, heads, ids, records, attempts entries, paused}.
func (c Claim) parse(reply []any) Claimed {
	var out Claimed
	out.Now, _ = reply[1].(int64)
	left, _ := reply[2].(int64)
	out.Left = int(left)
	heads, _ := reply[3].([]any)
	out.Heads = make([]Head, min(len(heads), len(c.Due)))
	for i := range out.Heads {
		out.Heads[i].Bucket = c.Due[i]
		out.Heads[i].Due, out.Heads[i].Empty = score(heads[i])
	}
	ids, _ := reply[4].([]any)
	records, _ := reply[5].([]any)
	states, _ := reply[6].([]any)
	out.Paused = reply[7] == int64(1)
	out.Leases = make([]Lease, len(ids))
	for i := range ids {
		lease := &out.Leases[i]
		lease.ID, _ = ids[i].(string)
		if i < len(records) {
			lease.Record, lease.Missing = text(records[i])
		} else { // a trailing nil does not come through
			lease.Missing = true
		}
		if i < len(states) {
			if entry, none := text(states[i]); !none {
				lease.Attempts = ParseAttempts(entry)
			}
		}
	}
	return out
}

// score reads a head's due time. Whatever some other hand has put there, it is at
// least 1, for 0 means "none" elsewhere, and no more than a float64 can tell
// from its neighbours.
func score(v any) (due int64, none bool) {
	text, _ := v.(string)
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, true
	case f >= 1:
		return int64(min(f, 1<<53)), false
	}
	return 1, false
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return ""
}

func text(v any) (s string, missing bool) {
	s, ok := v.(string)
	return s, !ok
}
