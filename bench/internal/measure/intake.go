package measure

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Patience is how long no event may arrive before we give up.
const Patience = 30 * time.Second

// Intake keeps count of n events.
type Intake struct {
	late     *Lateness // nil: not measured
	seen     []atomic.Bool
	arrived  atomic.Int64 // different events
	repeated atomic.Int64 // deliveries of events that had been delivered
	foreign  atomic.Int64 // deliveries of events that nobody published
}

// NewIntake is an intake of n events, which measures how late they are unless
// late is nil.
func NewIntake(n int, late *Lateness) *Intake {
	return &Intake{late: late, seen: make([]atomic.Bool, n)}
}

// Take counts the delivery of an event with this body.
func (in *Intake) Take(body []byte) {
	now := time.Now()
	i, due, ok := ParseBody(body)
	switch {
	case !ok || i < 0 || i >= len(in.seen):
		in.foreign.Add(1)
		return
	case in.seen[i].Swap(true):
		in.repeated.Add(1)
		return
	}
	if in.late != nil {
		in.late.Add(now.Sub(due))
	}
	in.arrived.Add(1)
}

// Repeats is how many deliveries were of events that had been delivered.
func (in *Intake) Repeats() int64 { return in.repeated.Load() }

// Await returns when all events have arrived. It fails when none has for
// [Patience], and then says what is left, and when one came that nobody published.
func (in *Intake) Await(ctx context.Context, left func() string) error {
	last, since := int64(-1), time.Now()
	for n := in.arrived.Load(); n < int64(len(in.seen)); n = in.arrived.Load() {
		if n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) > Patience {
			return fmt.Errorf("%d of %d events have arrived, and none for %v: %s", n, len(in.seen), Patience, left())
		}
		if err := Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	if n := in.foreign.Load(); n > 0 {
		return fmt.Errorf("%d deliveries of events that were not published", n)
	}
	return nil
}
