package bucket_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/internal/key"
)

func TestNewID(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[0-9A-Za-z]{14}$`)
	seen := map[string]bool{}
	used := map[rune]int{}
	now := time.Now()
	for i := range 100_000 {
		id := bucket.NewID(16, now.Add(time.Duration(i)*time.Millisecond))
		if !form.MatchString(id) {
			t.Fatalf("id %q", id)
		}
		if seen[id] {
			t.Fatalf("id %q twice", id)
		}
		seen[id] = true
		for _, c := range id {
			used[c]++
		}
	}
	for c, n := range used {
		if want := 100_000 * 14 / 62; n < want*9/10 || n > want*11/10 {
			t.Errorf("%q occurs %d times, want about %d", c, n, want)
		}
	}
	if len(used) != 62 {
		t.Errorf("%d characters occur, want 62", len(used))
	}
}

// Ids of one moment share a bucket, and in the long run all buckets get as many.
func TestNewIDBucket(t *testing.T) {
	t.Parallel()
	const buckets, moments, each = 16, 16 * 20, 10
	got := make([]int, buckets)
	for i := range moments {
		now := time.UnixMilli(1_732_184_357_123).Add(time.Duration(i) * bucket.Stay)
		home := key.Shard(bucket.NewID(buckets, now), buckets)
		for range each - 1 {
			if b := key.Shard(bucket.NewID(buckets, now), buckets); b != home {
				t.Fatalf("bucket %d, then %d", home, b)
			}
		}
		got[home] += each
	}
	for i, n := range got {
		if n != moments*each/buckets {
			t.Errorf("bucket %d got %d of %d", i, n, moments*each)
		}
	}
	for _, buckets := range []int{1, 2, 256, 1024} {
		if n := len(bucket.NewID(buckets, time.Now())); n != 14 {
			t.Errorf("%d buckets: an id of %d characters", buckets, n)
		}
	}
}

func BenchmarkNewID(b *testing.B) {
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		bucket.NewID(16, now)
	}
}
