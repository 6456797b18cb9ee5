// Package bucket says when an event is due: it chooses a bucket, publishes,
// cancels and reschedules.
package bucket

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

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
	ErrOutcomeUnknown = errors.New("outcome unknown")
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

	same *Event // an earlier event of the batch that stands for this one too
}

// Batch is what is published to one lane in one call.
type Batch struct {
	Lane   *key.Lane
	Events []*Event

	counts *key.Counts // with which the last call was made
}

//go:embed publish.lua
var publishSource string

var publishScript = script.New(publishSource)

// Publish stores all events in one round trip, one call per batch, and sets
// each event's Err: [ErrDuplicateID], [ErrOutcomeUnknown], or why Redis refused.
func Publish(ctx context.Context, rdb redis.UniversalClient, batches []Batch) {
	for i := range batches {
		batches[i].fold()
	}
	for try := 1; len(batches) > 0; try++ {
		calls := make([]*script.Call, len(batches))
		for i := range batches {
			calls[i] = batches[i].call()
		}
		script.RunAll(ctx, rdb, calls)
		var again []Batch
		for i, c := range calls {
			stored, stale := staleCounts(c)
			if !stale || try == maxTries {
				batches[i].take(c)
				continue
			}
			batches[i].Lane.Learn(stored)
			again = append(again, batches[i])
		}
		batches = again
	}
}

// fold lets the first of several equal keys that are to be kept stand for all.
func (b *Batch) fold() {
	if len(b.Events) < 2 {
		return
	}
	var last map[string]*Event
	for _, e := range b.Events {
		if !e.Keyed {
			continue
		}
		if last == nil {
			last = make(map[string]*Event)
		}
		if f := last[e.ID]; f != nil && f.Policy == Keep && e.Policy == Keep {
			e.same = f
			continue
		}
		last[e.ID] = e
	}
}

// take sets the events' errors from the call's reply.
func (b *Batch) take(c *script.Call) {
	err := callError(c, b.Lane, "publish")
	var outcomes []any
	if err == nil {
		if b.counts.Stored != b.counts.Wanted {
			b.Lane.Learn(b.counts.Wanted)
		}
		outcomes, _ = c.Reply[1].([]any)
	}
	for _, e := range b.Events {
		switch {
		case e.same != nil:
			e.Err = e.same.Err
		case err != nil:
			e.Err = err
		case e.Keyed:
			if outcomes[0] == "duplicate" {
				e.Err = fmt.Errorf("bucket: topic %q, id %q: %w", b.Lane.Topic, e.ID, ErrDuplicateID)
			}
			outcomes = outcomes[1:]
		}
	}
}
