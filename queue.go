// Package dueq delivers events at a chosen time, through Redis.
//
// A publisher says "hand this body to topic order.close at 12:30:00.000";
// handlers in any process that subscribes to the topic get it then: at least
// once, and never early by the Redis server's clock.
package dueq

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/carrier"
	"github.com/dueq-io/dueq/internal/coalesce"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/metric"
	"github.com/dueq-io/dueq/internal/script"
	"github.com/dueq-io/dueq/internal/tracing"
	"github.com/dueq-io/dueq/readyqueue"
	"github.com/dueq-io/dueq/subscriber"
)

// minPool is the smallest connection pool that serves a queue.
const minPool = 4

// loopsTime is how long ShutDown waits for goroutines that only listen.
const loopsTime = time.Second

// maxHandlers is the most handlers of one topic: one bit each says which have
// succeeded.
const maxHandlers = 64

// Queue publishes events and subscribes to topics. It is safe for use by many
// goroutines. One per process is enough.
type Queue struct {
	rdb         redis.UniversalClient
	opts        Options
	publishes   *coalesce.Group[*publication]
	spares      sync.Pool       // publications whose callers have their outcome
	tracer      *tracing.Tracer // nil: none
	carrier     *carrier.Carrier
	subscriber  *subscriber.Subscriber
	checkServer sync.Once
	calls       metric.Calls
	batches     metric.Sizes // of publishes
	settlements metric.Sizes // batches of them

	claims    context.Context // of everything that claims; ends when ShutDown begins
	endClaims context.CancelFunc
	leases    context.Context // of the lease keeper; ends when all handlers have returned
	endLeases context.CancelFunc
	carriers  sync.WaitGroup // what claims
	loops     sync.WaitGroup // everything else
	over      chan struct{}  // closed when ShutDown has ended

	session    string        // as Redis sees it; the names that hold leases begin with it
	subscribed chan struct{} // there are topics to register
	announce   chan struct{} // and to tell of

	mu         sync.Mutex
	topics     map[string]*topic
	middleware []func(Handler) Handler // of Use
	started    bool
	stopping   bool // no new subscriptions
	closed     bool // no new calls at all
}

// New returns a queue on the given client, which stays the caller's to close
// after [Queue.ShutDown]. The client needs a pool of at least four connections:
// one of them waits for bells all the time. New does not dial. Its error wraps
// [ErrOptionsInvalid].
func New(rdb redis.UniversalClient, opts Options) (*Queue, error) {
	if isNil(rdb) {
		return nil, fmt.Errorf("%w: the Redis client is nil", ErrOptionsInvalid)
	}
	if c, ok := rdb.(*redis.Client); ok && c.Options().PoolSize < minPool {
		return nil, fmt.Errorf("%w: the Redis client's PoolSize is %d, at least %d are needed",
			ErrOptionsInvalid, c.Options().PoolSize, minPool)
	}
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if opts.Replicas > 0 && !script.CanWait(rdb) {
		return nil, fmt.Errorf("%w: option Replicas is %d, but a %T cannot wait for replicas", ErrOptionsInvalid, opts.Replicas, rdb)
	}
	q := &Queue{
		opts: opts, tracer: tracing.New(opts.TracerProvider), topics: make(map[string]*topic),
		over: make(chan struct{}), session: bucket.NewID(1, time.Now()),
		subscribed: make(chan struct{}, 1), announce: make(chan struct{}, 1),
	}
	rdb = script.Together(rdb, &q.calls)
	q.rdb = rdb
	q.claims, q.endClaims = context.WithCancel(context.Background())
	q.leases, q.endLeases = context.WithCancel(context.Background())
	limits := coalesce.Limits{Len: readyqueue.MaxBatch, Size: maxBatchBytes, Crowd: crowd * perEvent}
	q.publishes = coalesce.New(limits, (*publication).size, q.publish)
	q.spares.New = newPublication
	q.carrier = carrier.New(rdb, opts.Logger, opts.Fallback,
		readyqueue.Retention{Age: opts.DeadRetention, Limit: opts.DeadLimit})
	q.subscriber = subscriber.New(rdb, q.session, subscriber.Options{
		Concurrency: opts.Concurrency, Lease: opts.Lease, HandlerTimeout: opts.HandlerTimeout,
		MaxAttempts: opts.MaxAttempts, Backoff: opts.Backoff, PersistFn: opts.PersistFn,
		HighWater: highWater, Fallback: opts.Fallback, Logger: opts.Logger,
		Batches: &q.settlements, Tracer: q.tracer,
	})
	return q, nil
}

