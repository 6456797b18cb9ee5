package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/dueq-io/dueq/bench/internal/measure"
)

const (
	// load is the topic of all scenarios with events.
	load = "load"
	// handlers is how many handlers run at once, and callers how many publish.
	handlers, callers = 64, 64
	// readTimeout is long, so that a stall of the machine shows in the figures
	// and not as a failure.
	readTimeout = 30 * time.Second
	// closeTimeout bounds the end of a queue.
	closeTimeout = 10 * time.Second
)

// queue is what a system is measured by. Its events are all of topic load.
type queue interface {
	// publish stores one event.
	publish(ctx context.Context, body []byte, due time.Time) error
	// consume starts to hand the events of the topics to handle, and forgets
	// them afterwards. It returns at once.
	consume(ctx context.Context, topics []string, handle func(body []byte)) error
	// pending is how many events the server has.
	pending(ctx context.Context) (int, error)
	io.Closer
}

// filler is a queue that can store many events at once.
type filler interface {
	fill(ctx context.Context, n int, at measure.Schedule) error
}

// system is an entry of the comparison.
type system struct {
	name     string
	settings string   // as people read them
	modules  []string // whose versions tell which system it is
	only     []string // scenarios it can do; nil: all
	batches  bool     // it publishes with fill, not with a call for each event
	open     func(addr string) (queue, error)
	start    func(ctx context.Context) (*host, error)
	missing  func() string // why it cannot run here, or ""; nil: it always can
}

func systems() []system {
	const goRedis = "github.com/redis/go-redis/v9"
	asynqModules := []string{"github.com/hibiken/asynq", goRedis}
	return []system{
		{
			name: "dueq", settings: "as shipped, PublishEvent",
			modules: []string{"github.com/dueq-io/dueq", goRedis}, open: openDueq, start: startRedis,
		},
		{
			name: "asynq", settings: "Concurrency 64, polls every 1 s, schedule every 5 s (its defaults), Retention 0, no log",
			modules: asynqModules, open: openAsynq(0, 0), start: startRedis,
		},
		{
			name: "asynq-fast", settings: fmt.Sprintf("the same, but polls every %v, schedule every %v", fastTasks, fastSchedule),
			modules: asynqModules, open: openAsynq(fastTasks, fastSchedule), start: startRedis,
			only: []string{"drain", "steady", "mixed", "idle"}, // elsewhere nothing polls
		},
		{
			name: "naive", settings: "HSET+ZADD, 3 buckets looked at every 100 ms (ZRANGE by score, RPUSH, ZREM), 64 times BLPOP, HGET, HDEL",
			modules: []string{goRedis}, open: openNaive, start: startRedis,
		},
		{
			name: "beanstalkd", settings: "8 connections to put, 64 to reserve and delete, no log on disk",
			modules: []string{"github.com/beanstalkd/go-beanstalk"}, open: openBeanstalk, start: startBeanstalk,
			missing: beanstalkMissing,
		},
		{
			name: "raw", settings: "pipelines of 1,000: HSET, ZADD; ZRANGE, ZREMRANGEBYRANK, HMGET, HDEL",
			modules: []string{goRedis}, open: openRaw, start: startRedis,
			only: []string{"publish", "drain"}, batches: true,
		},
		{
			name: "raw-each", settings: "a pipeline per event: HSET, ZADD",
			modules: []string{goRedis}, open: openRaw, start: startRedis,
			only: []string{"publish"},
		},
	}
}

func (s system) title() string { return s.name }

func (s system) can(scenario string) bool {
	return s.only == nil || slices.Contains(s.only, scenario)
}

// publishEach publishes n events with a call for each, from 64 callers.
func publishEach(ctx context.Context, q queue, n int, at measure.Schedule) error {
	return measure.Spread(ctx, n, callers, func(ctx context.Context, i int) error {
		due := at(i)
		return q.publish(ctx, measure.Body(i, due), due)
	})
}

// fill stores n events the fastest way that the queue has.
func fill(ctx context.Context, q queue, n int, at measure.Schedule) error {
	if f, ok := q.(filler); ok {
		return f.fill(ctx, n, at)
	}
	return publishEach(ctx, q, n, at)
}
