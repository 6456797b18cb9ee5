package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/bench/internal/measure"
)

// rawBatch is how many events one pipeline of the raw commands carries.
const rawBatch = 1000

// rawConns is how many pipelines are on their way at a time; more make the
// server no faster.
const rawConns = 2

// raw is the least that a queue can do with Redis: a hash of bodies and a zset
// of ids by due time, without scripts, checks or guarantees. It is what the
// figures of dueq are compared with.
type raw struct {
	rdb       *redis.Client
	pool, due string
}

func newRaw(r *rig) *raw {
	return &raw{rdb: r.rdb, pool: "{" + r.ns + ":raw}:pool", due: "{" + r.ns + ":raw}:due"}
}

// ids are n random ids of 16 characters.
func rawIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%016x", rand.Uint64())
	}
	return ids
}

// publish stores the events with the given ids, in variadic HSETs and ZADDs.
func (w *raw) publish(ctx context.Context, ids []string, batch int, at measure.Schedule) error {
	batches := (len(ids) + batch - 1) / batch
	return measure.Spread(ctx, batches, rawConns, func(ctx context.Context, b int) error {
		from := b * batch
		some := ids[from:min(from+batch, len(ids))]
		fields := make([]any, 0, 2*len(some))
		members := make([]redis.Z, 0, len(some))
		for i, id := range some {
			due := at(from + i)
			fields = append(fields, id, measure.Body(from+i, due))
			members = append(members, redis.Z{Score: float64(due.UnixMilli()), Member: id})
		}
		pipe := w.rdb.Pipeline()
		pipe.HSet(ctx, w.pool, fields...)
		pipe.ZAdd(ctx, w.due, members...)
		_, err := pipe.Exec(ctx)
		return err
	})
}

// take reads the next due ids.
func (w *raw) take(ctx context.Context, batch int) ([]string, error) {
	return w.rdb.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: w.due, ByScore: true, Start: "-inf", Stop: time.Now().UnixMilli(), Count: int64(batch),
	}).Result()
}

// drain takes all due events, their bodies too, and forgets them.
func (w *raw) drain(ctx context.Context) (n int, err error) {
	for {
		ids, err := w.take(ctx, rawBatch)
		if err != nil || len(ids) == 0 {
			return n, err
		}
		pipe := w.rdb.Pipeline()
		pipe.ZRemRangeByRank(ctx, w.due, 0, int64(len(ids)-1))
		bodies := pipe.HMGet(ctx, w.pool, ids...)
		pipe.HDel(ctx, w.pool, ids...)
		if _, err := pipe.Exec(ctx); err != nil {
			return n, err
		}
		n += len(bodies.Val())
	}
}

// carry takes all due ids out of the zset; their bodies stay.
func (w *raw) carry(ctx context.Context, batch int) (n int, err error) {
	for {
		ids, err := w.take(ctx, batch)
		if err != nil || len(ids) == 0 {
			return n, err
		}
		if err := w.rdb.ZRem(ctx, w.due, anys(ids)...).Err(); err != nil {
			return n, err
		}
		n += len(ids)
	}
}

// cancel forgets one event.
func (w *raw) cancel(ctx context.Context, id string) error {
	pipe := w.rdb.Pipeline()
	found := pipe.ZRem(ctx, w.due, id)
	pipe.HDel(ctx, w.pool, id)
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	if found.Val() != 1 {
		return errors.New("raw: no such event")
	}
	return nil
}

func anys(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}
