package readyqueue_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/readyqueue"
)

func TestClaim(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 4)
		b.ready("r1", "r2")
		b.scheduled("b3", 3, time.Second)
		b.scheduled("b1", 1, time.Minute)
		b.scheduled("b1 later", 1, -time.Hour)
		b.must(b.rdb.HSet(t.Context(), b.lane.Attempts, "r2", "2|1|why").Err())

		got := b.claim("me", 3, 1, 3)
		if want := []string{"r1", "r2", "b1"}; !slices.Equal(ids(got.Leases), want) {
			t.Errorf("claimed %q, want %q", ids(got.Leases), want)
		}
		for _, l := range got.Leases {
			want := readyqueue.Attempts{}
			if l.ID == "r2" {
				want = readyqueue.Attempts{Count: 2, Done: 1, Cause: "why"}
			}
			if l.Record != "record of "+l.ID || l.Missing || l.Attempts != want {
				t.Errorf("lease %+v", l)
			}
		}
		now := time.Now()
		if server := time.UnixMicro(got.Now); server.Before(now.Add(-time.Minute)) || server.After(now.Add(time.Minute)) {
			t.Errorf("the server's clock shows %v", server)
		}
		if len(got.Heads) != 2 || got.Heads[0].Bucket != 1 || got.Heads[0].Due < now.UnixMilli() || got.Heads[1].Bucket != 3 || got.Heads[1].Empty {
			t.Errorf("heads %+v", got.Heads)
		}
		b.lies(map[string][]string{
			b.lane.Held("me"): {"b1", "r1", "r2"}, b.lane.Sessions: {"me"}, b.lane.Ready: nil,
			b.lane.Bucket(1): {"b1 later"}, b.lane.Bucket(3): {"b3"}, b.lane.Bell: nil,
		})
		got = b.claim("you", 10, 0, 1, 2, 3)
		if want := []string{"b3"}; !slices.Equal(ids(got.Leases), want) || !got.Heads[0].Empty || !got.Heads[3].Empty || got.Heads[1].Empty {
			t.Errorf("claimed %q, heads %+v", ids(got.Leases), got.Heads)
		}
		if got := b.claim("you", 10, 0, 1, 2, 3); len(got.Leases) != 0 || got.Left != 0 {
			t.Errorf("claimed %+v", got)
		}
	})
}

// What is left in ready rings for somebody else.
func TestClaimLeavesSome(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 1)
		b.ready(numbered(10)...)
		if got := b.claim("me", 4, 0); len(got.Leases) != 4 || got.Left != 6 {
			t.Errorf("claimed %d, left %d", len(got.Leases), got.Left)
		}
		b.lies(map[string][]string{b.lane.Bell: {"1"}})
		b.claim("me", 4, 0)
		b.lies(map[string][]string{b.lane.Bell: {"1"}, b.lane.Ready: {"00008", "00009"}}) // one token, however often
	})
}

// A claim of none carries what is due to ready, as far as there is room.
func TestCarry(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 2)
		for i, id := range numbered(8) {
			b.scheduled(id, i%2, time.Minute-time.Duration(i)*time.Second)
		}
		b.scheduled("later", 0, -time.Hour)
		carry := readyqueue.Claim{Session: "me", Lease: time.Hour, HighWater: 5, Due: []int{0, 1}}
		for range 2 {
			got, err := carry.Run(t.Context(), b.rdb, b.lane)
			b.must(err)
			if len(got.Leases) != 0 || got.Left != 5 || got.Heads[1].Empty || got.Heads[1].Due > time.Now().UnixMilli() {
				t.Errorf("carried %+v", got)
			}
			b.lies(map[string][]string{
				b.lane.Ready:     {"00000", "00002", "00004", "00006", "00001"},
				b.lane.Bucket(0): {"later"}, b.lane.Bucket(1): {"00003", "00005", "00007"},
				b.lane.Bell: {"1"}, b.lane.Held("me"): nil, b.lane.Sessions: nil,
			})
		}
	})
}

