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
	folded int         // events for which another of them stands
	counts *key.Counts // with which the last call was made
	keyed  []*Event    // in the order of the last call
	keys   []string    // its KEYS
	index  map[int]int // in KEYS, by bucket
}

func (s *placement) lane() *key.Lane { return s.of }

// visit is what one group of the script's arguments says: events of one bucket.
type visit struct {
	bucket       int
	fresh, keyed []*Event
}

// fold lets the first of several equal keys that are to be kept stand for all.
func (s *placement) fold() {
	var last map[string]*Event
	for _, e := range s.events {
		if !e.Keyed {
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
	}
}

// visits sorts the events by bucket.
func (s *placement) visits() []visit {
	var visits []visit
	index := make(map[int]int, 1)
	for _, e := range s.events {
		if e.same != nil {
			continue
		}
		home := s.of.Home(e.ID)
		i, ok := index[home]
		if !ok {
			i = len(visits)
			index[home] = i
			visits = append(visits, visit{bucket: home})
		}
		if e.Keyed {
			visits[i].keyed = append(visits[i].keyed, e)
		} else {
			visits[i].fresh = append(visits[i].fresh, e)
		}
	}
	return visits
}

// call builds the publish script's arguments; publish.lua says how they lie.
func (s *placement) call() *script.Call {
	s.counts = s.of.Counts()
	s.keyed = s.keyed[:0]
	s.keys = fixedKeys(s.of, 1)
	s.index = make(map[int]int, 1)
	others := s.counts.Others()
	visits := s.visits()
	args := make([]any, 7, 7+4*len(visits)+(4+others)*len(s.events))
	for _, v := range visits {
		args = append(args, s.bucket(v.bucket), v.bucket, len(v.fresh), len(v.keyed))
		for _, e := range v.fresh {
			args = append(args, &e.ID, &e.Record, &e.Due)
		}
		for _, e := range v.keyed {
			args = append(args, &e.ID, &e.Record, &e.Due, e.Policy.String())
			if others > 0 {
				for _, home := range s.counts.Homes(e.ID)[1:] {
					args = append(args, s.bucket(home))
				}
			}
		}
		s.keyed = append(s.keyed, v.keyed...)
	}
	anyKeyed := ""
	if len(s.keyed) > 0 {
		anyKeyed = "1"
	}
	copy(args, []any{s.counts.Stored, s.counts.Wanted, HighWater, s.of.Alarm, anyKeyed, others, s.folded})
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
	var outcomes string
	if err == nil {
		if s.counts.Stored != s.counts.Wanted {
			s.of.Learn(s.counts.Wanted)
		}
		outcomes, _ = c.Reply[1].(string)
	}
	for _, e := range s.events {
		e.Err = err
	}
	for i, e := range s.keyed {
		if i >= len(outcomes) {
			break
		}
		e.Found = outcomes[i] != 's'
		if outcomes[i] == 'd' {
			e.Err = fmt.Errorf("bucket: topic %q, id %q: %w", s.of.Topic, e.ID, ErrDuplicateID)
		}
	}
	for _, e := range s.events {
		if e.same != nil {
			e.Err, e.Found = e.same.Err, e.same.Err == nil
		}
	}
	noteReplicas(c, s.of, s.events)
	return ""
}
