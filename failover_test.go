package dueq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// promises publishes to topic a and handles what comes, and remembers what it was
// promised.
type promises struct {
	mu      sync.Mutex
	stored  []string       // ids whose publish returned nil
	refused []string       // ids of which it said that nothing was stored
	vague   int            // publishes that said neither
	errs    map[string]int // what was said, by its beginning
	handled map[string]int // successful runs by id
	early   int
	stop    func() // ends publishing
}

// startPromises begins to publish, from several goroutines.
func startPromises(t *testing.T, q *dueq.Queue) *promises {
	p := &promises{errs: make(map[string]int), handled: make(map[string]int)}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for name := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				p.publish(t, q, fmt.Sprint(name, "-", i), i)
				<-time.After(3 * time.Millisecond)
			}
		})
	}
	p.stop = func() {
		cancel()
		wg.Wait()
	}
	t.Cleanup(func() {
		p.stop()
		p.mu.Lock()
		defer p.mu.Unlock()
		for text, n := range p.errs {
			t.Logf("%d times: %s", n, text)
		}
	})
	return p
}

// publish publishes the i-th event, most of them with an id of our own.
func (p *promises) publish(t *testing.T, q *dueq.Queue, name string, i int) {
	var opts []dueq.PublishOption
	if i%4 > 0 {
		opts = append(opts, dueq.WithID(name))
	}
	body := []string{"once", "once", "retry"}[i%3]
	id, err := q.PublishEvent(context.WithoutCancel(t.Context()), "a", []byte(body), time.Now().Add(rand.N(500*time.Millisecond)), opts...)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.stored = append(p.stored, id)
		return
	case errors.Is(err, dueq.ErrOutcomeUnknown), errors.Is(err, dueq.ErrNotReplicated):
		p.vague++
	case i%4 > 0:
		p.refused = append(p.refused, name)
	}
	p.errs[fmt.Sprintf("%.90s", err)]++
}

// HandleEvent fails the first attempt of some events.
func (p *promises) HandleEvent(_ context.Context, e *dueq.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(e.EffectTime) {
		p.early++
	}
	if string(e.Body) == "retry" && e.Attempt == 1 {
		return errBroken
	}
	p.handled[e.ID]++
	return nil
}

// count is how many publishes have returned nil.
func (p *promises) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.stored)
}

// awaitMore returns once n more publishes have returned nil.
func (p *promises) awaitMore(t *testing.T, n int) {
	t.Helper()
	n += p.count()
	eventually(t, "publishing works", func() bool { return p.count() >= n })
}

// awaitHandled returns once all have been handled whose publish has returned nil by now.
func (p *promises) awaitHandled(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	promised := slices.Clone(p.stored)
	p.mu.Unlock()
	end := time.Now().Add(patience)
	for {
		p.mu.Lock()
		promised = slices.DeleteFunc(promised, func(id string) bool { return p.handled[id] > 0 })
		p.mu.Unlock()
		if len(promised) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d events were promised and do not come, such as %q", len(promised), promised[0])
		}
		<-time.After(5 * time.Millisecond)
	}
}

// check ends publishing, and checks that all promises were kept.
func (p *promises) check(t *testing.T, q *dueq.Queue) {
	t.Helper()
	p.stop()
	p.awaitHandled(t)
	eventually(t, "nothing is left", func() bool {
		s, err := q.Stats(t.Context(), "a")
		return err == nil && s.Scheduled+s.Ready+s.Leased == 0
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range p.refused {
		if p.handled[id] > 0 {
			t.Errorf("id %s was handled, though its publish said that nothing was stored", id)
		}
	}
	if p.early > 0 {
		t.Errorf("%d runs were early", p.early)
	}
	repeated := 0
	for _, n := range p.handled {
		repeated += n - 1
	}
	t.Logf("%d events were stored, %d refused, of %d it was unknown; %d runs were repeated", len(p.stored), len(p.refused), p.vague, repeated)
}

// failoverOptions let handlers that have lost their server notice late, so that
// what must not depend on it does not.
func failoverOptions(replicas int) dueq.Options {
	return dueq.Options{
		Replicas: replicas, Lease: 10 * time.Second, Fallback: time.Second, Concurrency: 16, MaxAttempts: 100,
		Backoff: func(int, error) time.Duration { return 20 * time.Millisecond },
	}
}

// A master fails under load: the sentinels name another, and all that was
// promised is kept.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(t *testing.T, master *redistest.Server){
		"killed":  func(_ *testing.T, master *redistest.Server) { master.Kill() },
		"stalled": func(t *testing.T, master *redistest.Server) { faultFreeze(t, master.Client()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failoverOfSentinel(t, fail)
		})
	}
}

