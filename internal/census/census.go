// Package census counts the events of many topics.
package census

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/dueq-io/dueq"
)

// atOnce is how many topics are counted at a time.
const atOnce = 8

// Count returns the stats of each of the topics, or why one of them could not be
// counted.
func Count(ctx context.Context, q *dueq.Queue, topics []string) ([]dueq.Stats, error) {
	counts := make([]dueq.Stats, len(topics))
	errs := make([]error, min(atOnce, len(topics)))
	var next atomic.Int64
	var counting sync.WaitGroup
	for worker := range errs {
		counting.Go(func() {
			for errs[worker] == nil {
				i := int(next.Add(1)) - 1
				if i >= len(topics) {
					return
				}
				counts[i], errs[worker] = q.Stats(ctx, topics[i])
			}
		})
	}
	counting.Wait()
	return counts, cmp.Or(errs...)
}
