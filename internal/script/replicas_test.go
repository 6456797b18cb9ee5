package script_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/metric"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/internal/script"
)

// Each call of a round trip is told whether its own number of replicas has it.
func TestReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	master.StartReplica()
	rdb := master.Client()
	count := script.New("return { redis.call('INCR', KEYS[1]) }")
	for name, client := range map[string]redis.UniversalClient{"alone": rdb, "together": script.Together(rdb, new(metric.Calls))} {
		for range 2 { // once with the source, once by its hash
			calls := []*script.Call{
				{Script: count, Keys: []string{name}, Replicas: 1},
				{Commands: [][]any{{"time"}, {"incr", name}}, Replicas: 2},
				{Commands: [][]any{{"incr", name}}},
				{Commands: [][]any{{"incr"}}, Replicas: 1},
			}
			script.RunAll(t.Context(), client, calls)
			for i, want := range []string{"", "1 replicas have it", "", ""} {
				got := ""
				if err := calls[i].Unreplicated; err != nil {
					got = err.Error()
				}
				if !strings.HasPrefix(got, want) || want == "" && got != "" {
					t.Errorf("%s: call %d: %q, want %q", name, i, got, want)
				}
				if refused := i == 3; (calls[i].Err != nil) != refused {
					t.Errorf("%s: call %d: %v", name, i, calls[i].Err)
				}
			}
		}
		if n := rdb.Get(t.Context(), name).Val(); n != "6" {
			t.Errorf("%s: %s runs, want 6", name, n)
		}
	}
	c := &script.Call{Script: count, Keys: []string{"alone"}, Replicas: 1}
	if err := script.Run(t.Context(), rdb, c); err != nil || c.Unreplicated != nil {
		t.Errorf("one call: %v, %v", err, c.Unreplicated)
	}
}

// A client that waits for replies only briefly hears all the same that a call was
// done, and that no replica has it.
func TestReplicasOfHastyClient(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: master.Addr(), ReadTimeout: script.ReplicaTime / 2})
	t.Cleanup(func() { _ = rdb.Close() })
	c := &script.Call{Commands: [][]any{{"time"}, {"incr", "k"}}, Replicas: 1}
	if err := script.Run(t.Context(), rdb, c); err != nil || c.Unreplicated == nil || len(c.Reply) != 2 {
		t.Errorf("%v, %v, %v", c.Reply, err, c.Unreplicated)
	}
}

// Where it is not known who would have to wait, nothing is sent.
func TestReplicasNotSent(t *testing.T) {
	t.Parallel()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, DialTimeout: 10 * time.Millisecond})
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "192.0.2.1:1"}})
	t.Cleanup(func() {
		_ = cluster.Close()
		_ = ring.Close()
	})
	for _, rdb := range []redis.UniversalClient{cluster, ring} {
		c := &script.Call{Commands: [][]any{{"time"}, {"incr", "k"}}, Replicas: 1}
		if err := script.Run(t.Context(), rdb, c); err == nil || !script.NotRun(err) {
			t.Errorf("on a %T: %v", rdb, err)
		}
	}
	if script.CanWait(ring) || !script.CanWait(cluster) {
		t.Error("a client is taken for another")
	}
}
