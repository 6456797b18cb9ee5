package bucket

import (
	_ "embed"
	"fmt"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

//go:embed publish.lua
var publishSource string

var publishScript = script.New(publishSource)

// placement stores events whose place depends on what Redis has: an event with
// their id, the time, other bucket counts.
type placement struct {
	of     *key.Lane
	events []*Event
	counts *key.Counts // with which the last call was made

	fresh  []*Event    // with ids of our own making
	keyed  []*Event    // with ids that may exist
	folded int         // events for which one of keyed stands
	keys   []string    // KEYS
	index  map[int]int // in KEYS, by bucket
}

func (s *placement) lane() *key.Lane { return s.of }

// fold lets the first of several equal keys that are to be kept stand for all.
func (s *placement) fold() {
	var last map[string]*Event
	for _, e := range s.events {
		if !e.Keyed {
			s.fresh = append(s.fresh, e)
			continue
		}
		if f := last[e.ID]; f != nil && f.Policy == Keep && e.Policy == Keep {
			e.same = f
			s.folded++
			continue
		}
		if last == nil {
			last = make(map[string]*Event)
		}
		last[e.ID] = e
		s.keyed = append(s.keyed, e)
	}
}

// call builds the publish script's arguments; publish.lua says how they lie.
func (s *placement) call() *script.Call {
	s.counts = s.of.Counts()
	s.keys = fixedKeys(s.of, 1)
	s.index = make(map[int]int, 1)
	homes := len(s.counts.Homes(""))
	args := make([]any, 0, 8+5*len(s.fresh)+(4+2*homes)*len(s.keyed))
	args = append(args, s.counts.Stored, s.counts.Wanted, HighWater, s.of.Alarm, len(s.fresh), len(s.keyed), homes, s.folded)
	for _, e := range s.fresh {
		args = append(args, &e.ID, &e.Record)
	}
	for _, e := range s.fresh {
		home := s.of.Home(e.ID)
		args = append(args, &e.Due, s.bucket(home), home)
	}
	for _, e := range s.keyed {
		args = append(args, &e.ID, &e.Record, &e.Due, e.Policy.String())
		for _, home := range s.counts.Homes(e.ID) {
			args = append(args, s.bucket(home), home)
		}
	}
	return &script.Call{Script: publishScript, Keys: s.keys, Args: args}
}

// bucket is the KEYS index of a bucket.
func (s *placement) bucket(i int) int {
	at, ok := s.index[i]
	if !ok {
		s.keys = append(s.keys, s.of.Bucket(i))
		at = len(s.keys)
		s.index[i] = at
	}
	return at
}

// take sets the events' errors. The script has told the carriers itself.
func (s *placement) take(c *script.Call) (alarm string) {
	err := callError(c, s.of, "publish")
	var outcomes []any
	if err == nil {
		if s.counts.Stored != s.counts.Wanted {
			s.of.Learn(s.counts.Wanted)
		}
		outcomes, _ = c.Reply[1].([]any)
	}
	for _, e := range s.fresh {
		e.Err = err
	}
	for i, e := range s.keyed {
		e.Err = err
		if err == nil && outcomes[i] == "duplicate" {
			e.Err = fmt.Errorf("bucket: topic %q, id %q: %w", s.of.Topic, e.ID, ErrDuplicateID)
		}
	}
	for _, e := range s.events {
		if e.same != nil {
			e.Err = e.same.Err
		}
	}
	return ""
}
