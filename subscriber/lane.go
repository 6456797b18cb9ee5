package subscriber

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
	"github.com/dueq-io/dueq/internal/tracing"
	"github.com/dueq-io/dueq/pool"
	"github.com/dueq-io/dueq/readyqueue"
)

// errSettling makes a carrier come back: it must not claim while a settlement
// is tried again.
var errSettling = errors.New("subscriber: a settlement is being tried again")

// Lane is what this process holds of one lane.
type Lane struct {
	topic   *Topic
	s       *Subscriber
	key     *key.Lane
	kick    func()      // asks for a turn of Move
	backlog atomic.Bool // more is due than the last claim took
	parked  atomic.Bool // its bell is listened to
	suspect atomic.Bool // Redis may have leased us events that we do not know of

	// gate keeps claims and second tries of a settlement apart: a second try
	// must not end the lease of an event that we have claimed anew meanwhile.
	gate sync.RWMutex

	mu       sync.Mutex
	session  string // a new one each time the leases were lost
	epoch    int
	leases   map[string]*delivery // by id: claimed and not settled
	deadline time.Time            // when the leases end unless they are extended, at the earliest
	claims   int                  // how many claims have begun and ended: odd while one is under way
	failed   []*ending            // settlements to try again; while there are any, a goroutine does
}

// Move claims what is due in ready and in the given buckets, as much as the
// handlers have room for; if they have none it carries what is due to ready.
func (l *Lane) Move(ctx context.Context, due []int) (found readyqueue.Claimed, again bool, err error) {
	if l.suspect.Load() {
		if err := l.resync(ctx); err != nil {
			return found, false, err
		}
	}
	if !l.gate.TryRLock() {
		return found, false, errSettling
	}
	defer l.gate.RUnlock()
	room := l.topic.reserve()
	claim := l.begin(room, due)
	start := time.Now()
	found, err = claim.Run(ctx, l.s.rdb, l.key)
	if err != nil {
		l.topic.accept(room, nil)
		l.end(start, claim, readyqueue.Claimed{})
		if errors.Is(err, readyqueue.ErrLost) {
			l.lose(claim.Session)
			return found, false, err
		}
		l.suspect.Store(true) // even if it was refused: another server may have taken over
		if !script.NotRun(err) {
			l.doubt()
		}
		return found, false, fmt.Errorf("subscriber: %w", err)
	}
	l.topic.accept(room, l.end(start, claim, found))
	dueLeft := anyDue(found)
	l.backlog.Store(!found.Paused && (dueLeft || found.Left > 0))
	switch {
	case found.Paused: // whoever resumes the topic has all lanes look again
		return found, dueLeft && found.Left < l.s.opts.HighWater, nil
	case !l.backlog.Load():
		l.s.bells.park(ctx, l)
		return found, false, nil
	case room == 0: // carry on until ready is full; room that came up meanwhile was offered before we had a backlog
		return found, dueLeft && found.Left < l.s.opts.HighWater || l.topic.hasRoom(), nil
	default:
		return found, l.topic.hasRoom(), nil
	}
}

// anyDue reports whether due ids were left in the buckets.
func anyDue(found readyqueue.Claimed) bool {
	for _, h := range found.Heads {
		if !h.Empty && h.Due <= found.Now/1000 {
			return true
		}
	}
	return false
}

// begin prepares a claim.
func (l *Lane) begin(room int, due []int) readyqueue.Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims++
	return readyqueue.Claim{
		Session: l.session, Lease: l.s.opts.Lease, Holds: len(l.leases) > 0,
		Limit: room, HighWater: l.s.opts.HighWater, Due: due,
		Extend: len(l.leases) == 0 || time.Until(l.deadline) < l.s.opts.Lease*2/3,
		Check:  len(due) == l.key.Buckets(),
	}
}

// end takes in what a claim that began at start found.
func (l *Lane) end(start time.Time, claim readyqueue.Claim, found readyqueue.Claimed) []*delivery {
	leases := found.Leases
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims++
	if len(leases) == 0 {
		return nil
	}
	if claim.Extend {
		l.deadline = start.Add(l.s.opts.Lease)
	}
	l.topic.metrics.Delivered.Add(int64(len(leases)))
	deliveries := make([]*delivery, 0, len(leases))
	now := time.Now()
	for i := range leases {
		d, sound := l.deliver(&leases[i], claim.Session, now)
		if old := l.leases[d.id]; old != nil { // its settlement took effect, though we were not told
			old.end(ErrLeaseLost)
		}
		l.leases[d.id] = d
		if sound {
			d.late = time.Duration(found.Now-d.event.EffectTime.UnixMicro()) * time.Microsecond
			if d.event.Attempt == 1 {
				l.topic.metrics.Ready.Observe(d.late)
			}
			deliveries = append(deliveries, d)
		}
	}
	return l.apart(deliveries)
}

