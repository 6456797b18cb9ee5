package subscriber

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq/readyqueue"
)

// KeepLeases extends the leases of all lanes that hold events until ctx ends.
func (s *Subscriber) KeepLeases(ctx context.Context) {
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() { s.watchLapses(ctx) })
	period := s.opts.Lease / 3
	timer := time.NewTimer(period)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if s.Extend(ctx) {
			timer.Reset(period)
		} else {
			timer.Reset(min(period, time.Second))
		}
	}
}

// watchLapses ends the contexts of handlers whose leases have run out, also while
// an extension is stuck.
func (s *Subscriber) watchLapses(ctx context.Context) {
	tick := time.NewTicker(s.opts.Lease / 6)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_, lanes := s.all()
		for _, l := range lanes {
			l.lapse(time.Now())
		}
	}
}

// Extend extends all leases once and reports whether that worked. It also
// gives back events that have waited too long for a handler, and looks for
// leases that only Redis knows of.
func (s *Subscriber) Extend(ctx context.Context) bool {
	topics, lanes := s.all()
	start := time.Now()
	for _, t := range topics {
		s.release(t.shed(start.Add(-s.opts.Lease / 3)))
	}
	var extended []*Lane
	var sessions []*readyqueue.Session
	var before []holding
	for _, l := range lanes {
		h := l.holding()
		if h.leases > 0 {
			extended, before = append(extended, l), append(before, h)
			sessions = append(sessions, &readyqueue.Session{Lane: l.key, Name: h.session, Lease: s.opts.Lease})
		}
	}
	if len(sessions) == 0 {
		return true
	}
	readyqueue.Extend(ctx, s.rdb, sessions)
	ok := true
	for i, l := range extended {
		if err := sessions[i].Err; err != nil && !errors.Is(err, ErrLeaseLost) && ctx.Err() == nil {
			ok = false
			s.opts.Logger.Warn("cannot extend leases; will try again", zap.String("topic", l.key.Topic), zap.Error(err))
		}
		l.extended(start, sessions[i], before[i])
	}
	return ok
}

// holding is what a lane holds at some moment.
type holding struct {
	session string
	leases  int
	claims  int
}

func (l *Lane) holding() holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return holding{session: l.session, leases: len(l.leases), claims: l.claims}
}

// extended takes in the outcome of extending a lane's leases at start.
func (l *Lane) extended(start time.Time, s *readyqueue.Session, before holding) {
	switch {
	case errors.Is(s.Err, ErrLeaseLost):
		l.lose(s.Name)
		return
	case s.Err != nil:
		return
	}
	l.mu.Lock()
	l.deadline = start.Add(s.Lease)
	noClaim := l.claims == before.claims && l.claims%2 == 0
	unknown := noClaim && s.Held > max(before.leases, len(l.leases))
	l.mu.Unlock()
	if unknown {
		l.suspect.Store(true)
		l.kick()
	}
}
