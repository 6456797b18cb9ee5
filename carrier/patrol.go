package carrier

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/dueq-io/dueq/internal/script"
)

// patrolBatch is the most keys looked at in one command or pipeline.
const patrolBatch = 500

//go:embed clock.lua
var clockSource string

var clockScript = script.New(clockSource)

// patrol finds, at a slow interval, what signals were lost: ids in a ready list
// or a bucket that is believed empty, a head that moved, a clock that was set. It
// audits a lane now and then, too.
func (c *Carrier) patrol(ctx context.Context) {
	tick := time.NewTicker(c.fallback)
	defer tick.Stop()
	due := make(audits)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := c.Patrol(ctx); err != nil && ctx.Err() == nil {
				script.Reload(ctx, c.rdb)
				c.log.Warn("cannot look for lost signals; will try again", zap.Error(err))
			}
			if err := c.audit(ctx, due, time.Now()); err != nil && ctx.Err() == nil {
				c.log.Warn("cannot count events; will try again", zap.Error(err))
			}
		}
	}
}

// Patrol looks once at all lanes: one EXISTS for hundreds of keys that should
// not exist, one ZRANGE for each that should, and the time of each server.
func (c *Carrier) Patrol(ctx context.Context) error {
	lanes := c.all()
	if err := c.patrolEmpty(ctx, lanes); err != nil {
		return err
	}
	if err := c.patrolHeads(ctx, lanes); err != nil {
		return err
	}
	return c.patrolClocks(ctx, lanes)
}

// empties are the keys that should not exist if this process has missed nothing.
func (l *Lane) empties() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := []string{l.key.Ready}
	if l.session == 0 {
		keys = append(keys, l.key.Sessions)
	}
	for i, head := range l.heads {
		if head == 0 {
			keys = append(keys, l.key.Bucket(i))
		}
	}
	return keys
}

// patrolEmpty refreshes the lanes of which a key exists that should not.
func (c *Carrier) patrolEmpty(ctx context.Context, lanes []*Lane) error {
	single := script.Single(c.rdb)
	for len(lanes) > 0 {
		var keys []string
		n := 0
		for n < len(lanes) && len(keys) < patrolBatch && (single || n == 0) {
			keys = append(keys, lanes[n].empties()...)
			n++
		}
		exist, err := c.rdb.Exists(ctx, keys...).Result()
		if err != nil {
			return fmt.Errorf("carrier: look for lost signals: %w", err)
		}
		switch {
		case exist > 0 && n == 1:
			lanes[0].Refresh()
		case exist > 0: // somewhere among them: look at each half
			half := n / 2
			if err := c.patrolEmpty(ctx, lanes[:half]); err != nil {
				return err
			}
			if err := c.patrolEmpty(ctx, lanes[half:n]); err != nil {
				return err
			}
		}
		lanes = lanes[n:]
	}
	return nil
}

// spot is a bucket, or the sessions, with the head that it should have.
type spot struct {
	lane     *Lane
	key      string
	head     int64
	sessions bool
}

// missed reports whether this process has missed something, given what head is
// there. That sessions live longer than it knew is nothing to miss.
func (s *spot) missed(head []redis.Z) bool {
	if s.sessions {
		return len(head) > 0 && int64(head[0].Score) < s.head
	}
	return len(head) == 0 || int64(head[0].Score) != s.head
}

// patrolHeads refreshes the lanes whose heads are not what they should be.
func (c *Carrier) patrolHeads(ctx context.Context, lanes []*Lane) error {
	var spots []spot
	for _, l := range lanes {
		l.mu.Lock()
		for i, head := range l.heads {
			if head != 0 {
				spots = append(spots, spot{lane: l, key: l.key.Bucket(i), head: head})
			}
		}
		if l.session != 0 {
			spots = append(spots, spot{lane: l, key: l.key.Sessions, head: l.session, sessions: true})
		}
		l.mu.Unlock()
	}
	for some := range slices.Chunk(spots, patrolBatch) {
		heads := make([]*redis.ZSliceCmd, len(some))
		_, err := c.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, s := range some {
				heads[i] = pipe.ZRangeWithScores(ctx, s.key, 0, 0)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("carrier: read heads: %w", err)
		}
		for i, s := range some {
			if s.missed(heads[i].Val()) {
				s.lane.Refresh()
			}
		}
	}
	return nil
}

// patrolClocks reads the servers' clocks afresh: one may have been set, or ours
// have stood still while this machine slept.
func (c *Carrier) patrolClocks(ctx context.Context, lanes []*Lane) error {
	for len(lanes) > 0 {
		some := lanes[:min(len(lanes), patrolBatch)]
		asked := some
		if script.Single(c.rdb) {
			some, asked = lanes, lanes[:1] // one server, one clock
		}
		calls := make([]*script.Call, len(asked))
		for i, l := range asked {
			calls[i] = &script.Call{Script: clockScript, Keys: []string{l.key.Meta}}
		}
		script.RunAll(ctx, c.rdb, calls)
		for i, l := range some {
			call := calls[min(i, len(calls)-1)]
			if call.Err != nil {
				return fmt.Errorf("carrier: read the clock: %w", call.Err)
			}
			now, _ := call.Reply[0].(int64)
			l.sync(now)
		}
		lanes = lanes[len(some):]
	}
	return nil
}
