package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/zap"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/chaos/history"
)

// workerFlag, as the first argument, makes the program a worker; the second one
// is its config.
const workerFlag = "-worker"

// quietLine on a worker's standard input makes it publish no more.
const quietLine = "quiet"

const (
	buckets      = 16
	maxAttempts  = 5
	callTimeout  = lease / 4
	shutdownTime = lease * 3 / 4
	stallTick    = lease / 40
	stallLimit   = lease / 8
	samplePeriod = 2 * time.Second
)

var topics = []string{"orders", "mails", "counters"}

// workerConfig is what a worker is told.
type workerConfig struct {
	Name     string
	Redis    shape
	Addrs    []string
	History  string   // its file
	Rate     int      // events/s to publish
	Replicas int      // that must have them
	Pulled   []string // topics that it consumes; to the others it subscribes
}

// worker is a process that publishes and handles.
type worker struct {
	workerConfig
	history *history.Writer
	queue   *dueq.Queue
	recent  recent
}

// runWorker is a worker process: it returns the exit code.
func runWorker(text string, stdin io.Reader, stderr io.Writer) int {
	logging.Disable()
	w := &worker{}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := json.Unmarshal([]byte(text), &w.workerConfig)
	if err == nil {
		w.history, err = history.Create(w.History, w.Name)
	}
	if err == nil {
		err = errors.Join(w.work(ctx, stdin), w.history.Close())
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	return 0
}

// work publishes and handles until ctx ends.
func (w *worker) work(ctx context.Context, stdin io.Reader) error {
	w.history.Write(history.Record{Kind: history.Started, Delay: lease.Milliseconds()})
	rdb := dial(w.Redis, w.Addrs)
	var err error
	w.queue, err = dueq.New(rdb, dueq.Options{
		Namespace: namespace, Buckets: buckets, Partitions: w.Redis.partitions(), Replicas: w.Replicas, Concurrency: 32, Lease: lease, Fallback: lease / 4,
		HandlerTimeout: 2 * lease, MaxAttempts: maxAttempts, PersistFn: w.persist, Logger: zap.New(notes{w.history}),
		Backoff: func(attempt int, _ error) time.Duration { return time.Duration(attempt) * backoffStep },
	})
	if err != nil {
		return err
	}
	var loops sync.WaitGroup
	hands, empty := context.WithCancel(context.Background()) // of those who hold claimed events
	defer empty()
	if err := w.serve(hands, &loops); err != nil {
		return err
	}
	load, endLoad := context.WithCancel(ctx)
	defer endLoad()
	orphaned := make(chan struct{})
	go func() { // it ends with the process
		lines := bufio.NewScanner(stdin)
		for lines.Scan() {
			if lines.Text() == quietLine {
				endLoad()
			}
		}
		close(orphaned)
	}()
	loops.Go(func() { w.load(load) })
	loops.Go(func() { w.watch(ctx) })
	select {
	case <-ctx.Done():
	case <-orphaned:
		return errors.New("the program that started this worker is gone")
	}
	w.shutDown()
	empty()
	loops.Wait()
	return rdb.Close()
}

// serve subscribes to topics and consumes others, in loops that end once the queue
// is shut down and hands has ended.
func (w *worker) serve(hands context.Context, loops *sync.WaitGroup) error {
	for _, topic := range topics {
		if !slices.Contains(w.Pulled, topic) {
			if err := w.queue.Subscribe(topic, dueq.HandlerFunc(w.handle)); err != nil {
				return err
			}
			continue
		}
		consumer, err := w.queue.Consume(topic)
		if err != nil {
			return err
		}
		for range claimers {
			loops.Go(func() { w.pull(hands, consumer, loops) })
		}
	}
	return nil
}

// shutDown ends the queue, and records whether Redis has all outcomes.
func (w *worker) shutDown() {
	w.history.Write(history.Record{Kind: history.Stopping, Delay: shutdownTime.Milliseconds()})
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	r := history.Record{Kind: history.Stopped, Outcome: history.OK}
	if err := w.queue.ShutDown(ctx); err != nil {
		r.Text = err.Error()
		if strings.Contains(r.Text, "did not reach Redis") {
			r.Outcome = history.Failed
		}
	}
	w.history.Write(r)
}

// watch records when the process has been silent, and what it uses.
func (w *worker) watch(ctx context.Context) {
	tick := time.NewTicker(stallTick)
	defer tick.Stop()
	last, sampled := time.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		if silent := now.Sub(last); silent > stallLimit {
			w.history.Write(history.Record{Kind: history.Stalled, Target: w.Name, Delay: silent.Milliseconds()})
		}
		last = now
		if now.Sub(sampled) > samplePeriod {
			sampled = now
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			w.history.Write(history.Record{Kind: history.Sampled, Heap: m.HeapInuse, Goroutines: runtime.NumGoroutine()})
		}
	}
}
