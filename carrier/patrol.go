package carrier

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/dueq-io/dueq/internal/script"
)

// patrolBatch is the most keys looked at in one command or pipeline.
const patrolBatch = 500

// patrol finds, at a slow interval, what signals were lost: ids in a ready list
// or a bucket that is believed empty, a head that moved.
func (c *Carrier) patrol(ctx context.Context) {
	tick := time.NewTicker(c.fallback)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := c.Patrol(ctx); err != nil && ctx.Err() == nil {
				c.log.Warn("cannot look for lost signals; will try again", zap.Error(err))
			}
		}
	}
}

// Patrol looks once at all lanes: one EXISTS for hundreds of keys that should
// not exist, and one ZRANGE for each bucket that should.
func (c *Carrier) Patrol(ctx context.Context) error {
	c.mu.Lock()
	lanes := make([]*Lane, 0, len(c.lanes))
	for _, l := range c.lanes {
		lanes = append(lanes, l)
	}
	c.mu.Unlock()
	if err := c.patrolEmpty(ctx, lanes); err != nil {
		return err
	}
	return c.patrolHeads(ctx, lanes)
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

// spot is a bucket with the head that it should have.
type spot struct {
	lane   *Lane
	bucket int
	head   int64
}

// patrolHeads refreshes the lanes whose heads are not what they should be.
func (c *Carrier) patrolHeads(ctx context.Context, lanes []*Lane) error {
	var spots []spot
	for _, l := range lanes {
		l.mu.Lock()
		for i, head := range l.heads {
			if head != 0 {
				spots = append(spots, spot{l, i, head})
			}
		}
		l.mu.Unlock()
	}
	for some := range slices.Chunk(spots, patrolBatch) {
		heads := make([]*redis.ZSliceCmd, len(some))
		_, err := c.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, s := range some {
				heads[i] = pipe.ZRangeWithScores(ctx, s.lane.key.Bucket(s.bucket), 0, 0)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("carrier: read heads: %w", err)
		}
		for i, s := range some {
			if h := heads[i].Val(); len(h) == 0 || int64(h[0].Score) != s.head {
				s.lane.Refresh()
			}
		}
	}
	return nil
}
