package bucket

import (
	"fmt"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

// maxTries is how often a call is made when each try teaches that other bucket
// counts were registered meanwhile.
const maxTries = 4

// fixedKeys are the KEYS that stand before the buckets in this package's scripts.
func fixedKeys(l *key.Lane, buckets int) []string {
	return append(make([]string, 0, 8+buckets),
		l.Pool, l.Ready, l.Bell, l.Meta, l.Stats, l.Attempts, l.Again, l.Dead)
}

// staleCounts reports whether the script found other bucket counts in Redis
// than this process believes in, and which.
func staleCounts(c *script.Call) (stored string, stale bool) {
	if c.Err != nil || c.Reply[0] != "counts" {
		return "", false
	}
	stored, stale = c.Reply[1].(string)
	return stored, stale
}

func callError(c *script.Call, l *key.Lane, verb string) error {
	switch {
	case c.Err == nil && c.Reply[0] == "counts":
		return fmt.Errorf("bucket: %s in topic %q: bucket counts change too fast (Redis has %v)", verb, l.Topic, c.Reply[1])
	case c.Err == nil:
		return nil
	case script.NotRun(c.Err):
		return fmt.Errorf("bucket: %s in topic %q: %w", verb, l.Topic, c.Err)
	default:
		return fmt.Errorf("bucket: %s in topic %q: %w: %w", verb, l.Topic, ErrOutcomeUnknown, c.Err)
	}
}

// spread is what a batch's events are, sorted for the publish script.
type spread struct {
	fresh  []*Event         // with ids of our own making
	homes  map[int][]*Event // fresh events by bucket
	keyed  []*Event         // with ids that may exist
	folded int              // events for which one of keyed stands
	index  map[int]int      // KEYS index by bucket
	keys   []string
	lane   *key.Lane
	counts *key.Counts
}

// call builds the publish script's arguments; publish.lua says how they lie.
func (b *Batch) call() *script.Call {
	b.counts = b.Lane.Counts()
	s := spread{lane: b.Lane, counts: b.counts, keys: fixedKeys(b.Lane, 1), index: make(map[int]int, 1), homes: make(map[int][]*Event, 1)}
	for _, e := range b.Events {
		switch {
		case e.same != nil:
			s.folded++
		case e.Keyed:
			s.keyed = append(s.keyed, e)
		default:
			s.fresh = append(s.fresh, e)
			home := b.Lane.Home(e.ID)
			s.homes[home] = append(s.homes[home], e)
		}
	}
	homes := len(b.counts.Homes(""))
	args := make([]any, 0, 9+4*len(s.fresh)+4*len(s.homes)+(4+2*homes)*len(s.keyed))
	args = append(args, b.counts.Stored, b.counts.Wanted, HighWater, b.Lane.Alarm, len(s.fresh), len(s.homes), len(s.keyed), homes, s.folded)
	args = s.appendFresh(args)
	args = s.appendKeyed(args)
	return &script.Call{Script: publishScript, Keys: s.keys, Args: args}
}

// bucket is the KEYS index of a bucket.
func (s *spread) bucket(i int) int {
	at, ok := s.index[i]
	if !ok {
		s.keys = append(s.keys, s.lane.Bucket(i))
		at = len(s.keys)
		s.index[i] = at
	}
	return at
}

func (s *spread) appendFresh(args []any) []any {
	for _, e := range s.fresh {
		args = append(args, &e.ID, &e.Record)
	}
	for home, events := range s.homes {
		first := 0
		for i, e := range events {
			if f := events[first]; e.Due < f.Due || e.Due == f.Due && e.ID < f.ID { // as Redis orders them
				first = i
			}
		}
		events[0], events[first] = events[first], events[0]
		args = append(args, s.bucket(home), home, len(events))
		for _, e := range events {
			args = append(args, &e.Due, &e.ID)
		}
	}
	return args
}

func (s *spread) appendKeyed(args []any) []any {
	for _, e := range s.keyed {
		args = append(args, &e.ID, &e.Record, &e.Due, e.Policy.String())
		for _, home := range s.counts.Homes(e.ID) {
			args = append(args, s.bucket(home), home)
		}
	}
	return args
}