// One call returns no more bytes than a reply should have; the rest keeps its
// order.
func TestClaimOfLargeRecords(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 1)
		all := numbered(300)
		b.ready(all...)
		large := strings.Repeat("x", 50_000)
		for _, id := range all {
			b.must(b.rdb.HSet(t.Context(), b.lane.Pool, id, large).Err())
		}
		var got []string
		for calls := 1; len(got) < len(all); calls++ {
			found := b.claim("me", 500, 0)
			n := len(found.Leases)
			if n == 0 || n*len(large) > 8<<20 || found.Left != len(all)-len(got)-n {
				t.Fatalf("call %d took %d, left %d", calls, n, found.Left)
			}
			got = append(got, ids(found.Leases)...)
		}
		if !slices.Equal(got, all) {
			t.Errorf("claimed in another order: %q", got)
		}
	})
}

func TestClaimOfMissingRecords(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 1)
		b.ready("a", "b", "c")
		b.must(b.rdb.HDel(t.Context(), b.lane.Pool, "b", "c").Err())
		b.ready("d")
		b.must(b.rdb.HSet(t.Context(), b.lane.Pool, "d", "").Err()) // empty is not missing
		for i, l := range b.claim("me", 10, 0).Leases {
			if want := i == 1 || i == 2; l.Missing != want {
				t.Errorf("%s missing: %t, want %t", l.ID, l.Missing, want)
			}
		}
	})
}

func TestClaimAfterLosingTheSession(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 1)
		b.ready("a", "b")
		b.claim("me", 1, 0)
		b.lapse("me")
		if next := b.expire(); next != 0 {
			t.Errorf("next deadline %d, want none", next)
		}
		c := readyqueue.Claim{Session: "me", Lease: time.Hour, Holds: true, Limit: 10, HighWater: 10}
		if _, err := c.Run(t.Context(), b.rdb, b.lane); !errors.Is(err, readyqueue.ErrLost) {
			t.Errorf("claim = %v, want ErrLost", err)
		}
		b.lies(map[string][]string{b.lane.Ready: {"a", "b"}, b.lane.Held("me"): nil, b.lane.Sessions: nil})
	})
}

// A claim learns of other bucket counts, and tells of its own.
func TestClaimLearnsBucketCounts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		for i, c := range []struct{ stored, want string }{
			{"", "4"}, {"4", "4"}, {"2,64", "2,4,64"},
		} {
			b := newBench(t, env, 4)
			b.lane.Meta += fmt.Sprint(i)
			if c.stored != "" {
				b.must(b.rdb.HSet(t.Context(), b.lane.Meta, "buckets", c.stored).Err())
			}
			b.claim("me", 10, 0, 1, 2, 3)
			if got := b.rdb.HGet(t.Context(), b.lane.Meta, "buckets").Val(); got != c.want {
				t.Errorf("Redis had %q, now %q, want %q", c.stored, got, c.want)
			}
			if got := b.lane.Counts(); got.Stored != c.want || got.Wanted != c.want {
				t.Errorf("the lane has %q, %q, want %q", got.Stored, got.Wanted, c.want)
			}
		}
	})
}

// However much is due, one call touches no more than a batch.
func TestClaimIsBounded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 2)
		for i, id := range numbered(1200) {
			if i%2 == 0 {
				b.ready(id)
			} else {
				b.scheduled(id, i/2%2, time.Minute)
			}
		}
		total := 0
		for _, want := range []int{500, 500, 200, 0} {
			got := b.claim("me", 1<<20, 0, 1)
			if len(got.Leases) != want {
				t.Errorf("claimed %d, want %d", len(got.Leases), want)
			}
			total += len(got.Leases)
		}
		if n := b.rdb.SCard(t.Context(), b.lane.Held("me")).Val(); n != int64(total) {
			t.Errorf("%d held, %d claimed", n, total)
		}
	})
}
