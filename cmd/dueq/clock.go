package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"
)

// clockReads is how many readings [clockOffset] takes.
const clockReads = 5

// clockOffset is how far the clock of the Redis server that has key is ahead of
// this machine's, for the server's clock alone decides what is due. The server
// read it at some moment between call and reply, so the quickest of some readings
// bounds the offset best; of what is possible then the smallest is taken, and 0
// if it may be 0.
func clockOffset(ctx context.Context, rdb redis.UniversalClient, key string) (time.Duration, error) {
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		node, err := cluster.MasterForKey(ctx, key)
		if err != nil {
			return 0, fmt.Errorf("find cluster node: %w", err)
		}
		rdb = node
	}
	var low, high time.Duration
	quickest := time.Duration(math.MaxInt64)
	for range clockReads {
		before := time.Now()
		at, err := rdb.Time(ctx).Result()
		if err != nil {
			return 0, fmt.Errorf("read the server's clock: %w", err)
		}
		if took := time.Since(before); took < quickest {
			quickest = took
			high = at.Sub(before) + time.Microsecond // TIME has whole microseconds
			low = at.Sub(before) - took
		}
	}
	if low > 0 {
		return low, nil
	}
	return min(high, 0), nil
}