func failoverOfSentinel(t *testing.T, fail func(t *testing.T, master *redistest.Server)) {
	sentinel := redistest.StartSentinel(t, 2)
	env := sentinel.Master().Env()
	opts := failoverOptions(1)
	publisher := newQueueOn(t, env, sentinel.Client(), opts)
	q := newQueueOn(t, env, sentinel.Client(), opts)
	p := startPromises(t, publisher)
	subscribe(t, q, "a", p)
	subscribe(t, newQueueOn(t, env, sentinel.Client(), opts), "a", p)
	p.awaitMore(t, 300)
	first := sentinel.Master()
	fail(t, first)
	p.awaitMore(t, 300)
	p.awaitHandled(t) // while more are published
	p.check(t, q)
	eventually(t, "all sentinels know of the failover", func() bool { return sentinel.Master() != first })
	conserved(t, &redistest.Env{Client: sentinel.Client(), Namespace: env.Namespace}, "a")
}

// The same on a cluster; the master comes back as a replica.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(t *testing.T, master *redistest.Server) (revive func()){
		"killed": func(_ *testing.T, master *redistest.Server) func() {
			master.Kill()
			return master.Restart
		},
		"stalled": func(t *testing.T, master *redistest.Server) func() { return faultFreeze(t, master.Client()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failoverOfCluster(t, fail)
		})
	}
}

func failoverOfCluster(t *testing.T, fail func(t *testing.T, master *redistest.Server) (revive func())) {
	cluster := redistest.StartCluster(t, 3, "--cluster-node-timeout", "1000")
	cluster.AddReplicas()
	opts := failoverOptions(1)
	opts.Partitions = 6
	q := clusterQueue(t, cluster, opts)
	p := startPromises(t, clusterQueue(t, cluster, opts))
	subscribe(t, q, "a", p)
	subscribe(t, clusterQueue(t, cluster, opts), "a", p)
	p.awaitMore(t, 300)
	revive := fail(t, cluster.Server(1))
	cluster.AwaitTakeover(1, 0)
	p.awaitHandled(t)
	revive()
	p.awaitMore(t, 300)
	p.awaitHandled(t)
	p.check(t, q)
}

// The slot of a busy lane moves from node to node, key by key.
func TestSlotMoves(t *testing.T) {
	t.Parallel()
	for name, replicas := range map[string]int{"server alone": 0, "replicas": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := redistest.StartCluster(t, 3) // no node fails
			if replicas > 0 {
				cluster.AddReplicas()
			}
			rdb := cluster.Client()
			slot := int(rdb.ClusterKeySlot(t.Context(), faultLane("ns").Pool).Val())
			at := slices.IndexFunc(cluster.Addrs(), func(addr string) bool {
				master, err := rdb.MasterForKey(t.Context(), faultLane("ns").Pool)
				return err == nil && master.Options().Addr == addr
			})
			q := clusterQueue(t, cluster, failoverOptions(replicas))
			p := startPromises(t, clusterQueue(t, cluster, failoverOptions(replicas)))
			subscribe(t, q, "a", p)
			for range 6 {
				p.awaitMore(t, 200)
				next := (at + 1) % 3
				if err := cluster.MoveSlot(slot, at, next); err != nil {
					t.Fatal(err)
				}
				at = next
			}
			p.awaitMore(t, 200)
			p.awaitHandled(t)
			p.check(t, q)
		})
	}
}

// A server that takes over may not have heard that events were settled: it holds
// them for a session that knows nothing of them. They come again, though that
// session stays busy and its lease does not end.
func TestTakeoverWithoutSettlements(t *testing.T) {
	t.Parallel()
	env := redistest.Start(t).Env()
	lane := faultLane(env.Namespace)
	q := newQueue(t, env, dueq.Options{Lease: time.Hour})
	st := newStage(t)
	subscribe(t, q, "a", st)
	publish(t, q, "a", "x", time.Now())
	a := st.next()
	session := env.Client.ZRange(t.Context(), lane.Sessions, 0, 0).Val()[0]
	record := env.Client.HGet(t.Context(), lane.Pool, a.ID).Val()
	a.end(nil)
	awaitGone(t, q, "a", a.ID)

	_, err := env.Client.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.HSet(t.Context(), lane.Pool, a.ID, record)
		pipe.SAdd(t.Context(), lane.Held(session), a.ID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal").Err(); err != nil {
		t.Fatal(err)
	}
	again := st.next()
	again.want(t, a.ID, "x", 1)
	again.end(nil)
	awaitEmpty(t, q, "a")
}
