package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
)

// clusterQueue is a queue on a client of its own, shut down when the test ends.
func clusterQueue(t *testing.T, c *redistest.Cluster, opts dueq.Options) *dueq.Queue {
	t.Helper()
	opts.Namespace = "ns"
	q, err := dueq.New(c.Client(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := q.ShutDown(ctx); err != nil && !errors.Is(err, dueq.ErrShutDown) {
			t.Errorf("ShutDown: %v", err)
		}
	})
	return q
}

// clusterKeys are all keys of a cluster.
func clusterKeys(t *testing.T, rdb *redis.ClusterClient) []string {
	t.Helper()
	var mu sync.Mutex
	var all []string
	err := rdb.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		keys, err := node.Keys(ctx, "*").Result()
		mu.Lock()
		defer mu.Unlock()
		all = append(all, keys...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// All of dueq on a cluster of three nodes.
func TestCluster(t *testing.T) {
	t.Parallel()
	const partitions, topics, each = 4, 6, 100
	cluster := redistest.StartCluster(t, 3)
	rdb := cluster.Client()
	opts := dueq.Options{Partitions: partitions, MaxAttempts: 2, Backoff: func(int, error) time.Duration { return 0 }, Concurrency: 8}
	q, other := clusterQueue(t, cluster, opts), clusterQueue(t, cluster, opts)

	var mu sync.Mutex
	runs := map[string][]int{} // attempts by id
	handle := dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
		mu.Lock()
		defer mu.Unlock()
		runs[e.ID] = append(runs[e.ID], e.Attempt)
		switch {
		case strings.HasPrefix(string(e.Body), "dead"), strings.HasPrefix(string(e.Body), "retry") && e.Attempt == 1:
			return errBroken
		}
		return nil
	})
	topic := func(i int) string { return fmt.Sprint("topic", i) }
	want := map[string]int{} // runs by id
	var cancelled, moved []string
	for i := range topics {
		subscribe(t, q, topic(i), handle)
		subscribe(t, other, topic(i), handle)
		var events []dueq.NewEvent
		for j := range each {
			body := []string{"ack", "ack", "ack", "retry", "dead"}[j%5]
			events = append(events, dueq.NewEvent{Body: []byte(body), EffectTime: time.Now().Add(time.Duration(j) * 5 * time.Millisecond)})
		}
		ids, err := q.PublishEvents(t.Context(), topic(i), events)
		if err != nil {
			t.Fatal(err)
		}
		for j, id := range ids {
			want[id] = []int{1, 1, 1, 2, 2}[j%5]
		}
		cancelled = append(cancelled, publish(t, q, topic(i), "never", time.Now().Add(time.Hour)))
		moved = append(moved, publish(t, q, topic(i), "ack", time.Now().Add(time.Hour), dueq.WithID(fmt.Sprint("key", i))))
		want[moved[i]] = 1
	}
	for i := range topics {
		if err := other.Cancel(t.Context(), topic(i), cancelled[i]); err != nil {
			t.Error(err)
		}
		if err := other.Reschedule(t.Context(), topic(i), moved[i], time.Now()); err != nil {
			t.Error(err)
		}
	}
	for i := range topics {
		eventually(t, "all are settled", func() bool {
			s := stats(t, q, topic(i))
			return s.Acked == each*4/5+1 && s.Buried == each/5
		})
		if s := stats(t, other, topic(i)); s.Dead != each/5 || s.Scheduled+s.Ready+s.Leased != 0 || s.Retried != each*2/5 || s.Published != each+2 || s.Cancelled != 1 {
			t.Errorf("Stats = %+v", s)
		}
	}
	mu.Lock()
	for id, n := range want {
		if len(runs[id]) != n {
			t.Errorf("id %s ran with attempts %v, want %d runs", id, runs[id], n)
		}
	}
	if len(runs) != len(want) {
		t.Errorf("%d ids ran, want %d", len(runs), len(want))
	}
	mu.Unlock()
	if names, err := other.Topics(t.Context()); err != nil || len(names) != topics {
		t.Errorf("Topics = %v, %v", names, err)
	}
	checkOperated(t, other, topic(0), each/5)
	checkSlots(t, rdb, topics*partitions)
}

