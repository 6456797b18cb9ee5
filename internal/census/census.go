// Package census counts and checks the events of many topics, each by itself.
package census

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dueq-io/dueq"
)

const (
	// atOnce is how many topics are counted at a time.
	atOnce = 8
	// patience is how long a topic may take until another is counted beside it: the
	// server that has it may hang, and those of others not.
	patience = 250 * time.Millisecond
)

// errLate is why a topic is not counted when the time for that has ended.
var errLate = fmt.Errorf("not counted in time: %w", context.DeadlineExceeded)

// Topic is how many events a topic has, or why they could not be counted.
type Topic struct {
	Name  string
	Stats dueq.Stats
	Err   error
}

// Count counts the events of each of the topics, in their order. Those that are
// not counted when ctx ends have an error that says so.
func Count(ctx context.Context, q *dueq.Queue, names []string) []Topic {
	type result struct {
		i     int
		stats dueq.Stats
		err   error
	}
	results := make(chan result, len(names)) // never waited for
	go Each(ctx, q, names, func(i int, stats dueq.Stats, err error) { results <- result{i, stats, err} })
	topics := make([]Topic, len(names))
	for i, name := range names {
		topics[i] = Topic{Name: name, Err: errLate}
	}
	for range names {
		select {
		case r := <-results:
			topics[r.i].Stats, topics[r.i].Err = r.stats, r.err
		case <-ctx.Done():
			return topics
		}
	}
	return topics
}

// Each counts the events of topics and calls do, from several goroutines at once,
// with the index of each and what came of it. When ctx ends it begins with no more
// of them. It returns when all calls have.
func Each(ctx context.Context, q *dueq.Queue, names []string, do func(i int, stats dueq.Stats, err error)) {
	slots := make(chan struct{}, atOnce)
	var counting sync.WaitGroup
	defer counting.Wait()
	for i, name := range names {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		counting.Go(func() {
			leave := sync.OnceFunc(func() { <-slots })
			defer leave()
			defer time.AfterFunc(patience, leave).Stop()
			stats, err := q.Stats(ctx, name)
			do(i, stats, err)
		})
	}
}

// Audit calls do, a queue's Check or Repair, with each of the topics. One with which
// it fails does not keep the others from being looked at, unless Redis cannot be
// reached at all: then each would take its time to fail. There is a report of each
// with which it did not fail, or not before it found something.
func Audit(ctx context.Context, q *dueq.Queue, names []string,
	do func(ctx context.Context, topic string) (*dueq.Report, error),
) (reports []*dueq.Report, err error) {
	reports = make([]*dueq.Report, 0, len(names))
	for _, name := range names {
		report, failed := do(ctx, name)
		if failed == nil || len(report.Findings) > 0 {
			reports = append(reports, report)
		}
		if failed == nil {
			continue
		}
		err = errors.Join(err, failed)
		if _, away := q.Topics(ctx); away != nil {
			break
		}
	}
	return reports, err
}
