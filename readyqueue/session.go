package readyqueue

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

// LostCause is noted with the attempt of an event whose session died.
const LostCause = "lease lost: its process was silent for too long"

//go:embed extend.lua
var extendSource string

//go:embed expire.lua
var expireSource string

var (
	extendScript = script.New(extendSource)
	expireScript = script.New(expireSource)
)

// Session is one session's hold on a lane.
type Session struct {
	Lane  *key.Lane
	Name  string
	Lease time.Duration

	Held int   // set by [Extend]: how many events it holds
	Err  error // set by [Extend]: nil, [ErrLost], or why the call failed
}

// Extend pushes the deadlines of sessions on, all in one round trip.
func Extend(ctx context.Context, rdb redis.UniversalClient, sessions []*Session) {
	calls := make([]*script.Call, len(sessions))
	for i, s := range sessions {
		calls[i] = &script.Call{
			Script: extendScript,
			Keys:   []string{s.Lane.Sessions, s.Lane.Held(s.Name)},
			Args:   []any{s.Name, s.Lease.Milliseconds(), s.Lane.Alarm},
		}
	}
	script.RunAll(ctx, rdb, calls)
	for i, s := range sessions {
		s.Err = nil
		held := int64(-1)
		if calls[i].Err != nil {
			s.Err = fmt.Errorf("readyqueue: extend in topic %q: %w", s.Lane.Topic, calls[i].Err)
		} else if held, _ = calls[i].Reply[0].(int64); held < 0 {
			s.Err = fmt.Errorf("readyqueue: extend in topic %q: %w", s.Lane.Topic, ErrLost)
		}
		s.Held = int(held)
	}
}

// HeldIDs are the ids a session holds, some of them twice. It reads them in steps:
// those whose leases end meanwhile may be among them or not.
func HeldIDs(ctx context.Context, rdb redis.UniversalClient, l *key.Lane, session string) (ids []string, err error) {
	for cursor := uint64(0); ; {
		step := script.Once(ctx, rdb, func(p redis.Pipeliner) *redis.ScanCmd {
			return p.SScan(ctx, l.Held(session), cursor, "", MaxBatch)
		})
		some, next, err := step.Result()
		if err != nil {
			return nil, fmt.Errorf("readyqueue: read what is held in topic %q: %w", l.Topic, err)
		}
		ids = append(ids, some...)
		if cursor = next; cursor == 0 {
			return ids, nil
		}
	}
}

// Expire gives the events of all sessions that are past their deadlines at
// about now (milliseconds since 1970; the server's own clock decides) back to
// ready, and returns the earliest deadline of those that live, or 0.
func Expire(ctx context.Context, rdb redis.UniversalClient, l *key.Lane, now int64) (next int64, err error) {
	for {
		first, err := script.Once(ctx, rdb, func(p redis.Pipeliner) *redis.ZSliceCmd {
			return p.ZRangeWithScores(ctx, l.Sessions, 0, 15)
		}).Result()
		if err != nil {
			return 0, fmt.Errorf("readyqueue: read sessions of topic %q: %w", l.Topic, err)
		}
		for _, s := range first {
			deadline := int64(s.Score)
			if deadline <= now {
				name, _ := s.Member.(string)
				if deadline, err = expireSession(ctx, rdb, l, name); err != nil {
					return 0, err
				}
			}
			if deadline > 0 {
				return deadline, nil
			}
		}
		if len(first) < 16 {
			return 0, nil
		}
	}
}

// expireSession takes one session's events away from it, in batches, and
// returns its deadline if it lives after all, or 0.
func expireSession(ctx context.Context, rdb redis.UniversalClient, l *key.Lane, name string) (int64, error) {
	taken := "!" + strings.TrimPrefix(name, "!")
	for {
		counts := l.Counts()
		keys := []string{l.Sessions, l.Held(name), l.Held(taken), l.Ready, l.Bell, l.Attempts, l.Again, l.Stats, l.Meta}
		for i := range counts.Buckets() {
			keys = append(keys, l.Bucket(i))
		}
		c := &script.Call{Script: expireScript, Keys: keys, Args: []any{name, taken, MaxBatch, l.Alarm, LostCause, counts.Stored}}
		if err := script.Run(ctx, rdb, c); err != nil {
			return 0, fmt.Errorf("readyqueue: expire session %s in topic %q: %w", name, l.Topic, err)
		}
		switch len(c.Reply) {
		case 1:
			deadline, _ := c.Reply[0].(int64)
			return deadline, nil
		case 2:
			stored, _ := c.Reply[1].(string)
			l.Learn(stored)
		default:
			if left, _ := c.Reply[2].(int64); left == 0 {
				return 0, nil
			}
			name = taken
		}
	}
}
