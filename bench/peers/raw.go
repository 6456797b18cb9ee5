package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/bench/internal/measure"
)

const (
	rawPool = "{raw}:pool"
	rawDue  = "{raw}:due"
	// rawBatch is how many events one pipeline carries, and rawConns how many
	// pipelines are on their way at a time.
	rawBatch, rawConns = 1000, 2
)

// raw is the least that a queue can do with Redis: a hash of bodies and a zset of
// ids by due time, without scripts, checks or guarantees.
type raw struct {
	rdb  *redis.Client
	stop context.CancelFunc // nil: consumes nothing
	wg   sync.WaitGroup
	err  error // of the consumer, once it has ended
}

func openRaw(addr string) (queue, error) {
	return &raw{rdb: redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: readTimeout})}, nil
}

func rawID() string { return fmt.Sprintf("%016x", rand.Uint64()) }

func (w *raw) publish(ctx context.Context, body []byte, due time.Time) error {
	id := rawID()
	return w.store(ctx, []any{id, body}, redis.Z{Score: float64(millis(due)), Member: id})
}

func (w *raw) store(ctx context.Context, fields []any, members ...redis.Z) error {
	pipe := w.rdb.Pipeline()
	pipe.HSet(ctx, rawPool, fields...)
	pipe.ZAdd(ctx, rawDue, members...)
	_, err := pipe.Exec(ctx)
	return err
}

func (w *raw) fill(ctx context.Context, n int, at measure.Schedule) error {
	return measure.Spread(ctx, (n+rawBatch-1)/rawBatch, rawConns, func(ctx context.Context, b int) error {
		var fields []any
		var members []redis.Z
		for i := b * rawBatch; i < min((b+1)*rawBatch, n); i++ {
			due, id := at(i), rawID()
			fields = append(fields, id, measure.Body(i, due))
			members = append(members, redis.Z{Score: float64(millis(due)), Member: id})
		}
		return w.store(ctx, fields, members...)
	})
}

func (w *raw) consume(ctx context.Context, _ []string, handle func([]byte)) error {
	ctx, w.stop = context.WithCancel(ctx)
	w.wg.Go(func() {
		for ctx.Err() == nil && w.err == nil {
			n, err := w.take(ctx, handle)
			if n == 0 && err == nil {
				err = measure.Pause(ctx, time.Millisecond)
			}
			if ctx.Err() == nil {
				w.err = err
			}
		}
	})
	return nil
}

// take hands the next due events over and forgets them.
func (w *raw) take(ctx context.Context, handle func([]byte)) (int, error) {
	ids, err := w.rdb.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: rawDue, ByScore: true, Start: "-inf", Stop: time.Now().UnixMilli(), Count: rawBatch,
	}).Result()
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	pipe := w.rdb.Pipeline()
	pipe.ZRemRangeByRank(ctx, rawDue, 0, int64(len(ids)-1))
	bodies := pipe.HMGet(ctx, rawPool, ids...)
	pipe.HDel(ctx, rawPool, ids...)
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, err
	}
	for _, body := range bodies.Val() {
		text, _ := body.(string) // nil: a body that is gone, which no intake takes
		handle([]byte(text))
	}
	return len(ids), nil
}

func (w *raw) pending(ctx context.Context) (int, error) {
	n, err := w.rdb.HLen(ctx, rawPool).Result()
	return int(n), err
}

func (w *raw) Close() error {
	if w.stop != nil {
		w.stop()
	}
	w.wg.Wait()
	if w.err != nil {
		return w.err
	}
	return w.rdb.Close()
}
