package main

import (
	"context"
	"errors"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// Polling that is fast, but leaves the server some time for other work.
const (
	fastTasks    = 20 * time.Millisecond
	fastSchedule = 100 * time.Millisecond
)

// asynqQueue is asynq: a topic is a queue of its own.
type asynqQueue struct {
	opt             asynq.RedisClientOpt
	tasks, schedule time.Duration // how often it polls; zero: its defaults
	client          *asynq.Client
	server          *asynq.Server // nil: consumes nothing
	rdb             *redis.Client // for pending
}

func openAsynq(tasks, schedule time.Duration) func(addr string) (queue, error) {
	return func(addr string) (queue, error) {
		opt := asynq.RedisClientOpt{Addr: addr, ReadTimeout: readTimeout, PoolSize: 64}
		return &asynqQueue{
			opt: opt, tasks: tasks, schedule: schedule,
			client: asynq.NewClient(opt),
			rdb:    redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: readTimeout}),
		}, nil
	}
}

func (a *asynqQueue) publish(ctx context.Context, body []byte, due time.Time) error {
	_, err := a.client.EnqueueContext(ctx, asynq.NewTask(load, body), asynq.Queue(load), asynq.ProcessAt(due), asynq.Retention(0))
	return err
}

func (a *asynqQueue) consume(_ context.Context, topics []string, handle func([]byte)) error {
	queues := make(map[string]int)
	for _, topic := range topics {
		queues[topic] = 1
	}
	a.server = asynq.NewServer(a.opt, asynq.Config{
		Concurrency: handlers, Queues: queues,
		TaskCheckInterval: a.tasks, DelayedTaskCheckInterval: a.schedule,
		Logger: silence{}, LogLevel: asynq.FatalLevel,
	})
	return a.server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		handle(t.Payload())
		return nil
	}))
}

func (a *asynqQueue) pending(ctx context.Context) (int, error) {
	pipe := a.rdb.Pipeline()
	const prefix = "asynq:{" + load + "}:"
	counts := []*redis.IntCmd{
		pipe.LLen(ctx, prefix+"pending"), pipe.LLen(ctx, prefix+"active"),
		pipe.ZCard(ctx, prefix+"scheduled"), pipe.ZCard(ctx, prefix+"retry"), pipe.ZCard(ctx, prefix+"archived"),
	}
	_, err := pipe.Exec(ctx)
	sum := 0
	for _, c := range counts {
		sum += int(c.Val())
	}
	return sum, err
}

func (a *asynqQueue) Close() error {
	if a.server != nil {
		a.server.Shutdown()
	}
	return errors.Join(a.client.Close(), a.rdb.Close())
}

// silence is a log that nobody reads.
type silence struct{}

func (silence) Debug(...any) {}
func (silence) Info(...any)  {}
func (silence) Warn(...any)  {}
func (silence) Error(...any) {}
func (silence) Fatal(...any) {}
