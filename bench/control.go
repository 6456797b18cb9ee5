package main

import (
	"context"
	"fmt"
	"time"
)

// controlEvery is rare enough to cost nothing that shows.
const controlEvery = 50 * time.Millisecond

// control runs do and tells how late a bare timer and a PING were meanwhile:
// lateness beyond that is the queue's, up to that it is the machine's.
func (m *meter) control(ctx context.Context, do func() error) ([]figure, error) {
	late := newLateness()
	until, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- m.ping(ctx, until, late) }()
	err := do()
	close(until)
	if pingErr := <-ended; err == nil && pingErr != nil {
		err = fmt.Errorf("ping: %w", pingErr)
	}
	q := late.quantiles()
	return []figure{
		{Name: "timer+PING p99", Value: q.P99, Unit: "ms"},
		{Name: "max", Value: q.Max, Unit: "ms"},
	}, err
}

func (m *meter) ping(ctx context.Context, until <-chan struct{}, late *lateness) error {
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
		late.add(time.Since(due))
	}
}
