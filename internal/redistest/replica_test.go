package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/redistest"
)

func TestStartReplica(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	rdb := master.Client()
	if err := rdb.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	replica := master.StartReplica().Client()
	if v, err := replica.Get(t.Context(), "k").Result(); v != "v" {
		t.Errorf("the replica has %q, %v", v, err)
	}
	if n, err := rdb.Wait(t.Context(), 1, time.Minute).Result(); n != 1 {
		t.Errorf("%d replicas, %v", n, err)
	}
}

// awaitSet returns once a write works.
func awaitSet(t *testing.T, rdb redis.UniversalClient, key string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for rdb.Set(ctx, key, "v", 0).Err() != nil {
		if ctx.Err() != nil {
			t.Fatal("no master takes over")
		}
	}
}

func TestStartSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 2)
	rdb := s.Client()
	awaitSet(t, rdb, "before")
	if n, err := rdb.Wait(t.Context(), 2, time.Minute).Result(); n != 2 {
		t.Errorf("%d replicas, %v", n, err)
	}
	first := s.Master()
	first.Kill()
	awaitSet(t, rdb, "after")
	if v, err := rdb.Get(t.Context(), "before").Result(); v != "v" {
		t.Errorf("the new master has %q, %v", v, err)
	}
	redistest.Eventually(t, "the sentinels name another master", func() bool { return s.Master() != first })
}

func TestClusterReplicas(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, "--cluster-node-timeout", "1000")
	c.AddReplicas()
	rdb := c.Client()
	const key = "foo" // slot 12182, of the last master
	awaitSet(t, rdb, key)
	if err := c.MoveSlot(12182, 2, 0); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Server(0).Client().Get(t.Context(), key).Result(); v != "v" {
		t.Errorf("the slot's new master has %q, %v", v, err)
	}
}
