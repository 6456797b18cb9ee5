package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/key"
)

const (
	demoTopic    = "demo"
	demoAttempts = 3
	demoBackoff  = 300 * time.Millisecond
	demoBatch    = 500
	// demoLead is how far ahead the first events are due.
	demoLead = 200 * time.Millisecond
)

// errDemo is what the demo's handler fails with.
var errDemo = errors.New("the demo makes this event fail")

// demo is one run of the verb demo.
type demo struct {
	rdb       redis.UniversalClient
	namespace string
	spread    time.Duration
	patience  time.Duration
	tally     *tally
	progress  *progress
	log       *zap.Logger

	offset time.Duration // how far the server's clock is ahead
}

// run publishes, delivers and cleans up. took is from the first publish to the
// last delivery, 0 if it did not come to that.
func (d *demo) run(ctx context.Context) (took time.Duration, err error) {
	d.offset, err = clockOffset(ctx, d.rdb, key.NewLane(d.namespace, demoTopic, 0, 1, 1).Pool)
	if err != nil {
		return 0, unlessInterrupted(ctx, err)
	}
	q, err := dueq.New(d.rdb, dueq.Options{
		Namespace: d.namespace, MaxAttempts: demoAttempts, PersistFn: d.persist, Logger: d.log,
		Backoff: func(int, error) time.Duration { return demoBackoff },
	})
	if err != nil {
		return 0, err
	}
	if err := q.Subscribe(demoTopic, dueq.HandlerFunc(d.handle)); err != nil {
		return 0, err
	}
	start := time.Now()
	err = d.deliver(ctx, q)
	took = time.Since(start)
	err = errors.Join(err, finish(ctx, q.ShutDown), finish(ctx, func(ctx context.Context) error {
		return removeNamespace(ctx, d.rdb, d.namespace)
	}))
	if n := d.tally.now().Early; n > 0 {
		err = errors.Join(err, fmt.Errorf("%d deliveries were early", n))
	}
	return took, err
}

// deliver publishes all events and waits until they are delivered or persisted.
func (d *demo) deliver(ctx context.Context, q *dueq.Queue) error {
	var publisher sync.WaitGroup
	defer publisher.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	published := make(chan error, 1)
	publisher.Go(func() { published <- d.publish(ctx, q) })

	tick := time.NewTicker(d.progress.interval())
	defer tick.Stop()
	start := time.Now()
	for {
		select {
		case <-d.tally.done:
			return nil
		case <-ctx.Done():
			return errInterrupted
		case err := <-published:
			if err != nil {
				return unlessInterrupted(ctx, err)
			}
		case <-tick.C:
			c := d.tally.now()
			d.progress.show(progressLine(time.Since(start), len(d.tally.events), c))
			if d.tally.quiet() > d.patience {
				return fmt.Errorf("nothing has happened for %v: of %d events %d are published and %d done",
					d.patience, len(d.tally.events), c.Published, c.Delivered+c.Persisted)
			}
		}
	}
}

// publish publishes all events. Those of a batch are due from [demoLead] after
// it on, by the server's clock, so that none is due before it is published.
func (d *demo) publish(ctx context.Context, q *dueq.Queue) error {
	for n := 0; n < len(d.tally.events); {
		batch := make([]dueq.NewEvent, min(demoBatch, len(d.tally.events)-n))
		now := time.Now()
		for i := range batch {
			due := now.Add(d.offset + demoLead + rand.N(d.spread+1))
			batch[i] = dueq.NewEvent{Body: strconv.AppendInt(nil, int64(n), 10), EffectTime: due}
			n++
		}
		_, err := q.PublishEvents(ctx, demoTopic, batch)
		stored := len(batch)
		if failed, ok := errors.AsType[*dueq.BatchError](err); ok {
			stored = failed.Stored
		} else if err != nil {
			stored = 0
		}
		d.tally.publish(stored, now.Add(demoLead+d.spread))
		if err != nil {
			return err
		}
	}
	return nil
}

// handle handles an event. One in ten fails once, one in a hundred always.
func (d *demo) handle(_ context.Context, e *dueq.Event) error {
	late := time.Now().Add(d.offset).Sub(e.EffectTime)
	n, err := strconv.Atoi(string(e.Body))
	if err != nil {
		return dueq.SkipRetry(err)
	}
	d.tally.begin(n, e.Attempt, late)
	if n%10 == 5 && e.Attempt == 1 || n%100 == 50 {
		return errDemo
	}
	d.tally.deliver(n)
	return nil
}

// persist takes the events that have failed for good; a real program would
// store them.
func (d *demo) persist(_ context.Context, e *dueq.Event, _ error) error {
	n, err := strconv.Atoi(string(e.Body))
	if err == nil {
		d.tally.persist(n)
	}
	return err
}

// unlessInterrupted is err, unless it came of an interruption.
func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	return err
}
