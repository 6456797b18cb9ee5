package redistest_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dueq-io/dueq/internal/redistest"
)

func TestEach(t *testing.T) {
	redistest.Start(t) // skips without a server
	var mu sync.Mutex
	ran := map[string]string{} // namespace by subtest
	t.Cleanup(func() {
		if len(ran) != 4 {
			t.Errorf("ran %v, want two bodies twice", slices.Collect(maps.Keys(ran)))
		}
		if n := len(slices.Compact(slices.Sorted(maps.Values(ran)))); n != len(ran) {
			t.Errorf("%d namespaces in %d subtests", n, len(ran))
		}
	})
	for _, group := range []string{"a", "b"} {
		t.Run(group, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, env *redistest.Env) {
				mu.Lock()
				ran[t.Name()] = env.Namespace
				mu.Unlock()
				if (env.Mini != nil) != strings.HasSuffix(t.Name(), "/miniredis") {
					t.Errorf("Mini = %v", env.Mini)
				}
				other := env.NewClient()
				if other.Options().Addr != env.Addr {
					t.Errorf("Addr = %q, NewClient dials %q", env.Addr, other.Options().Addr)
				}
				key := env.Namespace + ":k"
				if err := env.Client.Set(t.Context(), key, "v", 0).Err(); err != nil {
					t.Fatal(err)
				}
				if v, err := other.Get(t.Context(), key).Result(); err != nil || v != "v" {
					t.Errorf("other client reads %q, %v", v, err)
				}
				if err := other.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func BenchmarkPing(b *testing.B) {
	rdb := redistest.Start(b).Client()
	for b.Loop() {
		if err := rdb.Ping(b.Context()).Err(); err != nil {
			b.Fatal(err)
		}
	}
}