// checkOperated operates a topic that has dead events only.
func checkOperated(t *testing.T, q *dueq.Queue, topic string, dead int) {
	t.Helper()
	page, err := q.List(t.Context(), topic, dueq.Query{State: dueq.StateDead})
	if err != nil || len(page.Events) != dead {
		t.Errorf("List = %+v, %v", page, err)
	}
	if err := q.Pause(t.Context(), topic); err != nil || !stats(t, q, topic).Paused {
		t.Errorf("Pause: %v", err)
	}
	if n, err := q.Requeue(t.Context(), topic, dueq.Filter{}, time.Now().Add(time.Hour)); n != dead || err != nil {
		t.Errorf("Requeue = %d, %v", n, err)
	}
	if n, err := q.Forecast(t.Context(), topic, time.Minute, 2*time.Hour); err != nil || n[0] != 0 || n[1] != dead {
		t.Errorf("Forecast = %v, %v", n, err)
	}
	if err := q.Resume(t.Context(), topic); err != nil || stats(t, q, topic).Paused {
		t.Errorf("Resume: %v", err)
	}
	if n, err := q.Purge(t.Context(), topic, dueq.StateScheduled); n != dead || err != nil {
		t.Errorf("Purge = %d, %v", n, err)
	}
	eventually(t, "the session is listed", func() bool {
		sessions, err := q.Sessions(t.Context())
		return err == nil && len(sessions) > 0 && len(sessions[0].Topics) > 0
	})
}

// checkSlots checks that all keys of a lane lie in one slot, and that the lanes
// are spread over all nodes.
func checkSlots(t *testing.T, rdb *redis.ClusterClient, lanes int) {
	t.Helper()
	slots := map[string]int64{} // by hash tag
	nodes := map[string]bool{}
	for _, k := range clusterKeys(t, rdb) {
		tag, _, ok := strings.Cut(k, "}:")
		if !ok {
			if k != key.Topics("ns") && k != key.Seen("ns") {
				t.Errorf("a key outside all lanes: %q", k)
			}
			continue
		}
		slot, err := rdb.ClusterKeySlot(t.Context(), k).Result()
		if err != nil {
			t.Fatal(err)
		}
		if first, ok := slots[tag]; ok && first != slot {
			t.Errorf("keys of %s} lie in the slots %d and %d", tag, first, slot)
		}
		slots[tag] = slot
		node, err := rdb.MasterForKey(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		nodes[node.Options().Addr] = true
	}
	if len(slots) != lanes || len(nodes) != 3 {
		t.Errorf("%d lanes on %d nodes, want %d on 3", len(slots), len(nodes), lanes)
	}
}

// Every key that a lane can have, also those that the test above did not make.
func TestLaneHasOneSlot(t *testing.T) {
	t.Parallel()
	rdb := redistest.Mini(t).Client
	for _, l := range []*key.Lane{key.NewLane("ns", "a", 0, 1, 16), key.NewLane("ns", "a", 3, 4, 16)} {
		keys := []string{
			l.Pool, l.Ready, l.Sessions, l.Attempts, l.Again, l.Dead, l.Bell, l.Meta, l.Stats,
			l.Held("s"), l.Held("!s"), l.Wake("s"), l.Bucket(0), l.Bucket(15),
		}
		var slots []int64
		for _, k := range keys {
			slots = append(slots, rdb.ClusterKeySlot(t.Context(), k).Val())
		}
		if len(slices.Compact(slots)) != 1 {
			t.Errorf("slots %v of %v", slots, keys)
		}
	}
}

// A process that subscribes to many topics on a cluster does not starve itself
// of connections, though it waits for each lane's bell.
func TestClusterManyTopics(t *testing.T) {
	t.Parallel()
	const topics = 100
	cluster := redistest.StartCluster(t, 3)
	q := clusterQueue(t, cluster, dueq.Options{})
	got := make(seen, 2*topics)
	for i := range topics {
		subscribe(t, q, fmt.Sprint("topic", i), got)
	}
	for _, due := range []time.Time{time.Now(), time.Now().Add(500 * time.Millisecond)} {
		for i := range topics {
			publish(t, q, fmt.Sprint("topic", i), "x", due)
		}
		for range topics {
			receive(t, got)
		}
	}
}

// A node that is killed and comes back takes up its lanes again; what it had
// said it has is there.
func TestClusterNodeRestarts(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, "--appendonly", "yes", "--appendfsync", "always")
	opts := dueq.Options{Partitions: 4, Lease: 2 * time.Second, Fallback: time.Second}
	q, publisher := clusterQueue(t, cluster, opts), clusterQueue(t, cluster, opts)
	log := newFaultLog()
	subscribe(t, q, "a", log)
	ids, err := publisher.PublishEvents(t.Context(), "a", faultEvents(300, time.Now(), 2*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	p := startFaultPublisher(t, publisher)
	for i := range 2 {
		<-time.After(300 * time.Millisecond)
		cluster.Server(i).Kill()
		<-time.After(300 * time.Millisecond)
		cluster.Server(i).Restart()
	}
	<-time.After(300 * time.Millisecond)
	p.stop()
	eventually(t, "every event is handled", func() bool {
		s, err := q.Stats(t.Context(), "a")
		return err == nil && s.Scheduled+s.Ready+s.Leased == 0
	})
	if missing := log.missing(append(ids, p.ids...)); len(missing) > 0 {
		t.Errorf("of %d events %d were never handled", len(ids)+len(p.ids), len(missing))
	}
	t.Logf("%d events, %d repeated, %d publishes failed", len(ids)+len(p.ids), log.repeated(), len(p.failed))
}
