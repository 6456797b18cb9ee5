package readyqueue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/readyqueue"
)

// dead puts events among the dead: the first died that long ago, each of the
// others a minute after the one before it.
func (b *bench) dead(ago time.Duration, ids ...string) {
	b.Helper()
	died := time.Now().Add(-ago)
	_, err := b.rdb.Pipelined(b.Context(), func(p redis.Pipeliner) error {
		for i, id := range ids {
			at := float64(died.Add(time.Duration(i) * time.Minute).UnixMilli())
			p.HSet(b.Context(), b.lane.Pool, id, "record of "+id)
			p.HSet(b.Context(), b.lane.Attempts, id, "3||why")
			p.ZAdd(b.Context(), b.lane.Dead, redis.Z{Score: at, Member: id})
		}
		return nil
	})
	b.must(err)
}

// trim trims once.
func (b *bench) trim(age time.Duration, limit int) readyqueue.Trimmed {
	b.Helper()
	got, err := readyqueue.Trim(b.Context(), b.rdb, b.lane, readyqueue.Retention{Age: age, Limit: limit})
	b.must(err)
	return got
}

func TestTrim(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		const years = 100 * 365 * 24 * time.Hour
		b := newBench(t, env, 1)
		all := numbered(10)
		b.dead(time.Hour, all...) // 60, 59, … 51 minutes ago
		b.scheduled("other", 0, time.Hour)
		for _, c := range []struct {
			age   time.Duration
			limit int
			want  readyqueue.Trimmed
			left  int
		}{
			{years, 10, readyqueue.Trimmed{}, 10},
			{57*time.Minute + 30*time.Second, 10, readyqueue.Trimmed{Old: 3}, 7},
			{57*time.Minute + 30*time.Second, 7, readyqueue.Trimmed{}, 7},
			{years, 6, readyqueue.Trimmed{Excess: 1}, 6},
			{55*time.Minute + 30*time.Second, 3, readyqueue.Trimmed{Old: 1, Excess: 2}, 3},
			{time.Second, 3, readyqueue.Trimmed{Old: 3}, 0},
			{time.Second, 1, readyqueue.Trimmed{}, 0},
		} {
			if got := b.trim(c.age, c.limit); got != c.want {
				t.Errorf("trimmed to %v and %d: %+v, want %+v", c.age, c.limit, got, c.want)
			}
			left := slices.Clone(all[10-c.left:])
			if c.left == 0 {
				left = nil
			}
			b.lies(map[string][]string{
				b.lane.Dead: left, b.lane.Attempts: left, b.lane.Pool: append(slices.Clone(left), "other"), b.lane.Bucket(0): {"other"},
			})
			if n := b.rdb.HGet(t.Context(), b.lane.Stats, "dropped").Val(); n != "" && n != fmt.Sprint(10-c.left) || n == "" && c.left < 10 {
				t.Errorf("dropped %q, want %d", n, 10-c.left)
			}
		}
	})
}

// One call forgets no more than a batch, be they old or many.
func TestTrimSteps(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 1)
		b.dead(48*time.Hour, numbered(1300)...) // for 1300 minutes, 600 of them more than 38 hours ago
		const age = 38*time.Hour + 30*time.Second
		for i, want := range []readyqueue.Trimmed{{Old: 500}, {Old: 100, Excess: 400}, {Excess: 299}, {}} {
			if got := b.trim(age, 1); got != want {
				t.Errorf("step %d: %+v, want %+v", i, got, want)
			}
		}
		b.lies(map[string][]string{b.lane.Dead: {"01299"}, b.lane.Pool: {"01299"}, b.lane.Attempts: {"01299"}})
	})
}

// Trimming makes room in a Redis that has none left.
func TestTrimFullRedis(t *testing.T) {
	t.Parallel()
	env := redistest.Start(t, "--maxmemory-policy", "noeviction").Env()
	b := newBench(t, env, 1)
	b.dead(time.Hour, numbered(10)...)
	b.must(b.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	if got := b.trim(time.Minute, 1); got.Old != 10 {
		t.Errorf("trimmed %+v, want 10", got)
	}
}
