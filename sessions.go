package dueq

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq/inspect"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/roster"
)

const (
	// maxTold is the most topics that a session tells of.
	maxTold = 100
	// seenFor is how many fallback intervals, or minSeen if that is more, a
	// session that has fallen silent is listed.
	seenFor = 4
	minSeen = 10 * time.Second
)

// Session is a process, more exactly a [Queue], that subscribes to topics or
// consumes them.
type Session struct {
	ID         string
	Host       string
	PID        int
	Started    time.Time // by its host's clock
	LastSeen   time.Time // by the server's clock
	Topics     []string  // that it subscribes to or consumes: the first 100 by name
	MoreTopics int       // beyond these
	Held       int       // events of Topics that it holds now
}

// Sessions lists the sessions that were seen of late, in the order in which they
// started, at most 1,000. Each is seen about every Options.Fallback of its own, and
// is listed until it was not for four of them, or ten seconds if that is more; one
// that shuts down goes at once. The error wraps [ErrShutDown], or why Redis
// refused.
func (q *Queue) Sessions(ctx context.Context) ([]Session, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	found, err := roster.List(ctx, q.rdb, q.opts.Namespace)
	if err != nil {
		return nil, fmt.Errorf("dueq: %w", err)
	}
	names := make(map[string]bool)
	list := make([]Session, len(found))
	for i, s := range found {
		list[i] = Session{
			ID: s.ID, Host: s.Host, PID: s.PID, Started: s.Started, LastSeen: s.LastSeen,
			Topics: s.Topics, MoreTopics: s.More,
		}
		for _, name := range s.Topics {
			if checkTopic(name) == nil { // else some other hand has put it there
				names[name] = true
			}
		}
	}
	lanes, err := q.freshLanes(ctx, slices.Sorted(maps.Keys(names)))
	if err != nil {
		return nil, err
	}
	held, err := inspect.Held(ctx, q.rdb, lanes)
	if err != nil {
		return nil, fmt.Errorf("dueq: %w", err)
	}
	for i := range list {
		list[i].Held = held[list[i].ID]
	}
	slices.SortFunc(list, func(a, b Session) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// freshLanes are the lanes of all partition counts that topics have had, named
// afresh.
func (q *Queue) freshLanes(ctx context.Context, names []string) ([]*key.Lane, error) {
	var lanes []*key.Lane
	for some := range slices.Chunk(names, maxTold) {
		counts, err := q.partitionCountsOf(ctx, some)
		if err != nil {
			return nil, err
		}
		for i, name := range some {
			lanes = append(lanes, q.newLanes(name, counts[i])...)
		}
	}
	return lanes, nil
}

// keepAnnounced lets others see this session until ctx ends, and its topics as
// they are subscribed to.
func (q *Queue) keepAnnounced(ctx context.Context) {
	entry := roster.Entry{Namespace: q.opts.Namespace}
	self := roster.Session{
		ID: q.session, PID: os.Getpid(), Started: time.Now(),
		Keep: max(seenFor*q.opts.Fallback, minSeen),
	}
	self.Host, _ = os.Hostname() // "" if the system does not tell
	tick := time.NewTicker(q.opts.Fallback)
	defer tick.Stop()
	for ctx.Err() == nil {
		self.Topics, self.More = q.servedTopics()
		if err := entry.Announce(ctx, q.rdb, self); err != nil && ctx.Err() == nil {
			q.opts.Logger.Warn("cannot announce this session; will try again", zap.Error(err))
		}
		select {
		case <-ctx.Done():
		case <-q.announce:
		case <-tick.C:
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), loopsTime/2)
	defer cancel()
	if err := entry.Withdraw(last, q.rdb); err != nil {
		q.opts.Logger.Warn("cannot withdraw this session; it will be listed for a while", zap.Error(err))
	}
}

// servedTopics are the first topics by name that are subscribed to or consumed,
// and how many there are beyond these.
func (q *Queue) servedTopics() (names []string, more int) {
	q.mu.Lock()
	for name, t := range q.topics {
		if t.subscription != nil {
			names = append(names, name)
		}
	}
	q.mu.Unlock()
	slices.Sort(names)
	told := min(len(names), maxTold)
	return names[:told], len(names) - told
}
