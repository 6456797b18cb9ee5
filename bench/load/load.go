package load

import (
	"context"
	"fmt"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/bench/internal/measure"
)

const (
	topic = "load"
	// chunk is how many events one PublishEvents call gets.
	chunk = 100_000
)

// publishEach publishes n events with a call for each.
func publishEach(ctx context.Context, q *dueq.Queue, n, callers int, at measure.Schedule) error {
	return measure.Spread(ctx, n, callers, func(ctx context.Context, i int) error {
		due := at(i)
		_, err := q.PublishEvent(ctx, topic, measure.Body(i, due), due)
		return err
	})
}

// newEvents are n events, the first of them the from-th.
func newEvents(from, n int, at measure.Schedule) []dueq.NewEvent {
	events := make([]dueq.NewEvent, n)
	for i := range events {
		due := at(from + i)
		events[i] = dueq.NewEvent{Body: measure.Body(from+i, due), EffectTime: due}
	}
	return events
}

// fill publishes n events in large batches and returns their ids.
func fill(ctx context.Context, q *dueq.Queue, n int, at measure.Schedule) ([]string, error) {
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

// intake is a handler that keeps count of events.
type intake struct{ *measure.Intake }

func newIntake(n int, late *measure.Lateness) intake { return intake{measure.NewIntake(n, late)} }

// HandleEvent is dueq.Handler's.
func (in intake) HandleEvent(_ context.Context, e *dueq.Event) error {
	in.Take(e.Body)
	return nil
}

func (in intake) repeats() measure.Figure {
	return measure.Figure{Name: "repeated", Value: float64(in.Repeats())}
}

// await returns when all events have arrived and their acks too: when nothing
// of the topic is left but the given number of scheduled events.
func (in intake) await(ctx context.Context, q *dueq.Queue, scheduled int) error {
	err := in.Await(ctx, func() string {
		stats, err := q.Stats(ctx, topic)
		return fmt.Sprintf("%+v, %v", stats, err)
	})
	if err != nil {
		return err
	}
	return awaitSettled(ctx, q, scheduled)
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
		if time.Since(start) > measure.Patience {
			return fmt.Errorf("after %v there should be %d events, scheduled, but there are: %+v", measure.Patience, scheduled, s)
		}
		if err := measure.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}
