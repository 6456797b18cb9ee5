package redistest_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/redistest"
)

func TestStartCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	if n := len(c.Addrs()); n != 3 {
		t.Fatalf("%d nodes, want 3", n)
	}
	rdb := c.Client()
	const keys = 300
	for i := range keys {
		if err := rdb.Set(t.Context(), fmt.Sprint("k", i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var seen []string
	total := int64(0)
	err := rdb.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		n, err := node.DBSize(ctx).Result()
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if n == 0 {
			t.Errorf("node %s has no keys", node.Options().Addr)
		}
		seen = append(seen, node.Options().Addr)
		total += n
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(seen)
	if want := slices.Sorted(slices.Values(c.Addrs())); !slices.Equal(seen, want) {
		t.Errorf("masters = %v, want %v", seen, want)
	}
	if total != keys {
		t.Errorf("%d keys on all nodes, want %d", total, keys)
	}
}
