package script

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/coalesce"
)

// Together returns a client on which the script calls of many goroutines travel
// in one round trip, as soon as the last one has returned: a round trip costs
// Redis as much as a small script. On a cluster, where one node's delay would
// become every node's, it returns the client as it is.
func Together(rdb redis.UniversalClient) redis.UniversalClient {
	if !Single(rdb) {
		return rdb
	}
	t := &together{UniversalClient: rdb}
	limits := coalesce.Limits{Len: 64, Size: 8192, Crowd: 64}
	t.trips = coalesce.New(limits, func(tr *trip) int { return tr.size }, t.fly)
	return t
}

// Single reports whether all keys lie on one server.
func Single(rdb redis.UniversalClient) bool {
	switch rdb.(type) {
	case *redis.Client, *together:
		return true
	}
	return false
}

type together struct {
	redis.UniversalClient
	trips *coalesce.Group[*trip]
}

// trip is the calls of one goroutine.
type trip struct {
	calls []*Call
	size  int // number of words
	done  sync.WaitGroup
}

func (t *together) run(ctx context.Context, calls []*Call) {
	if err := ctx.Err(); err != nil {
		for _, c := range calls {
			c.Reply, c.Err = nil, err
		}
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
		calls = append(calls[:len(calls):len(calls)], tr.calls...)
	}
	runAll(context.Background(), t.UniversalClient, calls)
	for _, tr := range trips {
		tr.done.Done()
	}
}
