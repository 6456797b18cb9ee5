package measure

import (
	"context"
	"fmt"
	"time"
)

// controlEvery is rare enough to cost nothing that shows.
const controlEvery = 50 * time.Millisecond

// Control runs do and tells how late a bare timer and a PING were meanwhile:
// lateness beyond that is the queue's, up to that it is the machine's.
func (m *Meter) Control(ctx context.Context, do func() error) ([]Figure, error) {
	late := NewLateness()
	until, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- m.ping(ctx, until, late) }()
	err := do()
	close(until)
	if pingErr := <-ended; err == nil && pingErr != nil {
		err = fmt.Errorf("ping: %w", pingErr)
	}
	q := late.Quantiles()
	return []Figure{
		{Name: "timer+PING p99", Value: q.P99, Unit: "ms"},
		{Name: "max", Value: q.Max, Unit: "ms"},
	}, err
}

func (m *Meter) ping(ctx context.Context, until <-chan struct{}, late *Lateness) error {
	for {
		due := time.Now().Add(controlEvery)
		select {
		case <-until:
			return nil
		case <-time.After(controlEvery):
		}
		if err := m.rdb.Ping(ctx).Err(); err != nil {
			return err
		}
		late.Add(time.Since(due))
	}
}
