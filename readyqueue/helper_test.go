package readyqueue_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/readyqueue"
)

// bench is a lane under test.
type bench struct {
	*testing.T
	env  *redistest.Env
	rdb  redis.UniversalClient
	lane *key.Lane
}

func newBench(t *testing.T, env *redistest.Env, buckets int) *bench {
	return &bench{t, env, env.Client, key.NewLane(env.Namespace, "a", 0, 1, buckets)}
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// record stores a record for an id.
func (b *bench) record(id string) {
	b.Helper()
	b.must(b.rdb.HSet(b.Context(), b.lane.Pool, id, "record of "+id).Err())
}

// ready puts events into ready.
func (b *bench) ready(ids ...string) {
	b.Helper()
	for _, id := range ids {
		b.record(id)
		b.must(b.rdb.RPush(b.Context(), b.lane.Ready, id).Err())
	}
}

// scheduled puts an event into a bucket, due so long ago.
func (b *bench) scheduled(id string, bucket int, ago time.Duration) {
	b.Helper()
	b.record(id)
	due := float64(time.Now().Add(-ago).UnixMilli())
	b.must(b.rdb.ZAdd(b.Context(), b.lane.Bucket(bucket), redis.Z{Score: due, Member: id}).Err())
}

// claim claims at most limit events for a session.
func (b *bench) claim(session string, limit int, due ...int) readyqueue.Claimed {
	b.Helper()
	c := readyqueue.Claim{Session: session, Lease: time.Hour, Extend: true, Limit: limit, HighWater: 1000, Due: due}
	got, err := c.Run(b.Context(), b.rdb, b.lane)
	b.must(err)
	return got
}

// settle ends one lease.
func (b *bench) settle(session string, s readyqueue.Settlement) error {
	b.Helper()
	readyqueue.Settle(b.Context(), b.rdb, []readyqueue.Settlements{{
		Lane: b.lane, Session: session, Items: []*readyqueue.Settlement{&s},
	}})
	return s.Err
}

// lapse puts a session's deadline into the past.
func (b *bench) lapse(session string) {
	b.Helper()
	b.must(b.rdb.ZAdd(b.Context(), b.lane.Sessions, redis.Z{Score: 1, Member: session}).Err())
}

func (b *bench) expire() (next int64) {
	b.Helper()
	next, err := readyqueue.Expire(b.Context(), b.rdb, b.lane, time.Now().UnixMilli())
	b.must(err)
	return next
}

// lies fails the test unless the ids lie exactly so.
func (b *bench) lies(where map[string][]string) {
	b.Helper()
	ctx := b.Context()
	for k, want := range where {
		var got []string
		var err error
		switch kind := b.rdb.Type(ctx, k).Val(); kind {
		case "list":
			got, err = b.rdb.LRange(ctx, k, 0, -1).Result()
		case "set":
			got, err = b.rdb.SMembers(ctx, k).Result()
			slices.Sort(got)
		case "zset":
			got, err = b.rdb.ZRange(ctx, k, 0, -1).Result()
		case "hash":
			got, err = b.rdb.HKeys(ctx, k).Result()
			slices.Sort(got)
		}
		b.must(err)
		if !slices.Equal(got, want) {
			b.Errorf("%s has %q, want %q", k, got, want)
		}
	}
}

func (b *bench) attempts(id string) string { return b.rdb.HGet(b.Context(), b.lane.Attempts, id).Val() }

func ids(leases []readyqueue.Lease) []string {
	var ids []string
	for _, l := range leases {
		ids = append(ids, l.ID)
	}
	return ids
}

func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%05d", i)
	}
	return ids
}

// commands is a hook that sees each single command.
type commands func(cmd redis.Cmder)

func (commands) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c(cmd)
		return next(ctx, cmd)
	}
}

func (commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
