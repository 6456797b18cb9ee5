package inspect

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

// slices read from a sorted set have at least so many members.
const minSlice = 8

//go:embed slice.lua
var sliceSource string

var sliceScript = script.New(sliceSource)

// sortedWalk merges sorted sets: what is scheduled or dead, by time. Of one time,
// the order is that of lanes, buckets, ids.
type sortedWalk struct {
	rdb       redis.UniversalClient
	backwards bool
	low, high float64 // times, of which high is excluded
	topic     string
	slice     int // members read at a time
	sets      []*sortedSet
}

type sortedSet struct {
	name    string
	after   Mark     // the place behind which to read on; only its Lane and Bucket, if seen says so
	seen    string   // which of the members of that time lie before it: see slice.lua
	members []member // read and not taken yet
	over    bool     // there are no more
}

type member struct {
	id   string
	text string // its score
	at   float64
}

func newSortedWalk(ctx context.Context, rdb redis.UniversalClient, l Listing) (*sortedWalk, error) {
	w := &sortedWalk{rdb: rdb, backwards: l.State == "dead", low: math.Inf(-1), high: math.Inf(1)}
	begin := "-inf"
	if l.Since != 0 {
		begin = strconv.FormatInt(l.Since, 10)
		w.low = float64(l.Since)
	}
	end, endSeen := "+inf", "none"
	if l.Until != 0 {
		end, endSeen = strconv.FormatInt(l.Until, 10), "all"
		w.high = float64(l.Until)
	}
	if err := learn(ctx, rdb, l.Lanes); err != nil {
		return nil, err
	}
	for i, lane := range l.Lanes {
		if lane == nil {
			continue
		}
		w.topic = lane.Topic
		names := []string{lane.Dead}
		if !w.backwards {
			names = names[:0]
			for b := range lane.Buckets() {
				names = append(names, lane.Bucket(b))
			}
		}
		for b, name := range names {
			s := &sortedSet{name: name, after: Mark{At: begin, Lane: i, Bucket: b}, seen: "none"}
			if w.backwards {
				s.after.At, s.seen = end, endSeen
			}
			s.goOn(l.After)
			w.sets = append(w.sets, s)
		}
	}
	w.slice = min(minSlice+2*l.Limit/max(1, len(w.sets)), maxStep)
	return w, nil
}

// goOn has the set read on from where a listing ended.
func (s *sortedSet) goOn(m *Mark) {
	if m == nil {
		return
	}
	at := s.after
	s.after = Mark{At: m.At, Lane: at.Lane, Bucket: at.Bucket}
	switch {
	case at.Lane < m.Lane || at.Lane == m.Lane && at.Bucket < m.Bucket:
		s.seen = "all"
	case at.Lane > m.Lane || at.Bucket > m.Bucket:
		s.seen = "none"
	default:
		s.seen, s.after.ID = "upto", m.ID
	}
}

// learn reads the bucket counts of lanes.
func learn(ctx context.Context, rdb redis.UniversalClient, lanes []*key.Lane) error {
	counts := make([]*redis.StringCmd, len(lanes))
	_, _ = rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each has its own error
		for i, l := range lanes {
			if l != nil {
				counts[i] = pipe.HGet(ctx, l.Meta, "buckets")
			}
		}
		return nil
	})
	for i, l := range lanes {
		if l == nil {
			continue
		}
		if err := counts[i].Err(); err != nil && !errors.Is(err, redis.Nil) {
			return fmt.Errorf("inspect: read bucket counts of topic %q: %w", l.Topic, err)
		}
		l.Learn(counts[i].Val())
	}
	return nil
}

func (w *sortedWalk) next(ctx context.Context) (*Mark, error) {
	if err := w.fill(ctx); err != nil {
		return nil, err
	}
	var first *sortedSet
	for _, s := range w.sets {
		if len(s.members) > 0 && (first == nil || w.before(s.members[0].at, first.members[0].at)) {
			first = s
		}
	}
	if first == nil {
		return nil, nil
	}
	m := first.members[0]
	first.members = first.members[1:]
	first.after.At, first.after.ID, first.seen = m.text, m.id, "upto"
	mark := first.after
	return &mark, nil
}

func (w *sortedWalk) before(a, b float64) bool {
	if w.backwards {
		return a > b
	}
	return a < b
}

// fill reads on in the sets of which all is taken that was read.
func (w *sortedWalk) fill(ctx context.Context) error {
	var empty []*sortedSet
	for _, s := range w.sets {
		if len(s.members) == 0 && !s.over {
			empty = append(empty, s)
		}
	}
	for some := range slices.Chunk(empty, maxStep) {
		calls := make([]*script.Call, len(some))
		for i, s := range some {
			backwards := ""
			if w.backwards {
				backwards = "1"
			}
			calls[i] = &script.Call{
				Script: sliceScript, Keys: []string{s.name},
				Args: []any{backwards, s.after.At, s.seen, s.after.ID, w.slice},
			}
		}
		script.RunAll(ctx, w.rdb, calls)
		for i, s := range some {
			if err := calls[i].Err; err != nil {
				return fmt.Errorf("inspect: list topic %q: %w", w.topic, err)
			}
			w.take(s, calls[i].Reply)
		}
	}
	if len(empty) > 0 {
		w.slice = min(2*w.slice, maxStep)
	}
	return nil
}

// take takes over what was read from a set.
func (w *sortedWalk) take(s *sortedSet, reply []any) {
	for pair := range slices.Chunk(reply, 2) {
		m := member{id: str(pair[0]), text: str(pair[1])}
		m.at, _ = strconv.ParseFloat(m.text, 64) // Redis wrote it
		s.members = append(s.members, m)
	}
	s.over = len(s.members) < w.slice
	if w.backwards {
		slices.Reverse(s.members)
	}
	in := slices.DeleteFunc(s.members, func(m member) bool { return m.at < w.low || m.at >= w.high && !math.IsInf(w.high, 1) })
	s.over = s.over || len(in) < len(s.members)
	s.members = in
}
