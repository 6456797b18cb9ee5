package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dueq-io/dueq"
)

const (
	topic    = "load"
	bodySize = 128
	// chunk is how many events one PublishEvents call gets.
	chunk = 100_000
	// patience is how long no event may arrive before we give up.
	patience = 30 * time.Second
)

// body is that of the i-th event: when it is due (ns), which it is, padding.
func body(i int, due time.Time) []byte {
	b := make([]byte, bodySize)
	binary.LittleEndian.PutUint64(b, uint64(due.UnixNano()))
	binary.LittleEndian.PutUint64(b[8:], uint64(i))
	return b
}

func parseBody(b []byte) (i int, due time.Time, ok bool) {
	if len(b) != bodySize {
		return 0, time.Time{}, false
	}
	ns := binary.LittleEndian.Uint64(b)
	return int(binary.LittleEndian.Uint64(b[8:])), time.Unix(0, int64(ns)), true
}

// schedule says when the i-th event is due.
type schedule func(i int) time.Time

// nextHour spreads events over an hour that begins in half of one.
func nextHour(int) time.Time {
	return time.Now().Add(30*time.Minute + rand.N(time.Hour))
}

// over spreads n events evenly over a span from start on.
func over(start time.Time, span time.Duration, n int) schedule {
	return func(i int) time.Time {
		return start.Add(time.Duration(float64(span) * float64(i) / float64(n)))
	}
}

// spread calls do for 0 to n-1 from some goroutines, until a call fails.
func spread(ctx context.Context, n, callers int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// publishEach publishes n events with a call for each.
func publishEach(ctx context.Context, q *dueq.Queue, n, callers int, at schedule) error {
	return spread(ctx, n, callers, func(ctx context.Context, i int) error {
		due := at(i)
		_, err := q.PublishEvent(ctx, topic, body(i, due), due)
		return err
	})
}

// newEvents are n events, the first of them the from-th.
func newEvents(from, n int, at schedule) []dueq.NewEvent {
	events := make([]dueq.NewEvent, n)
	for i := range events {
		due := at(from + i)
		events[i] = dueq.NewEvent{Body: body(from+i, due), EffectTime: due}
	}
	return events
}

// fill publishes n events in large batches and returns their ids.
func fill(ctx context.Context, q *dueq.Queue, n int, at schedule) ([]string, error) {
	var ids []string
	for len(ids) < n {
		some, err := q.PublishEvents(ctx, topic, newEvents(len(ids), min(chunk, n-len(ids)), at))
		if err != nil {
			return nil, err
		}
		ids = append(ids, some...)
	}
	return ids, nil
}

// intake is a handler that keeps count of n events.
type intake struct {
	late     *lateness // nil: not measured
	seen     []atomic.Bool
	arrived  atomic.Int64 // different events
	repeated atomic.Int64 // deliveries of events that had been delivered
	foreign  atomic.Int64 // deliveries of events that nobody published
}

func newIntake(n int, late *lateness) *intake {
	return &intake{late: late, seen: make([]atomic.Bool, n)}
}

// HandleEvent is dueq.Handler's.
func (in *intake) HandleEvent(_ context.Context, e *dueq.Event) error {
	now := time.Now()
	i, due, ok := parseBody(e.Body)
	switch {
	case !ok || i < 0 || i >= len(in.seen):
		in.foreign.Add(1)
		return nil
	case in.seen[i].Swap(true):
		in.repeated.Add(1)
		return nil
	}
	if in.late != nil {
		in.late.add(now.Sub(due))
	}
	in.arrived.Add(1)
	return nil
}

func (in *intake) repeats() figure {
	return figure{Name: "repeated", Value: float64(in.repeated.Load())}
}

// await returns when all events have arrived and their acks too: when nothing
// of the topic is left but the given number of scheduled events.
func (in *intake) await(ctx context.Context, q *dueq.Queue, scheduled int) error {
	last, since := int64(-1), time.Now()
	for n := in.arrived.Load(); n < int64(len(in.seen)); n = in.arrived.Load() {
		if n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) > patience {
			stats, err := q.Stats(ctx, topic)
			return fmt.Errorf("%d of %d events have arrived, and none for %v: %+v, %w", n, len(in.seen), patience, stats, err)
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	if err := awaitSettled(ctx, q, scheduled); err != nil {
		return err
	}
	if n := in.foreign.Load(); n > 0 {
		return fmt.Errorf("%d deliveries of events that were not published", n)
	}
	return nil
}

// awaitSettled returns when nothing of the topic is left but the given number
// of scheduled events.
func awaitSettled(ctx context.Context, q *dueq.Queue, scheduled int) error {
	for start := time.Now(); ; {
		s, err := q.Stats(ctx, topic)
		if err != nil {
			return err
		}
		if s.Scheduled == scheduled && s.Ready+s.Leased+s.Dead == 0 {
			return nil
		}
		if time.Since(start) > patience {
			return fmt.Errorf("after %v there should be %d events, scheduled, but there are: %+v", patience, scheduled, s)
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}
