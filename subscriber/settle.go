package subscriber

import (
	"errors"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/dueq-io/dueq/internal/script"
	"github.com/dueq-io/dueq/readyqueue"
)

// resolveBatch is the most records that one command reads.
const resolveBatch = 64

// ending is the end of a delivery, on its way to Redis.
type ending struct {
	delivery *delivery
	readyqueue.Settlement
	unsure bool // a try had no reply
}

// release gives events back that no handler has seen.
func (s *Subscriber) release(deliveries []*delivery) {
	for _, d := range deliveries {
		d.settle(readyqueue.Settlement{Outcome: readyqueue.Release})
	}
}

// settle sends a batch of endings. Those that fail are tried again, lane by
// lane, until Redis has them.
func (s *Subscriber) settle(batch []*ending) {
	s.opts.Batches.Observe(len(batch))
	for l, failed := range s.send(batch) {
		l.settleAgain(failed)
	}
}

// send sends endings in one round trip, and returns those that Redis may not
// have.
func (s *Subscriber) send(batch []*ending) map[*Lane][]*ending {
	type holder struct {
		lane    *Lane
		session string
	}
	at := make(map[holder]int, 1)
	var calls []readyqueue.Settlements
	for _, e := range batch {
		h := holder{e.delivery.lane, e.delivery.session}
		i, ok := at[h]
		if !ok {
			i = len(calls)
			at[h] = i
			calls = append(calls, readyqueue.Settlements{Lane: h.lane.key, Session: h.session})
		}
		calls[i].Items = append(calls[i].Items, &e.Settlement)
	}
	readyqueue.Settle(s.settling, s.rdb, calls)

	var failed map[*Lane][]*ending
	for _, e := range batch {
		switch {
		case e.Err == nil:
			e.delivery.count(e.Outcome)
		case errors.Is(e.Err, ErrLeaseLost):
			s.opts.Logger.Warn("an outcome came too late and changed nothing",
				zap.String("topic", e.delivery.lane.key.Topic), zap.String("id", e.ID), zap.Stringer("outcome", e.Outcome))
		default:
			if failed == nil {
				failed = make(map[*Lane][]*ending)
			}
			failed[e.delivery.lane] = append(failed[e.delivery.lane], e)
			e.unsure = e.unsure || !script.NotRun(e.Err)
			continue
		}
		if l := e.delivery.lane; l.forget(e.delivery) && e.Err != nil {
			l.topic.metrics.Lost.Add(1)
		}
		if e.Err != nil && e.unsure {
			e.Err = script.ErrOutcomeUnknown // the try without a reply may have ended the lease
		}
		e.delivery.tell(e.Err)
	}
	return failed
}

// count counts an outcome that Redis has.
func (d *delivery) count(outcome readyqueue.Outcome) {
	m := d.lane.topic.metrics
	switch {
	case d.stored && outcome == readyqueue.Ack:
		m.Persisted.Add(1)
	case outcome == readyqueue.Ack:
		m.Acked.Add(1)
	case outcome == readyqueue.Retry:
		m.Retried.Add(1)
	case outcome == readyqueue.Bury:
		m.Buried.Add(1)
	case outcome == readyqueue.Release:
		m.Released.Add(1)
	}
}

// settleAgain queues endings for another try.
func (l *Lane) settleAgain(failed []*ending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.s.opts.Logger.Warn("cannot settle; will try again",
		zap.String("topic", l.key.Topic), zap.Int("events", len(failed)), zap.Error(failed[0].Err))
	l.failed = append(l.failed, failed...)
	if len(l.failed) == len(failed) {
		l.s.resettle.Go(l.retrySettling)
	}
}

// retrySettling tries the lane's failed endings until Redis has them.
func (l *Lane) retrySettling() {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		select {
		case <-l.s.settling.Done():
			return
		case <-time.After(pause):
		}
		if l.retryOnce() {
			return
		}
	}
}

// retryOnce tries all failed endings once more, and reports whether none is
// left. An event that was claimed anew since the first try is left alone: its
// first lease did end.
func (l *Lane) retryOnce() (done bool) {
	l.gate.Lock()
	defer l.gate.Unlock()
	l.mu.Lock()
	var batch []*ending
	for _, e := range l.failed {
		if l.leases[e.ID] == e.delivery {
			batch = append(batch, e)
		} else {
			e.delivery.tell(script.ErrOutcomeUnknown)
		}
	}
	l.failed = l.failed[:0]
	l.mu.Unlock()

	batch, failed := l.resolve(batch)
	for len(batch) > 0 {
		n := min(len(batch), readyqueue.MaxBatch)
		failed = append(failed, l.s.send(batch[:n])[l]...)
		batch = batch[n:]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = append(l.failed, failed...)
	return len(l.failed) == 0
}

// resolve sees to the doubtful endings among those to try again: an event that
// is not the one that was handled is given back. It returns apart those of which
// Redis did not tell.
func (l *Lane) resolve(batch []*ending) (clear, failed []*ending) {
	var doubtful []*ending
	l.mu.Lock()
	for _, e := range batch {
		if e.delivery.doubtful && e.Outcome != readyqueue.Release {
			doubtful = append(doubtful, e)
		} else {
			clear = append(clear, e)
		}
	}
	l.mu.Unlock()
	for some := range slices.Chunk(doubtful, resolveBatch) {
		if l.compare(some) == nil {
			clear = append(clear, some...)
		} else {
			failed = append(failed, some...)
		}
	}
	return clear, failed
}

// compare has the events given back that are not those that were handled.
func (l *Lane) compare(doubtful []*ending) error {
	ids := make([]string, len(doubtful))
	for i, e := range doubtful {
		ids[i] = e.ID
	}
	records, err := l.s.rdb.HMGet(l.s.settling, l.key.Pool, ids...).Result()
	if err != nil {
		return err
	}
	for i, e := range doubtful {
		if record, ok := records[i].(string); ok && xxhash.Sum64String(record) != e.delivery.record {
			e.Outcome = readyqueue.Release
		}
	}
	return nil
}
