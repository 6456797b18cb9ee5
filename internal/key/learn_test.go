package key_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dueq-io/dueq/internal/key"
)

// Whatever Redis holds as bucket counts, an id has homes, its own first, and what
// this process then registers is read back as the same counts.
func FuzzLearn(f *testing.F) {
	for _, stored := range []string{
		"", "16", "4,16,64", "64,4,4", "x,-3,0,,5", "99999999999", "1e3", "+7", "007", " 8", strings.Repeat("3,", 1000),
	} {
		f.Add(stored, "id")
	}
	f.Fuzz(func(t *testing.T, stored, id string) {
		l := key.NewLane("ns", "a", 0, 1, 16)
		l.Learn(stored)
		counts := l.Counts()
		homes := counts.Homes(id)
		if counts.Stored != stored || homes[0] != key.Shard(id, 16) || l.Home(id) != homes[0] || len(homes) != counts.Others()+1 {
			t.Errorf("%q: counts %+v, homes %v", stored, counts, homes)
		}
		if n := counts.Buckets(); n < 16 || n > 1<<16 || slices.Max(homes) >= n {
			t.Errorf("%q: homes %v in %d buckets", stored, homes, n)
		}
		for part := range strings.SplitSeq(counts.Wanted, ",") {
			if n, err := strconv.Atoi(part); err != nil || strconv.Itoa(n) != part {
				t.Errorf("%q: would register %q", stored, counts.Wanted)
			}
		}
		l.Learn(counts.Wanted)
		if again := l.Counts(); again.Stored != again.Wanted || !slices.Equal(again.Homes(id), homes) {
			t.Errorf("%q: registered as %q, wants %q", stored, again.Stored, again.Wanted)
		}
	})
}
