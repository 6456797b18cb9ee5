package subscriber

import (
	"context"
	"fmt"
	"maps"

	"github.com/dueq-io/dueq/readyqueue"
)

// doubt notes, after a claim whose outcome is unknown, the endings that are under
// way. If the first try of one took effect unheard, its id may have been
// published anew, and the claim may have got it: a second try has to see whether
// it is still the same event.
func (l *Lane) doubt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.leases {
		d.doubtful = d.doubtful || d.settled.Load()
	}
}

// resync gives back what Redis has leased to us in claims whose replies never
// came.
func (l *Lane) resync(ctx context.Context) error {
	l.mu.Lock()
	session, known := l.session, maps.Clone(l.leases)
	l.mu.Unlock()
	ids, err := readyqueue.HeldIDs(ctx, l.s.rdb, l.key, session)
	if err != nil {
		return fmt.Errorf("subscriber: %w", err)
	}
	if l.releaseUnknown(session, ids, known) {
		l.kick()
	} else {
		l.suspect.Store(false)
	}
	return nil
}

// releaseUnknown gives back those of the held ids that are not leases we know
// of. It reports whether to look once more: what was known before we looked and
// is not any more has been settled meanwhile, or is leased to us again.
func (l *Lane) releaseUnknown(session string, held []string, before map[string]*delivery) (unclear bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range held {
		switch {
		case l.leases[id] != nil:
		case before[id] != nil:
			unclear = true
		default:
			d := &delivery{lane: l, session: session, id: id}
			l.leases[id] = d
			d.settle(readyqueue.Settlement{Outcome: readyqueue.Release})
		}
	}
	return unclear
}
