package dueq

import (
	"context"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq/internal/metric"
	"github.com/dueq-io/dueq/internal/script"
)

// latenessEvery is how often a process tells the others how late its deliveries
// were.
const latenessEvery = 5 * time.Second

// latenessBatch is how many topics one round trip tells of.
const latenessBatch = 100

// latenessSum is the counter of a lane's stats that has the sum, in milliseconds.
const latenessSum = "late:ms"

// latenessField is the counter of a lane's stats that has element i of the
// lateness's counts, named by its bound.
func latenessField(i int) string {
	if i == metric.NumBounds {
		return "late:more"
	}
	return "late:" + strconv.FormatInt(metric.Bounds()[i].Milliseconds(), 10)
}

// sharedLateness is what all processes know of a topic's lateness here.
type sharedLateness struct {
	counts metric.Counts
	millis int64
}

// shareLateness adds this process's lateness to the topics' stats now and then,
// and a last time when ctx has ended. Should that fail, the numbers are wrong and
// nothing else is.
func (q *Queue) shareLateness(ctx context.Context) {
	shared := make(map[*topic]sharedLateness)
	tick := time.NewTicker(latenessEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			_ = q.addLateness(context.WithoutCancel(ctx), shared) // nobody is left to try again
			return
		case <-tick.C:
			if err := q.addLateness(ctx, shared); err != nil && ctx.Err() == nil {
				q.opts.Logger.Warn("cannot tell other processes how late deliveries were; will try again", zap.Error(err))
			}
		}
	}
}

// latenessNews is what a topic's shared lateness is to become.
type latenessNews struct {
	topic *topic
	state sharedLateness
	call  *script.Call
}

// addLateness adds what is new since it was shared: one call for each topic that
// had deliveries.
func (q *Queue) addLateness(ctx context.Context, shared map[*topic]sharedLateness) (err error) {
	var news []latenessNews
	var calls []*script.Call
	q.mu.Lock()
	for _, t := range q.topics {
		counts, sum := t.metrics.Lateness.Load()
		now := sharedLateness{counts, sum.Milliseconds()}
		if now != shared[t] {
			c := t.latenessCall(shared[t], now)
			news, calls = append(news, latenessNews{t, now, c}), append(calls, c)
		}
	}
	q.mu.Unlock()
	for some := range slices.Chunk(calls, latenessBatch) {
		script.RunAll(ctx, q.rdb, some)
	}
	for _, n := range news {
		if n.call.Err != nil {
			err = n.call.Err
		}
		if n.call.Err == nil || !script.NotRun(n.call.Err) { // rather not counted than counted twice
			shared[n.topic] = n.state
		}
	}
	return err
}

// latenessCall is the call that adds what came in between two states.
func (t *topic) latenessCall(before, now sharedLateness) *script.Call {
	stats := t.own[0].Stats
	var commands [][]any
	for i := range now.counts {
		if n := now.counts[i] - before.counts[i]; n != 0 {
			commands = append(commands, []any{"hincrby", stats, latenessField(i), n})
		}
	}
	if n := now.millis - before.millis; n != 0 {
		commands = append(commands, []any{"hincrby", stats, latenessSum, n})
	}
	return &script.Call{Name: "share", Commands: commands}
}

// addLateness takes in the lateness among a lane's counters.
func (h *Histogram) addLateness(counters map[string]int64) {
	for i := range h.Counts {
		h.Counts[i] += int(counters[latenessField(i)])
	}
	h.Sum += time.Duration(counters[latenessSum]) * time.Millisecond
}
