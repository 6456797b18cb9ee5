package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

const (
	// inFlight is how many requests are counted at a time. Publishes from many
	// goroutines travel together.
	inFlight = 64
	// lease is how long the events of a process that was killed stay with it.
	lease = 2 * time.Second
)

// lines is a bitmap of the lines that are counted: 12 MB for 100 million.
type lines []byte

// has reports whether a line is counted. SETBIT fills bytes from the top.
func (l lines) has(line int) bool {
	return line/8 < len(l) && l[line/8]&(0x80>>(line%8)) != 0
}

func (l lines) len() int {
	n := 0
	for _, b := range l {
		n += bits.OnesCount8(b)
	}
	return n
}

// resume prepares a replay and returns the lines that were counted before. If
// there are none, a new run begins.
func (c *counter) resume(ctx context.Context) (lines, error) {
	counted, err := c.rdb.Get(ctx, c.counted).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, c.store.clear(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("read which lines are counted: %w", err)
	}
	return counted, c.catchUp(ctx)
}

// replay counts all requests of the log but those of the lines given, at most
// pace in a second.
func (c *counter) replay(ctx context.Context, log io.Reader, counted lines, pace rate.Limit) error {
	limiter := rate.NewLimiter(pace, 1)
	views, ctx := errgroup.WithContext(ctx)
	views.SetLimit(inFlight)
	err := eachLine(log, func(line int, path string, ok bool) error {
		if !ok || counted.has(line) {
			return nil
		}
		if err := limiter.Wait(ctx); err != nil {
			return err
		}
		views.Go(func() error { return c.view(ctx, line, path) })
		return nil
	})
	return cmp.Or(views.Wait(), err)
}

// drain waits until the queue holds no event of the log, and returns the totals
// in the database and how many writes made them.
func (c *counter) drain(ctx context.Context, want map[string]int) (totals map[string]int, writes int, err error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	busy := time.Now()
	for {
		stats, err := c.queue.Stats(ctx, c.topic)
		if err != nil {
			return nil, 0, err
		}
		if stats.Scheduled+stats.Ready+stats.Leased > 0 {
			busy = time.Now()
		} else {
			totals, writes, err = c.store.totals(ctx)
			// Stats may miss an event that changes hands while it counts. So it is
			// over when the totals are right, or nothing has moved for long.
			if err != nil || maps.Equal(totals, want) || time.Since(busy) > 2*lease {
				return totals, writes, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-tick.C:
		}
	}
}