// apart puts off events that were lost with their processes, if several come at
// once: one of them may be what ends processes, and would use up the others'
// attempts with its own. They come back at random times within a lease, or within
// more of them the more there are, so that most come alone in the end.
func (l *Lane) apart(deliveries []*delivery) []*delivery {
	suspects := 0
	for _, d := range deliveries {
		if d.suspect() {
			suspects++
		}
	}
	if suspects < 2 {
		return deliveries
	}
	spread := l.s.opts.Lease * time.Duration(suspects/2)
	l.s.opts.Logger.Warn("events that lost their process again and again are put off, to run one by one",
		zap.String("topic", l.key.Topic), zap.Int("events", suspects))
	return slices.DeleteFunc(deliveries, func(d *delivery) bool {
		if !d.suspect() {
			return false
		}
		d.settle(readyqueue.Settlement{Outcome: readyqueue.Retry, Delay: rand.N(spread), Attempts: d.attempts})
		return true
	})
}

// suspect reports whether the event may be what ended its last process, and not
// for the first time, or with its last attempt but one.
func (d *delivery) suspect() bool {
	return d.attempts.Cause == readyqueue.LostCause &&
		d.attempts.Count >= min(2, d.event.MaxAttempts-1) && d.attempts.Count < d.event.MaxAttempts
}

// deliver makes a delivery of a lease. One that is not sound is settled at once:
// no handler can have it.
func (l *Lane) deliver(lease *readyqueue.Lease, session string, now time.Time) (d *delivery, sound bool) {
	d = &delivery{
		lane: l, session: session, id: lease.ID, attempts: lease.Attempts,
		claimed: now, record: xxhash.Sum64String(lease.Record),
	}
	if lease.Missing {
		l.s.opts.Logger.Warn("an id without a record was forgotten",
			zap.String("topic", l.key.Topic), zap.String("id", lease.ID))
		d.settle(readyqueue.Settlement{Outcome: readyqueue.Ack})
		return d, false
	}
	record, body, err := pool.Split(lease.Record)
	if err != nil {
		d.attempts.Cause = err.Error()
		l.s.opts.Logger.Error("an unreadable event was put among the dead",
			zap.String("topic", l.key.Topic), zap.String("id", lease.ID), zap.Error(err))
		d.settle(readyqueue.Settlement{Outcome: readyqueue.Bury, Attempts: d.attempts})
		return d, false
	}
	d.body = body
	d.event = Event{
		ID: lease.ID, Topic: l.key.Topic,
		EffectTime: time.UnixMilli(record.EffectTime), Attempt: lease.Attempts.Count + 1,
		MaxAttempts: record.MaxAttempts, Metadata: record.Metadata,
	}
	if d.event.MaxAttempts == 0 {
		d.event.MaxAttempts = l.s.opts.MaxAttempts
	}
	if l.s.opts.Tracer != nil && record.TraceParent != "" {
		d.origin = &tracing.Origin{Parent: record.TraceParent, State: record.TraceState}
	}
	if l.topic.consumer != nil {
		d.pulled = newDelivery(d)
	}
	return d, true
}

// forget drops a lease that has ended, and reports whether it was there.
func (l *Lane) forget(d *delivery) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.leases[d.id] == d
	if known {
		delete(l.leases, d.id)
	}
	return known
}

// lose drops all leases of a session that was taken over, and takes a new name:
// what we claim from now on is told apart from what we have lost.
func (l *Lane) lose(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if session != l.session {
		return
	}
	l.s.opts.Logger.Warn("leases lost: this process was silent for too long",
		zap.String("topic", l.key.Topic), zap.Int("events", len(l.leases)))
	l.topic.metrics.Sessions.Add(1)
	l.topic.metrics.Lost.Add(int64(len(l.leases)))
	for id, d := range l.leases {
		d.end(ErrLeaseLost)
		delete(l.leases, id)
	}
	l.deadline = time.Time{}
	l.epoch++
	l.session = l.s.session + "." + strconv.Itoa(l.epoch)
}

// lapse ends the handlers' contexts if the leases have run out by our own
// clock: another process may have the events by now.
func (l *Lane) lapse(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.leases) == 0 || now.Before(l.deadline) {
		return
	}
	for _, d := range l.leases {
		d.cancelWith(ErrLeaseLost)
	}
}
