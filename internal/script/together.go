package script

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/coalesce"
	"github.com/dueq-io/dueq/internal/metric"
)

// Together returns a client on which calls are measured, and on which those of
// many goroutines travel in one round trip, as soon as the last one has returned:
// a round trip costs Redis as much as a small script. Not on a cluster, where one
// node's delay would become every node's.
func Together(rdb redis.UniversalClient, calls *metric.Calls) redis.UniversalClient {
	t := &together{UniversalClient: rdb, calls: calls}
	if Single(rdb) {
		limits := coalesce.Limits{Len: 64, Size: 8192, Crowd: 64}
		t.trips = coalesce.New(limits, func(tr *trip) int { return tr.size }, t.fly)
	}
	return t
}

// Client is the client that [Together] was given, whose type says what kind of
// Redis it talks to.
func Client(rdb redis.UniversalClient) redis.UniversalClient {
	if t, ok := rdb.(*together); ok {
		return t.UniversalClient
	}
	return rdb
}

// Single reports whether all keys lie on one server.
func Single(rdb redis.UniversalClient) bool {
	_, single := Client(rdb).(*redis.Client)
	return single
}

type together struct {
	redis.UniversalClient
	calls *metric.Calls
	trips *coalesce.Group[*trip] // nil on a cluster
}

// trip is the calls of one goroutine.
type trip struct {
	calls []*Call
	size  int // number of words
	done  sync.WaitGroup
}

func (t *together) run(ctx context.Context, calls []*Call) {
	if t.trips == nil || replicas(calls) > 0 { // by themselves: others would wait for the replicas, too
		start := time.Now()
		runWhere(ctx, t.UniversalClient, calls)
		t.measure(start, calls)
		return
	}
	if err := ctx.Err(); err != nil {
		fail(calls, err)
		return
	}
	tr := &trip{calls: calls}
	for _, c := range calls {
		tr.size += c.size()
	}
	tr.done.Add(1)
	t.trips.Join(tr)
	tr.done.Wait()
}

func (t *together) fly(trips []*trip) {
	calls := trips[0].calls
	for _, tr := range trips[1:] {
		calls = append(slices.Clip(calls), tr.calls...)
	}
	start := time.Now()
	runAll(context.Background(), t.UniversalClient, calls)
	t.measure(start, calls)
	for _, tr := range trips {
		tr.done.Done()
	}
}

// measure counts calls by the round trip in which they travelled.
func (t *together) measure(start time.Time, calls []*Call) {
	took := time.Since(start)
	for _, c := range calls {
		m := t.calls.Of(c.name())
		m.Took.Observe(took)
		if c.Err != nil {
			m.Failed.Add(1)
		}
	}
}
