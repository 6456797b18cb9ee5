package subscriber

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dueq-io/dueq/readyqueue"
)

const (
	// grace is how long handlers have to return once their contexts have ended.
	grace = time.Second
	// settleTime is how long the last outcomes have to reach Redis.
	settleTime = 5 * time.Second
)

// Drain gives unstarted events back at once, lets running handlers finish until
// ctx ends, then ends their contexts and gives their events back too. So it does
// with what consumers have handed over. What is still claimed until claimsEnded is
// closed goes back as well. Drain returns when Redis has all outcomes, or an error
// that says how many it does not have.
func (s *Subscriber) Drain(ctx context.Context, claimsEnded <-chan struct{}) error {
	topics, lanes := s.all()
	for _, t := range topics {
		s.release(t.close())
	}
	returned := make(chan struct{})
	go func() {
		s.workers.Wait()
		close(returned)
	}()
	var err error
	select {
	case <-returned:
	case <-ctx.Done():
		unsettled, running := 0, 0
		for _, l := range lanes {
			unsettled += l.giveBackPulled()
		}
		s.stop(ErrStopping)
		select {
		case <-returned:
		case <-time.After(grace):
		}
		for _, l := range lanes {
			running += l.giveBackAll()
		}
		err = fmt.Errorf("subscriber: %d handlers were cut off, %d claimed events given back: %w",
			running, unsettled, context.Cause(ctx))
	}
	s.stop(ErrStopping)
	return s.flush(lanes, claimsEnded, err)
}

// giveBackPulled gives back every event that was handed over by a consumer and
// that nobody has settled.
func (l *Lane) giveBackPulled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, d := range l.leases {
		if d.pulled != nil && d.pulled.take() {
			d.giveBack()
			n++
		}
	}
	return n
}

// giveBackAll settles every lease whose handler has not returned.
func (l *Lane) giveBackAll() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, d := range l.leases {
		if !d.settled.Load() {
			d.tell(ErrStopping)
			d.settle(readyqueue.Settlement{Outcome: readyqueue.Release})
			n++
		}
	}
	return n
}

// flush waits until Redis has all outcomes.
func (s *Subscriber) flush(lanes []*Lane, claimsEnded <-chan struct{}, err error) error {
	flushed := make(chan struct{})
	go func() {
		<-claimsEnded
		s.settles.Wait()
		for _, l := range lanes {
			if l.suspect.Load() {
				_ = l.resync(s.settling) // without Redis, its leases end by themselves
			}
		}
		s.settles.Wait()
		s.resettle.Wait()
		close(flushed)
	}()
	select {
	case <-flushed:
	case <-time.After(settleTime):
	}
	s.giveUp()
	left := 0
	for _, l := range lanes {
		left += l.holding().leases
	}
	if left > 0 {
		err = errors.Join(err, fmt.Errorf("subscriber: %d outcomes did not reach Redis, their events will be delivered again: %w",
			left, ErrOutcomeUnknown))
	}
	return err
}
