// Package bucket says when an event is due: it chooses a bucket, publishes,
// cancels and reschedules.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

// Policy is what a publish does when an event with its id exists already.
type Policy int

const (
	// Reject refuses the publish with [ErrDuplicateID].
	Reject Policy = iota
	// Keep leaves what is scheduled as it is.
	Keep
	// Replace puts the new body and time in the place of the old.
	Replace
)

// String is the policy's name in scripts and messages.
func (p Policy) String() string {
	names := [...]string{"reject", "keep", "replace"}
	if p < 0 || int(p) >= len(names) {
		return fmt.Sprintf("Policy(%d)", int(p))
	}
	return names[p]
}

var (
	// ErrDuplicateID says that an event with this id exists.
	ErrDuplicateID = errors.New("an event with this id exists")
	// ErrOutcomeUnknown says that a call was sent and its reply never came: it
	// may have taken effect, or not.
	ErrOutcomeUnknown = script.ErrOutcomeUnknown
	// ErrNotReplicated says that an event was stored, but that too few replicas
	// are known to have it.
	ErrNotReplicated = errors.New("stored, but not on enough replicas")
)

// HighWater is the most ids that lie in ready: the backlog stays sorted in the
// buckets, and taking an id out of the middle of ready stays cheap.
const HighWater = 4096

// Event is one event to publish.
type Event struct {
	ID     string
	Record string
	Due    int64  // milliseconds since 1970
	Keyed  bool   // the id is the caller's: it may exist
	Policy Policy // for keyed events
	Err    error  // set by [Publish]
	Found  bool   // set by [Publish]: there was an event with this id, and Policy was applied

	same *Event // an earlier event of the batch that stands for this one too
}

// Batch is what is published to one lane in one call.
type Batch struct {
	Lane   *key.Lane
	Events []*Event
}

// Publish stores all events in one round trip, waits until so many replicas have
// them, and sets each event's Err: [ErrDuplicateID], [ErrOutcomeUnknown],
// [ErrNotReplicated], or why Redis refused.
func Publish(ctx context.Context, rdb redis.UniversalClient, batches []Batch, replicas int) {
	now := time.Now().UnixMilli()
	if replicas > 0 { // the carriers must not hear too late of what is due while we wait: the script tells them at once
		now += script.ReplicaTime.Milliseconds()
	}
	steps := make([]step, 0, len(batches))
	for _, b := range batches {
		steps = append(steps, b.steps(now)...)
	}
	for try := 1; len(steps) > 0; try++ {
		calls := make([]*script.Call, len(steps))
		for i, s := range steps {
			calls[i] = s.call()
			calls[i].Replicas = replicas
		}
		script.RunAll(ctx, rdb, calls)
		var again []step
		for i, s := range steps {
			if stored, stale := staleCounts(calls[i]); stale && try < maxTries {
				s.lane().Learn(stored)
				again = append(again, s)
			} else if alarm := s.take(calls[i]); alarm != "" {
				rdb.Publish(ctx, s.lane().Alarm, alarm) // if it is lost, that costs time, no event
			}
		}
		steps = again
	}
}

// step is one atomic part of a batch.
type step interface {
	lane() *key.Lane
	call() *script.Call
	// take sets the events' errors, and returns what the carriers are still to
	// be told, or "".
	take(c *script.Call) (alarm string)
}

// steps sorts a batch's events: those that need no look at what Redis has, and
// the others, also all that are due by now. Whether one is due already only Redis
// knows for sure; the others' step finds out, so this process's clock decides
// nothing but the cost.
func (b Batch) steps(now int64) []step {
	counts := b.Lane.Counts()
	ahead := insertion{of: b.Lane}
	other := placement{of: b.Lane}
	for _, e := range b.Events {
		if !e.Keyed && e.Due > now && counts.Stored == counts.Wanted {
			ahead.events = append(ahead.events, e)
		} else {
			other.events = append(other.events, e)
		}
	}
	var steps []step
	if len(ahead.events) > 0 {
		steps = append(steps, &ahead)
	}
	if len(other.events) > 0 {
		other.fold()
		steps = append(steps, &other)
	}
	return steps
}
