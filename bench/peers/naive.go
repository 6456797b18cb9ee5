package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	naiveBuckets = 3
	naiveTick    = 100 * time.Millisecond
	naiveBatch   = 1000
	naivePool    = "naive:pool"
	naiveBucket  = "naive:bucket:"
	naiveReady   = "naive:ready:"
)

// naive is a delay queue as it is often written, after Youzan's: a hash of
// bodies, zsets by due time, a list per topic, and nothing that survives a crash
// between two commands. A member is "topic:id", which saves looking the topic up.
type naive struct {
	rdb  *redis.Client
	pops *redis.Client      // whose connections wait in BLPOP
	stop context.CancelFunc // nil: consumes nothing
	wg   sync.WaitGroup

	mu  sync.Mutex
	err error // the first that a loop met
}

func openNaive(addr string) (queue, error) {
	return &naive{
		rdb:  redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: readTimeout}),
		pops: redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: readTimeout, PoolSize: handlers}),
	}, nil
}

func bucketOf(i uint64) string { return naiveBucket + strconv.FormatUint(i%naiveBuckets, 10) }

func (v *naive) publish(ctx context.Context, body []byte, due time.Time) error {
	r := rand.Uint64()
	id := fmt.Sprintf("%016x", r)
	pipe := v.rdb.Pipeline()
	pipe.HSet(ctx, naivePool, id, body)
	pipe.ZAdd(ctx, bucketOf(r), redis.Z{Score: float64(millis(due)), Member: load + ":" + id})
	_, err := pipe.Exec(ctx)
	return err
}

// millis rounds up: no event is early.
func millis(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

func (v *naive) consume(ctx context.Context, topics []string, handle func([]byte)) error {
	ctx, v.stop = context.WithCancel(ctx)
	for b := range uint64(naiveBuckets) {
		v.loop(ctx, func() error { return v.tick(ctx, bucketOf(b)) })
	}
	lists := make([]string, len(topics))
	for i, topic := range topics {
		lists[i] = naiveReady + topic
	}
	for range handlers {
		v.loop(ctx, func() error { return v.handleOne(ctx, lists, handle) })
	}
	return nil
}

// loop calls do until it fails, in a goroutine.
func (v *naive) loop(ctx context.Context, do func() error) {
	v.wg.Go(func() {
		for ctx.Err() == nil {
			err := do()
			if err == nil || ctx.Err() != nil {
				continue
			}
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.err == nil {
				v.err = err
			}
			return
		}
	})
}

// tick makes the due events of a bucket ready, and waits for the next time.
func (v *naive) tick(ctx context.Context, bucket string) error {
	next := time.After(naiveTick)
	for {
		members, err := v.rdb.ZRangeArgs(ctx, redis.ZRangeArgs{
			Key: bucket, ByScore: true, Start: "-inf", Stop: time.Now().UnixMilli(), Count: naiveBatch,
		}).Result()
		if err != nil {
			return err
		}
		if len(members) == 0 {
			break
		}
		ready, gone := make(map[string][]any), make([]any, len(members))
		for i, member := range members {
			topic, id, _ := strings.Cut(member, ":")
			ready[topic] = append(ready[topic], id)
			gone[i] = member
		}
		pipe := v.rdb.Pipeline()
		for topic, ids := range ready {
			pipe.RPush(ctx, naiveReady+topic, ids...)
		}
		pipe.ZRem(ctx, bucket, gone...)
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
	}
	select {
	case <-next:
	case <-ctx.Done():
	}
	return nil
}

func (v *naive) handleOne(ctx context.Context, lists []string, handle func([]byte)) error {
	popped, err := v.pops.BLPop(ctx, time.Minute, lists...).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return err
	}
	body, err := v.rdb.HGet(ctx, naivePool, popped[1]).Bytes()
	if err != nil {
		return err
	}
	handle(body)
	return v.rdb.HDel(ctx, naivePool, popped[1]).Err()
}

func (v *naive) pending(ctx context.Context) (int, error) {
	n, err := v.rdb.HLen(ctx, naivePool).Result()
	v.mu.Lock()
	defer v.mu.Unlock()
	return int(n), errors.Join(err, v.err)
}

func (v *naive) Close() error {
	if v.stop != nil {
		v.stop()
	}
	err := v.pops.Close() // ends the BLPOPs
	v.wg.Wait()
	return errors.Join(err, v.rdb.Close(), v.err)
}
