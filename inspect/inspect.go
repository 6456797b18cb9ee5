// Package inspect looks at what lies where in a lane, and mends what some other
// hand broke.
package inspect

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
	"github.com/dueq-io/dueq/pool"
)

// Place is where an event lies.
type Place struct {
	State    string // scheduled, ready, leased or dead; "" if there is no such event
	At       int64  // when it is due or died, milliseconds since 1970; 0 when ready or leased
	Record   string // as it lies in the pool
	Attempts string // its entry in the attempts hash, or ""
}

//go:embed get.lua
var getSource string

//go:embed stats.lua
var statsSource string

var (
	getScript   = script.New(getSource)
	statsScript = script.New(statsSource)
)

// Get finds an event of a lane.
func Get(ctx context.Context, rdb redis.UniversalClient, l *key.Lane, id string) (Place, error) {
	const tries = 4
	for try := 1; ; try++ {
		keys := []string{l.Pool, l.Ready, l.Meta, l.Attempts, l.Dead}
		counts := l.Counts()
		for _, home := range counts.Homes(id) {
			keys = append(keys, l.Bucket(home))
		}
		c := &script.Call{Script: getScript, Keys: keys, Args: []any{counts.Stored, id}}
		if err := script.Run(ctx, rdb, c); err != nil {
			return Place{}, fmt.Errorf("inspect: get id %q in topic %q: %w", id, l.Topic, err)
		}
		switch state := str(c.Reply[0]); state {
		case "missing":
			return Place{}, nil
		case "counts":
			if try == tries {
				return Place{}, fmt.Errorf("inspect: get id %q in topic %q: bucket counts change too fast", id, l.Topic)
			}
			l.Learn(str(c.Reply[1]))
		default:
			return Place{State: state, At: num(c.Reply[1]), Record: str(c.Reply[2]), Attempts: str(c.Reply[3])}, nil
		}
	}
}

// Counts are how many events of a lane lie where.
type Counts struct {
	Now       int64 // the server's clock, milliseconds since 1970
	Scheduled int64 // in buckets
	Ready     int64 // in ready, or held by sessions past their deadline
	Leased    int64 // held by sessions that live
	Dead      int64
	Bodies    int64 // in the pool: as many as there are places taken
	OldestDue int64 // due time of the oldest event that is due, not leased and not dead; 0: none
	Paused    bool
	Counters  map[string]int64 // since the lane began: published, delivered, acked, …
}

// Places are how many places are taken: ids in buckets, ready, held sets of
// sessions, and dead.
func (c *Counts) Places() int64 { return c.Scheduled + c.Ready + c.Leased + c.Dead }

// Count counts a lane's events, in one step.
func Count(ctx context.Context, rdb redis.UniversalClient, l *key.Lane) (Counts, error) {
	const tries = 20 // each but the last may find that a session came or went meanwhile, or a bucket count came
	for range tries {
		c, err := countCall(ctx, rdb, l)
		if err == nil {
			err = script.Run(ctx, rdb, c)
		}
		if err != nil {
			return Counts{}, fmt.Errorf("inspect: count topic %q: %w", l.Topic, err)
		}
		if c.Reply[0] != "again" {
			return parseCounts(c.Reply), nil
		}
	}
	return Counts{}, fmt.Errorf("inspect: count topic %q: sessions come and go too fast", l.Topic)
}

// countCall prepares a count of all buckets and sessions that there are now.
func countCall(ctx context.Context, rdb redis.UniversalClient, l *key.Lane) (*script.Call, error) {
	var buckets *redis.StringCmd
	var sessions *redis.StringSliceCmd
	_, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		buckets = pipe.HGet(ctx, l.Meta, "buckets")
		sessions = pipe.ZRange(ctx, l.Sessions, 0, -1)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	l.Learn(buckets.Val())
	keys := []string{l.Pool, l.Ready, l.Dead, l.Stats, l.Sessions, l.Meta}
	counts := l.Counts()
	args := []any{counts.Buckets(), counts.Stored}
	for i := range counts.Buckets() {
		keys = append(keys, l.Bucket(i))
	}
	for _, session := range sessions.Val() {
		keys, args = append(keys, l.Held(session)), append(args, session)
	}
	return &script.Call{Script: statsScript, Keys: keys, Args: args}, nil
}

func parseCounts(reply []any) Counts {
	out := Counts{
		Now: num(reply[0]), Scheduled: num(reply[1]), Ready: num(reply[2]), Leased: num(reply[3]), Dead: num(reply[4]),
		Bodies: num(reply[8]), Paused: num(reply[9]) == 1, Counters: make(map[string]int64),
	}
	if due := num(reply[5]); due != 0 && due <= out.Now {
		out.OldestDue = due
	}
	if first, err := pool.Decode(str(reply[6])); err == nil && (out.OldestDue == 0 || first.EffectTime < out.OldestDue) {
		out.OldestDue = first.EffectTime
	}
	counters, _ := reply[7].([]any)
	for pair := range slices.Chunk(counters, 2) {
		out.Counters[str(pair[0])] = num(pair[1])
	}
	return out
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

// num reads an integer, or one written as text; anything else is 0.
func num(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		f, _ := strconv.ParseFloat(v, 64)
		return int64(f)
	}
	return 0
}
