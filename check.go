package dueq

import (
	"context"
	"slices"

	"github.com/dueq-io/dueq/inspect"
	"github.com/dueq-io/dueq/internal/key"
)

// FindingKind says what is wrong with an event.
type FindingKind = inspect.Kind

// What [Queue.Check] can find, and how [Queue.Repair] mends it.
const (
	// FindingNoPlace is an event that lies nowhere, so that nobody would ever
	// deliver it. It goes to the dead.
	FindingNoPlace = inspect.NoPlace
	// FindingNoBody is an id without a body. It is forgotten.
	FindingNoBody = inspect.NoBody
	// FindingTwoPlaces is an event that lies in more than one place. It stays
	// where a live session holds it, else in ready, else in a bucket, else among
	// the dead.
	FindingTwoPlaces = inspect.TwoPlaces
	// FindingWrongBucket is an event in a bucket in which nobody would look for
	// it. It goes to one where it belongs, with the same due time.
	FindingWrongBucket = inspect.WrongBucket
	// FindingNoSession is an event held by no session, so that it would never be
	// given back. It is given back like those of a process that died.
	FindingNoSession = inspect.NoSession
	// FindingLeftover is what is kept of the attempts of an event that is gone.
	// It is forgotten.
	FindingLeftover = inspect.Leftover
)

// maxExamples is the most examples of a kind in a report.
const maxExamples = 100

// Report is what [Queue.Check] or [Queue.Repair] found in a topic.
type Report struct {
	Topic    string    `json:"topic"`
	Events   int       `json:"events"`   // that were there when the check began
	Places   int       `json:"places"`   // that were taken then: as many, unless events lie nowhere, or somewhere twice
	Findings []Finding `json:"findings"` // one for each kind that was found; empty: all is well
}

// Finding is how often something was found wrong.
type Finding struct {
	Kind     FindingKind `json:"kind"`
	Count    int         `json:"count"`
	Repaired int         `json:"repaired"`
	Examples []Example   `json:"examples"` // the first hundred
}

// Example is an event with which something is wrong.
type Example struct {
	ID   string   `json:"id"`
	Keys []string `json:"keys"` // Redis keys in which it lies
}

// Left is how many findings are not repaired.
func (r *Report) Left() int {
	left := 0
	for _, f := range r.Findings {
		left += f.Count - f.Repaired
	}
	return left
}

// Check looks whether each of a topic's events lies in exactly one place, and
// that a right one. It looks at every event, and at the names of all keys in
// Redis, in small steps, while the topic may be in use, and changes nothing.
// dueq is built to keep it so whichever process dies when: what Check finds, some
// other hand did, such as an eviction or a stray command.
//
// Its error wraps [ErrTopicInvalid], [ErrShutDown], ctx's error, or why Redis
// refused. The report then tells what was found until then.
func (q *Queue) Check(ctx context.Context, topic string) (*Report, error) {
	return q.audit(ctx, topic, false)
}

// Repair does what [Queue.Check] does, and mends what it finds, each event in one
// atomic step. It forgets nothing that has a body. Its errors are those of Check;
// a finding whose repair failed may be repaired and not counted.
func (q *Queue) Repair(ctx context.Context, topic string) (*Report, error) {
	return q.audit(ctx, topic, true)
}

func (q *Queue) audit(ctx context.Context, topic string, repair bool) (*Report, error) {
	report := &Report{Topic: topic, Findings: []Finding{}}
	lanes, err := q.allLanes(ctx, topic)
	if err != nil {
		return report, err
	}
	for _, l := range lanes {
		counts, err := inspect.Count(ctx, q.rdb, l)
		if err != nil {
			return report, wrap(err)
		}
		report.Events += int(counts.Bodies)
		report.Places += int(counts.Places())
	}
	err = inspect.Check(ctx, q.rdb, lanes, repair, func(f inspect.Finding) { report.add(f, repair) })
	return report, wrap(err)
}

// allLanes are the lanes of all partition counts that a topic has had, named
// afresh.
func (q *Queue) allLanes(ctx context.Context, topic string) ([]*key.Lane, error) {
	counts, err := q.partitionCounts(ctx, topic)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(counts, q.opts.Partitions) {
		counts = append(counts, q.opts.Partitions)
	}
	return q.newLanes(topic, counts), nil
}

func (r *Report) add(found inspect.Finding, repaired bool) {
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Kind == found.Kind })
	if i < 0 {
		i = len(r.Findings)
		r.Findings = append(r.Findings, Finding{Kind: found.Kind})
	}
	f := &r.Findings[i]
	f.Count++
	if repaired {
		f.Repaired++
	}
	if len(f.Examples) < maxExamples {
		f.Examples = append(f.Examples, Example{ID: found.ID, Keys: found.Keys})
	}
}
