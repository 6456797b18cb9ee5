package carrier

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/dueq-io/dueq/readyqueue"
)

// trimEvery is after about how many fallback intervals dead events are looked at.
const trimEvery = 20

// retain forgets, at a slow interval, the dead events that are not to be kept.
// Any number of processes may: they spread their looks at random.
func (c *Carrier) retain(ctx context.Context) {
	interval := trimEvery * c.fallback
	timer := time.NewTimer(rand.N(interval))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			if err := c.Trim(ctx); err != nil && ctx.Err() == nil {
				c.log.Warn("cannot trim the dead; will try again", zap.Error(err))
			}
			timer.Reset(interval/2 + rand.N(interval))
		}
	}
}

// Trim looks once at the dead of all lanes, and forgets those that are not to be
// kept.
func (c *Carrier) Trim(ctx context.Context) error {
	for some := range slices.Chunk(c.all(), patrolBatch) {
		dead := make([]*redis.IntCmd, len(some))
		_, err := c.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, l := range some {
				dead[i] = pipe.ZCard(ctx, l.key.Dead)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("carrier: count the dead: %w", err)
		}
		for i, l := range some {
			if dead[i].Val() == 0 {
				continue
			}
			if err := c.trim(ctx, l); err != nil {
				return fmt.Errorf("carrier: %w", err)
			}
		}
	}
	return nil
}

// trim trims one lane, step by step.
func (c *Carrier) trim(ctx context.Context, l *Lane) (err error) {
	var sum readyqueue.Trimmed
	for {
		var t readyqueue.Trimmed
		if t, err = readyqueue.Trim(ctx, c.rdb, l.key, c.retention); err != nil {
			break
		}
		sum.Old += t.Old
		sum.Excess += t.Excess
		if t.Old+t.Excess < readyqueue.MaxBatch {
			break
		}
	}
	if sum.Old+sum.Excess > 0 {
		l.metrics.Dropped.Add(int64(sum.Old + sum.Excess))
		c.log.Warn("dead events were dropped",
			zap.String("topic", l.key.Topic), zap.Int("too_old", sum.Old), zap.Int("too_many", sum.Excess),
			zap.Duration("retention", c.retention.Age), zap.Int("limit", c.retention.Limit))
	}
	return err
}
