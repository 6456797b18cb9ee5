package subscriber

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
	"github.com/dueq-io/dueq/readyqueue"
)

const (
	// bellsPerWait is the most bells that one BLPOP waits for.
	bellsPerWait = 1000
	// maxWaits is the most lanes per node of a cluster.
	maxWaits = 10_000
	// wakeTTL is how long a token for our own wait may lie unheard.
	wakeTTL = time.Minute
)

// bells waits for the bells of idle lanes: in one blocking call for up to a
// thousand lanes, or on a cluster, where a call cannot span slots, one per lane.
type bells struct {
	rdb      redis.UniversalClient
	session  string
	fallback time.Duration
	log      *zap.Logger

	mu      sync.Mutex
	waits   []*wait
	of      map[*Lane]*wait
	ctx     context.Context       // of run; nil before
	waiter  redis.UniversalClient // for BLPOP; nil before run
	running sync.WaitGroup
}

// wait is one BLPOP after another.
type wait struct {
	b    *bells
	wake string // the list that interrupts it

	mu      sync.Mutex
	lanes   map[string]*Lane // by bell: those that are listened to
	added   int              // lanes in its care
	asleep  bool             // a BLPOP is under way
	rousing bool             // an interruption is on its way
}

func newBells(rdb redis.UniversalClient, session string, fallback time.Duration, log *zap.Logger) *bells {
	return &bells{rdb: rdb, session: session, fallback: fallback, log: log, of: make(map[*Lane]*wait)}
}

// add takes a lane's bell into care; [bells.park] starts listening to it.
func (b *bells) add(l *Lane) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.waits); n > 0 && script.Single(b.rdb) && b.waits[n-1].added < bellsPerWait {
		b.waits[n-1].added++
		b.of[l] = b.waits[n-1]
		return
	}
	w := &wait{b: b, wake: l.key.Wake(b.session), lanes: make(map[string]*Lane), added: 1}
	b.waits = append(b.waits, w)
	b.of[l] = w
	if b.ctx != nil {
		b.running.Go(func() { w.run(b.ctx) })
	}
}

// run listens until ctx ends.
func (b *bells) run(ctx context.Context) {
	b.mu.Lock()
	b.ctx = ctx
	waiter, done := waitingClient(b.rdb)
	defer done()
	b.waiter = waiter
	for _, w := range b.waits {
		b.running.Go(func() { w.run(ctx) })
	}
	b.mu.Unlock()
	<-ctx.Done()
	b.mu.Lock()
	waits := slices.Clone(b.waits)
	b.mu.Unlock()
	for _, w := range waits {
		w.rouse(ctx)
	}
	b.running.Wait()
	b.ringOn(context.WithoutCancel(ctx))
}

// ringOn wakes other processes in our stead: the last bells that we heard, we
// may not have heeded.
func (b *bells) ringOn(ctx context.Context) {
	b.mu.Lock()
	lanes := make([]*key.Lane, 0, len(b.of))
	for l := range b.of {
		lanes = append(lanes, l.key)
	}
	b.mu.Unlock()
	if err := readyqueue.Ring(ctx, b.rdb, lanes); err != nil {
		b.log.Warn("cannot ring for other processes; they will look by themselves", zap.Error(err))
	}
}

// waitingClient is the client that BLPOP uses. On a cluster that needs a
// connection per lane, more than the caller's pool may have, so it is one with
// the same options and room for them; done closes it.
func waitingClient(rdb redis.UniversalClient) (client redis.UniversalClient, done func()) {
	cluster, ok := script.Client(rdb).(*redis.ClusterClient)
	if !ok {
		return rdb, func() {}
	}
	opts := *cluster.Options()
	opts.PoolSize, opts.MinIdleConns, opts.MaxActiveConns = maxWaits, 0, 0
	own := redis.NewClusterClient(&opts)
	return own, func() { _ = own.Close() }
}

// park listens to a lane's bell from now on.
func (b *bells) park(ctx context.Context, l *Lane) {
	if l.parked.Swap(true) {
		return
	}
	b.mu.Lock()
	w := b.of[l]
	b.mu.Unlock()
	w.mu.Lock()
	w.lanes[l.key.Bell] = l
	w.mu.Unlock()
	w.rouse(ctx)
}

// rouse interrupts a BLPOP that is under way: its lanes have changed, or nobody is to
// listen any more. One that has begun is not given up with ctx: the next, which
// may be for the end, relies on it.
func (w *wait) rouse(ctx context.Context) {
	w.mu.Lock()
	needed := w.asleep && !w.rousing
	w.rousing = w.rousing || needed
	w.mu.Unlock()
	if !needed {
		return
	}
	ctx = context.WithoutCancel(ctx)
	_, err := w.b.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.LPush(ctx, w.wake, "1")
		pipe.Expire(ctx, w.wake, wakeTTL)
		return nil
	})
	if err != nil { // it ends by itself within the fallback interval
		w.mu.Lock()
		w.rousing = false
		w.mu.Unlock()
	}
}

// run waits for one bell after another.
func (w *wait) run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		bell, err := w.next(ctx)
		switch {
		case err == nil:
			failures = 0
			w.heard(bell)
		case errors.Is(err, redis.Nil): // nothing rang
		default:
			if ctx.Err() != nil {
				return
			}
			failures++
			w.b.log.Warn("cannot listen for bells; will try again", zap.Error(err))
			w.interrupted(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(min(50*time.Millisecond<<min(failures, 7), 5*time.Second)):
			}
		}
	}
}

// interrupted has the lanes look for what went unheard, and for leases that we do
// not know of: another server may have taken over, which has not heard of all
// that we have settled.
func (w *wait) interrupted(ctx context.Context) {
	script.Reload(ctx, w.b.waiter)
	w.mu.Lock()
	lanes := slices.Collect(maps.Values(w.lanes))
	w.mu.Unlock()
	for _, l := range lanes {
		l.suspect.Store(true)
		l.kick()
	}
}

// next waits for the next bell, or for an interruption.
func (w *wait) next(ctx context.Context) (bell string, err error) {
	w.mu.Lock()
	keys := make([]string, 0, len(w.lanes)+1)
	keys = append(keys, w.wake)
	for bell := range w.lanes { // in random order: none goes short
		keys = append(keys, bell)
	}
	w.asleep = ctx.Err() == nil
	asleep := w.asleep
	w.mu.Unlock()
	if !asleep {
		return "", ctx.Err()
	}
	got, err := script.Once(ctx, w.b.waiter, func(p redis.Pipeliner) *redis.StringSliceCmd {
		return p.BLPop(ctx, max(w.b.fallback, time.Second), keys...)
	}).Result()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asleep = false
	if err != nil {
		w.rousing = false // the token may have gone with a lost reply; one too many does no harm
		return "", err
	}
	if got[0] == w.wake {
		w.rousing = false
	}
	return got[0], nil
}

// heard makes a lane look for events. One whose handlers are all busy hands the
// token on to other processes (a move without room rings again) and stops
// listening until it has caught up.
func (w *wait) heard(bell string) {
	w.mu.Lock()
	l := w.lanes[bell]
	if l != nil && !l.topic.hasRoom() {
		delete(w.lanes, bell)
		l.backlog.Store(true)
		l.parked.Store(false)
	}
	w.mu.Unlock()
	if l != nil {
		l.kick()
	}
}
