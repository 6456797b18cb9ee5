package inspect_test

import (
	"strings"
	"testing"

	"github.com/dueq-io/dueq/inspect"
)

// Whatever some other hand has put into the lane, its counts are read.
func FuzzCounts(f *testing.F) {
	f.Add(int64(1732184350000), int64(3), "1732184340000", "{\"v\":1,\"at\":1732184330000}\nbody", "published\n3\nacked\n1")
	f.Add(int64(1732184350000), int64(0), "1.7321843571230001e+12", "", "")
	f.Add(int64(1), int64(-1), "inf", "{\"v\":1,\"at\":-5}\n", "x\ny\nz\n1e400")
	f.Add(int64(0), int64(1)<<62, "-inf", "?", "\n\n\n")
	f.Fuzz(func(t *testing.T, now, n int64, earliest, first, counters string) {
		fields := strings.Split(counters, "\n")
		values := make([]any, len(fields)/2*2) // Redis tells of whole pairs
		for i := range values {
			values[i] = fields[i]
		}
		got := inspect.ParseCounts([]any{now, n, n, n, n, earliest, first, values, n, n & 1})
		if got.Now != now || got.Scheduled != n || got.Ready != n || got.Leased != n || got.Dead != n || got.Bodies != n {
			t.Errorf("counts %+v, want %d of each at %d", got, n, now)
		}
		for i := 0; i < len(values); i += 2 {
			if _, ok := got.Counters[fields[i]]; !ok {
				t.Errorf("counter %q is not among %v", fields[i], got.Counters)
			}
		}
	})
}
