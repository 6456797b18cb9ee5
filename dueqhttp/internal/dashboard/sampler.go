package dashboard

import (
	"context"
	"slices"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/census"
)

const (
	sampleTimeout = 5 * time.Second
	restFactor    = 10 // a sample that took so long is followed by a rest of so many times that

	// maxHistories is how many topics, in order of their names, have a history.
	maxHistories = 1000
)

// sampler looks at all topics when somebody asks, for all who ask at about the
// same time at once, and remembers how they developed.
type sampler struct {
	q     *dueq.Queue
	every time.Duration

	turn chan struct{} // holds a token; its taker may use what follows

	next      time.Time // no sample is taken before
	latest    *overview
	err       error
	histories map[string]*history
	missing   []string // topics that the latest could not count
}

// overview is what all topics look like at one moment.
type overview struct {
	At      time.Time
	Topics  []topicState // by name
	Total   topicState   // of all of them but those that are missing
	Missing int          // topics that could not be counted
}

// topicState is what one topic looks like.
type topicState struct {
	Name   string
	Stats  dueq.Stats
	Err    error // why it could not be counted
	Points []point
}

func newSampler(q *dueq.Queue, every time.Duration) *sampler {
	s := &sampler{q: q, every: every, turn: make(chan struct{}, 1), histories: make(map[string]*history)}
	s.turn <- struct{}{}
	return s
}

// look returns a fresh overview, or the latest if that is fresh enough.
func (s *sampler) look(ctx context.Context) (*overview, error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { s.turn <- struct{}{} }()
	began := time.Now()
	if began.Before(s.next) {
		return s.latest, s.err
	}
	// Others wait for this sample too: it does not end with whoever asked first.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sampleTimeout)
	defer cancel()
	s.latest, s.err = s.sample(ctx)
	took := time.Since(began)
	s.next = time.Now().Add(max(s.every*9/10-took, took*restFactor))
	return s.latest, s.err
}

// topic is one topic's state in a fresh overview; of one that was never used it
// is empty. If there is no overview it is without a history.
func (s *sampler) topic(ctx context.Context, name string) (topicState, error) {
	if all, err := s.look(ctx); err == nil {
		i := slices.IndexFunc(all.Topics, func(t topicState) bool { return t.Name == name })
		if i >= 0 {
			return all.Topics[i], all.Topics[i].Err
		}
	}
	stats, err := s.q.Stats(ctx, name) // it may be one that Topics does not know, or does not know yet
	return topicState{Name: name, Stats: stats}, err
}

func (s *sampler) sample(ctx context.Context) (*overview, error) {
	names, err := s.q.Topics(ctx)
	if err != nil {
		return nil, err
	}
	all := &overview{At: time.Now(), Topics: make([]topicState, len(names))}
	total := topicState{}
	var missing []string
	for i, counted := range census.Count(ctx, s.q, names) {
		t := &all.Topics[i]
		t.Name, t.Stats, t.Err = counted.Name, counted.Stats, counted.Err
		if t.Err != nil {
			missing = append(missing, t.Name)
			continue
		}
		addStats(&total.Stats, t.Stats)
		if i < maxHistories {
			t.Points = s.remember(t.Name, all.At, t.Stats)
		}
	}
	if h := s.histories[""]; h != nil && !slices.Equal(missing, s.missing) {
		h.restart() // the sums before are of other topics
	}
	s.missing, all.Missing = missing, len(missing)
	total.Points = s.remember("", all.At, total.Stats)
	all.Total = total
	for name, h := range s.histories {
		if !h.last.Equal(all.At) && !slices.Contains(missing, name) {
			delete(s.histories, name)
		}
	}
	return all, nil
}

func (s *sampler) remember(name string, at time.Time, stats dueq.Stats) []point {
	h := s.histories[name]
	if h == nil {
		h = &history{}
		s.histories[name] = h
	}
	return h.add(at, stats)
}

// addStats adds what can be added; of the paused topics a total says nothing.
func addStats(sum *dueq.Stats, s dueq.Stats) {
	sum.Scheduled += s.Scheduled
	sum.Ready += s.Ready
	sum.Leased += s.Leased
	sum.Dead += s.Dead
	sum.Published += s.Published
	sum.Acked += s.Acked
	sum.Retried += s.Retried
	sum.Buried += s.Buried
	sum.Lateness.Sum += s.Lateness.Sum
	for i, n := range s.Lateness.Counts {
		sum.Lateness.Counts[i] += n
	}
	if !s.OldestDue.IsZero() && (sum.OldestDue.IsZero() || s.OldestDue.Before(sum.OldestDue)) {
		sum.OldestDue = s.OldestDue
	}
}
