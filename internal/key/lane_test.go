package key_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dueq-io/dueq/internal/key"
)

// keysOf are all keys and channels of a lane.
func keysOf(l *key.Lane) []string {
	keys := []string{
		l.Pool, l.Ready, l.Sessions, l.Attempts, l.Again, l.Dead, l.Bell, l.Meta, l.Stats, l.Alarm,
		l.Held("s"), l.Held("!s"), l.Wake("s"),
	}
	for i := range l.Buckets() {
		keys = append(keys, l.Bucket(i))
	}
	return keys
}

func TestLaneKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lane *key.Lane
		tag  string
	}{
		{key.NewLane("ns", "order.close", 0, 1, 16), "{ns:order.close}"},
		{key.NewLane("ns", "order.close", 0, 2, 16), "{ns:order.close/0}"},
		{key.NewLane("ns", "order.close", 63, 64, 16), "{ns:order.close/63}"},
	} {
		keys := keysOf(c.lane)
		for _, k := range keys {
			if !strings.HasPrefix(k, c.tag+":") {
				t.Errorf("key %q, want %s in front", k, c.tag)
			}
		}
		slices.Sort(keys)
		if n := len(slices.Compact(keys)); n != 13+16 {
			t.Errorf("%d different keys, want 29", n)
		}
		if c.lane.Tag != c.tag || c.lane.Topic != "order.close" {
			t.Errorf("tag %q, topic %q", c.lane.Tag, c.lane.Topic)
		}
	}
	l := key.NewLane("ns", "a", 0, 1, 16)
	for got, want := range map[string]string{
		l.Pool: "{ns:a}:pool", l.Bucket(15): "{ns:a}:bucket:15", l.Held("x"): "{ns:a}:held:x", l.Wake("x"): "{ns:a}:wake:x",
		key.Topics("ns"): "ns:topics",
		key.Seen("ns"):   "ns:seen",
	} {
		if got != want {
			t.Errorf("key %q, want %q", got, want)
		}
	}
}

func TestLearn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		own            int
		redis          []string // what Redis is found to hold, in turn
		stored, wanted string
		known          []int // own first
		buckets        int
	}{
		{16, nil, "", "16", []int{16}, 16},
		{16, []string{""}, "", "16", []int{16}, 16},
		{16, []string{"16"}, "16", "16", []int{16}, 16},
		{16, []string{"64"}, "64", "16,64", []int{16, 64}, 64},
		{16, []string{"4,64"}, "4,64", "4,16,64", []int{16, 4, 64}, 64},
		{16, []string{"4,16,64"}, "4,16,64", "4,16,64", []int{16, 4, 64}, 64},
		{16, []string{"64", "4,64"}, "4,64", "4,16,64", []int{16, 4, 64}, 64},
		{16, []string{"64,4,4"}, "64,4,4", "4,16,64", []int{16, 4, 64}, 64},
		{16, []string{"4,100", ""}, "", "16", []int{16}, 16},
		{16, []string{"x,-3,0,,5"}, "x,-3,0,,5", "5,16", []int{16, 5}, 16},
		{1, []string{"1024"}, "1024", "1,1024", []int{1, 1024}, 1024},
	} {
		l := key.NewLane("ns", "a", 0, 1, c.own)
		for _, stored := range c.redis {
			l.Learn(stored)
		}
		if got := l.Counts(); got.Stored != c.stored || got.Wanted != c.wanted {
			t.Errorf("%d after %q: counts %q, %q; want %q, %q", c.own, c.redis, got.Stored, got.Wanted, c.stored, c.wanted)
		}
		if l.Buckets() != c.buckets {
			t.Errorf("%d after %q: %d buckets, want %d", c.own, c.redis, l.Buckets(), c.buckets)
		}
		for i := range 100 {
			id := fmt.Sprint(i)
			homes := l.Counts().Homes(id)
			for j, n := range c.known {
				if len(homes) != len(c.known) || homes[j] != key.Shard(id, n) {
					t.Fatalf("%d after %q: homes of %q are %v", c.own, c.redis, id, homes)
				}
			}
			if l.Home(id) != homes[0] {
				t.Errorf("home %d, first of homes %v", l.Home(id), homes)
			}
		}
	}
}

// Ids spread evenly, over partitions by other bits than over buckets.
func TestShard(t *testing.T) {
	t.Parallel()
	const n, ids = 8, 64_000
	var counts [n][n]int
	for i := range ids {
		id := fmt.Sprint("id ", i)
		counts[key.Shard(id, n)][key.Partition(id, n)]++
		if key.Shard(id, 1) != 0 || key.Partition(id, 1) != 0 {
			t.Fatalf("%q does not lie in the only place", id)
		}
	}
	for shard, row := range counts {
		for partition, got := range row {
			if want := ids / n / n; got < want*8/10 || got > want*12/10 {
				t.Errorf("bucket %d of partition %d has %d ids, want about %d", shard, partition, got, want)
			}
		}
	}
	if got := key.Shard("order-17", 16); got != 13 {
		t.Errorf("the shard of a known id is %d: events already stored would not be found", got)
	}
}

func BenchmarkShard(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		key.Shard("0aZ9bY8cX7dW6e", 16)
	}
}

func BenchmarkHomes(b *testing.B) {
	b.ReportAllocs()
	l := key.NewLane("ns", "a", 0, 1, 16)
	l.Learn("16,64")
	for b.Loop() {
		l.Counts().Homes("0aZ9bY8cX7dW6e")
	}
}
