package readyqueue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/readyqueue"
)

var outcomes = []readyqueue.Settlement{
	{Outcome: readyqueue.Ack},
	{Outcome: readyqueue.Retry, Delay: time.Hour, Attempts: readyqueue.Attempts{Count: 1, Done: 2, Cause: "why"}},
	{Outcome: readyqueue.Bury, Attempts: readyqueue.Attempts{Count: 3, Cause: "why"}},
	{Outcome: readyqueue.Release},
}

func TestSettle(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 1)
		for _, s := range outcomes {
			s.ID = s.Outcome.String()
			b.ready(s.ID)
			b.claim("me", 1, 0)
			before := time.Now()
			b.must(b.settle("me", s))
			if err := b.settle("me", s); !errors.Is(err, readyqueue.ErrLost) { // it has no lease any more
				t.Errorf("second %s = %v, want ErrLost", s.Outcome, err)
			}
			if s.Outcome == readyqueue.Retry {
				due := time.UnixMilli(int64(b.rdb.ZScore(t.Context(), b.lane.Bucket(0), s.ID).Val()))
				if d := due.Sub(before); d < time.Hour || d > time.Hour+time.Minute {
					t.Errorf("tried again in %v", d)
				}
			}
			b.must(b.rdb.Del(t.Context(), b.lane.Bell).Err())
			if s.Outcome == readyqueue.Release {
				b.lies(map[string][]string{b.lane.Ready: {"release"}})
				b.claim("me", 1, 0)
			}
		}
		b.lies(map[string][]string{
			b.lane.Pool: {"bury", "release", "retry"}, b.lane.Bucket(0): {"retry"}, b.lane.Dead: {"bury"},
			b.lane.Held("me"): {"release"}, b.lane.Attempts: {"bury", "retry"},
		})
		if got := b.attempts("retry"); got != "1|2|why" {
			t.Errorf("attempts %q", got)
		}
	})
}

// Who does not hold an event changes nothing.
func TestSettleIsFenced(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 1)
		b.ready("held")
		b.claim("me", 1, 0)
		b.ready("ready")
		b.scheduled("scheduled", 0, -time.Hour)
		b.must(b.rdb.HSet(t.Context(), b.lane.Attempts, "held", "1||before", "scheduled", "1||before").Err())
		b.must(b.rdb.HSet(t.Context(), b.lane.Again, "held", "keep:1:0").Err())
		b.must(b.rdb.Del(t.Context(), b.lane.Bell).Err())
		for _, s := range outcomes {
			for _, id := range []string{"held", "ready", "scheduled", "none"} {
				s.ID = id
				if err := b.settle("you", s); !errors.Is(err, readyqueue.ErrLost) {
					t.Errorf("%s of %s = %v, want ErrLost", s.Outcome, id, err)
				}
			}
		}
		b.lies(map[string][]string{
			b.lane.Pool: {"held", "ready", "scheduled"}, b.lane.Held("me"): {"held"}, b.lane.Ready: {"ready"},
			b.lane.Bucket(0): {"scheduled"}, b.lane.Dead: nil, b.lane.Attempts: {"held", "scheduled"}, b.lane.Again: {"held"},
			b.lane.Bell: nil, b.lane.Held("you"): nil,
		})
		if n := b.rdb.HGet(t.Context(), b.lane.Stats, "acked").Val(); n != "" {
			t.Errorf("%s acked", n)
		}
	})
}

// A batch of all kinds: each settlement has its own outcome.
func TestSettleBatch(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 3)
		const n = 400
		b.ready(numbered(n)...)
		claimed := b.claim("me", n, 0, 1, 2)
		batch := readyqueue.Settlements{Lane: b.lane, Session: "me"}
		for i, l := range claimed.Leases {
			s := outcomes[i%4]
			s.ID = l.ID
			batch.Items = append(batch.Items, &s)
			if i%8 == 0 { // and one that is not ours
				other := outcomes[i/8%4]
				other.ID = fmt.Sprint("other ", i)
				batch.Items = append(batch.Items, &other)
			}
		}
		readyqueue.Settle(t.Context(), b.rdb, []readyqueue.Settlements{batch})
		for _, s := range batch.Items {
			if other := len(s.ID) > 5; other != errors.Is(s.Err, readyqueue.ErrLost) || !other && s.Err != nil {
				t.Errorf("%s of %s: %v", s.Outcome, s.ID, s.Err)
			}
		}
		counters := b.rdb.HGetAll(t.Context(), b.lane.Stats).Val()
		for _, field := range []string{"acked", "retried", "buried", "released"} {
			if counters[field] != fmt.Sprint(n/4) {
				t.Errorf("%s %s, want %d", counters[field], field, n/4)
			}
		}
		if held := b.rdb.SCard(t.Context(), b.lane.Held("me")).Val(); held != 0 {
			t.Errorf("%d still held", held)
		}
	})
}

// Events that were published again while they were held run again, each at its
// time, whatever else is in the batch.
func TestSettleMarked(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 1)
		all := []string{"keep acked", "replace acked", "keep retried", "replace retried", "keep buried", "replace buried", "keep released", "replace released", "acked"}
		b.ready(all...)
		b.claim("me", 100, 0)
		batch := readyqueue.Settlements{Lane: b.lane, Session: "me"}
		for i, id := range all {
			s := outcomes[i/2%4]
			s.ID = id
			batch.Items = append(batch.Items, &s)
			record := fmt.Sprintf("{\"v\":1,\"at\":%d}\nbody", i)
			b.must(b.rdb.HSet(t.Context(), b.lane.Pool, id, record).Err())
			if id != "acked" {
				b.must(b.rdb.HSet(t.Context(), b.lane.Again, id, fmt.Sprintf("%s:%d:0", []string{"keep", "replace"}[i%2], 4_000_000_000_000+i)).Err())
			}
		}
		readyqueue.Settle(t.Context(), b.rdb, []readyqueue.Settlements{batch})
		for _, s := range batch.Items {
			b.must(s.Err)
		}
		b.lies(map[string][]string{
			b.lane.Bucket(0): {"keep retried", "keep acked", "replace acked", "replace retried", "keep buried", "replace buried", "replace released"},
			b.lane.Ready:     {"keep released"}, b.lane.Dead: nil, b.lane.Again: nil, b.lane.Held("me"): nil, b.lane.Attempts: {"keep retried"},
		})
		if got := b.attempts("keep retried"); got != "1||why" { // handlers that have succeeded run again
			t.Errorf("attempts %q", got)
		}
		for id, want := range map[string]string{
			"keep acked": "{\"v\":1,\"at\":4000000000000}\nbody", "keep buried": "{\"v\":1,\"at\":4000000000004}\nbody",
			"replace acked": "{\"v\":1,\"at\":1}\nbody", // the publish has written it
		} {
			if got := b.rdb.HGet(t.Context(), b.lane.Pool, id).Val(); got != want {
				t.Errorf("%s has record %q, want %q", id, got, want)
			}
		}
	})
}
