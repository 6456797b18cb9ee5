// Package carrier runs the goroutines that move what is due.
//
// They sleep in one alarm clock until a lane's earliest bucket head or session
// deadline is due, by the Redis server's clock. Messages on the lanes' channels
// move alarms forward; when the subscription to them was interrupted, and at a
// slow interval anyway, the heads are read again.
package carrier

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/dueq-io/dueq/delayqueue"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/metric"
	"github.com/dueq-io/dueq/internal/script"
	"github.com/dueq-io/dueq/readyqueue"
)

// carriers is how many lanes are worked on at a time.
const carriers = 4

// Carrier watches over any number of lanes.
type Carrier struct {
	rdb       redis.UniversalClient
	log       *zap.Logger
	fallback  time.Duration
	retention readyqueue.Retention
	clock     *delayqueue.Queue[*Lane]
	added     chan struct{} // there are channels to subscribe to

	mu    sync.Mutex
	lanes map[string]*Lane // by alarm channel
	fresh []string         // channels to subscribe to
}

// New returns a carrier that looks for lost signals every fallback, and about
// every twenty of them for dead events that r does not keep.
func New(rdb redis.UniversalClient, log *zap.Logger, fallback time.Duration, r readyqueue.Retention) *Carrier {
	return &Carrier{
		rdb: rdb, log: log, fallback: fallback, retention: r,
		clock: delayqueue.New[*Lane](0),
		added: make(chan struct{}, 1),
		lanes: make(map[string]*Lane),
	}
}

// Lane makes a lane's place in the alarm clock; [Lane.Start] starts to watch
// over it. metrics counts what is found on the way.
func (c *Carrier) Lane(k *key.Lane, metrics *metric.Topic) *Lane {
	return &Lane{key: k, carrier: c, metrics: metrics, stale: true}
}

// Start starts to watch over the lane; m moves its events.
func (l *Lane) Start(m mover) {
	l.mover = m
	c := l.carrier
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lanes[l.key.Alarm] = l
	c.fresh = append(c.fresh, l.key.Alarm)
	select {
	case c.added <- struct{}{}:
	default:
	}
}

// Run carries until ctx ends.
func (c *Carrier) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for range carriers {
		wg.Go(func() { c.carry(ctx) })
	}
	wg.Go(func() { c.listen(ctx) })
	wg.Go(func() { c.patrol(ctx) })
	wg.Go(func() { c.retain(ctx) })
}

// carry takes lanes out of the alarm clock and does what is due in them.
func (c *Carrier) carry(ctx context.Context) {
	for {
		l, err := c.clock.Dequeue(ctx)
		if err != nil {
			return
		}
		if t, ok := l.begin(); ok {
			c.turn(ctx, l, t)
		}
	}
}

func (c *Carrier) turn(ctx context.Context, l *Lane, t turn) {
	var found readyqueue.Claimed
	var again bool
	var err error
	if t.sessions {
		var next int64
		if next, err = readyqueue.Expire(ctx, c.rdb, l.key, t.now); err == nil {
			l.expired(next)
		}
	}
	if err == nil {
		found, again, err = l.mover.Move(ctx, t.due)
	}
	if err != nil && ctx.Err() == nil {
		script.Reload(ctx, c.rdb)
		c.log.Warn("cannot carry; will try again", zap.String("topic", l.key.Topic), zap.Error(err))
	}
	l.end(found, again, err)
}

// expired notes the earliest session deadline that is left.
func (l *Lane) expired(next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = next
}

// listen hears the lanes' alarms. The client subscribes again by itself when it
// has reconnected.
func (c *Carrier) listen(ctx context.Context) {
	alarms := c.rdb.Subscribe(ctx)
	defer func() { _ = alarms.Close() }()
	messages := alarms.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(10 * time.Second))
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-messages:
			c.hear(m)
		case <-c.added:
			c.mu.Lock()
			fresh := c.fresh
			c.fresh = nil
			c.mu.Unlock()
			_ = alarms.Subscribe(ctx, fresh...) // on an error it is made good after the reconnect
		}
	}
}

func (c *Carrier) hear(message any) {
	switch m := message.(type) {
	case *redis.Message:
		if l := c.lane(m.Channel); l != nil {
			l.alarm(m.Payload)
		}
	case *redis.Subscription: // the first, or after a reconnect: what came before went unheard
		if l := c.lane(m.Channel); l != nil && m.Kind == "subscribe" {
			l.Refresh()
		}
	}
}

// all are the lanes that are watched over.
func (c *Carrier) all() []*Lane {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.lanes))
}

func (c *Carrier) lane(channel string) *Lane {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lanes[channel]
}