// isNil reports whether there is no client, be it a nil pointer in the interface.
func isNil(rdb redis.UniversalClient) bool {
	switch c := rdb.(type) {
	case *redis.Client:
		return c == nil
	case *redis.ClusterClient:
		return c == nil
	case *redis.Ring:
		return c == nil
	}
	return rdb == nil
}

// Subscribe hands the topic's events to all the given handlers, from now on:
// each must succeed, and a retry runs only those that have not. Where several
// processes subscribe to one topic with several handlers, they must name them in
// the same order. Its error wraps [ErrTopicInvalid], [ErrSubscription] or
// [ErrShutDown]. Redis need not be up yet.
func (q *Queue) Subscribe(name string, handlers ...Handler) error {
	if err := checkTopic(name); err != nil {
		return err
	}
	err := checkHandlers(handlers)
	if err == nil {
		handlers, err = q.wrap(handlers)
	}
	if err != nil {
		return fmt.Errorf("%w: topic %q: %w", ErrSubscription, name, err)
	}
	return q.subscribe(name, func(m *metric.Topic) *subscriber.Topic { return q.subscriber.AddTopic(name, handlers, m) })
}

// subscribe serves a topic with what add makes.
func (q *Queue) subscribe(name string, add func(*metric.Topic) *subscriber.Topic) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopping {
		return ErrShutDown
	}
	t := q.topic(name)
	if t.subscription != nil {
		return fmt.Errorf("%w: topic %q is subscribed to already", ErrSubscription, name)
	}
	t.subscription = add(&t.metrics)
	q.start()
	q.serve(t, q.opts.Partitions)
	for _, changed := range []chan struct{}{q.subscribed, q.announce} {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	return nil
}

func checkHandlers(handlers []Handler) error {
	if len(handlers) == 0 {
		return errors.New("no handler")
	}
	if len(handlers) > maxHandlers {
		return fmt.Errorf("%d handlers, at most %d", len(handlers), maxHandlers)
	}
	for i, h := range handlers {
		if isNilHandler(h) {
			return fmt.Errorf("handler %d is nil", i)
		}
	}
	return nil
}

// start starts the goroutines that all subscriptions share. The caller holds mu.
func (q *Queue) start() {
	if q.started {
		return
	}
	q.started = true
	q.carriers.Go(func() { q.carrier.Run(q.claims) })
	q.loops.Go(func() { q.subscriber.Listen(q.claims) })
	q.loops.Go(func() { q.keepRegistered(q.claims) })
	q.loops.Go(func() { q.subscriber.KeepLeases(q.leases) })
	q.loops.Go(func() { q.keepAnnounced(q.leases) })
	q.loops.Go(func() { q.shareLateness(q.leases) })
}

// ShutDown ends the queue: it stops claiming at once, gives unstarted events
// back for other processes to take, lets running handlers finish until ctx
// ends, then ends their contexts, gives their events back too, and returns ctx's
// error. It waits likewise until what a [Consumer] has claimed is settled. No
// attempt is used up by it. Handlers may publish until they return. Every later
// call of the queue returns [ErrShutDown]. The error wraps [ErrOutcomeUnknown] if
// outcomes did not reach Redis: their events come again.
func (q *Queue) ShutDown(ctx context.Context) error {
	q.mu.Lock()
	if q.stopping {
		q.mu.Unlock()
		return ErrShutDown
	}
	q.stopping = true
	q.mu.Unlock()

	q.endClaims()
	err := q.subscriber.Drain(ctx, closedAfter(&q.carriers))
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.publishes.Wait()
	q.endLeases()
	select {
	case <-closedAfter(&q.loops):
	case <-time.After(loopsTime): // Redis hangs, and with it a call that will end by its own timeout
	}
	close(q.over)
	if err != nil {
		return fmt.Errorf("dueq: shut down: %w", err)
	}
	return nil
}

// closedAfter returns a channel that is closed when wg is done.
func closedAfter(wg *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	return done
}

// Run blocks until ctx ends or the process gets SIGINT or SIGTERM, then shuts
// the queue down, for at most Options.ShutdownTimeout, and returns what
// [Queue.ShutDown] returns. When ShutDown is called elsewhere, Run waits for it
// and returns nil.
func (q *Queue) Run(ctx context.Context) error {
	if err := q.check(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	select {
	case <-q.over:
		return nil
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.opts.ShutdownTimeout)
	defer cancel()
	if err := q.ShutDown(ctx); !errors.Is(err, ErrShutDown) {
		return err
	}
	<-q.over
	return nil
}

// check returns ErrShutDown once the queue is closed.
func (q *Queue) check() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrShutDown
	}
	return nil
}

func checkTopic(name string) error {
	if err := key.CheckTopic(name); err != nil {
		return fmt.Errorf("%w: %w", ErrTopicInvalid, err)
	}
	return nil
}
