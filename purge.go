package dueq

import (
	"context"
	"errors"
	"fmt"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/internal/key"
)

// Purge forgets the events of a topic that are in one of the states, scheduled,
// ready or dead, and returns how many; without states those in any of these three.
// The topic may be in use: an event that a process holds, alive or not, stays, and
// settles as if there had been no purge. One that is published meanwhile may be
// forgotten, or stay.
//
// It works in small steps. When ctx ends, or Redis fails, it stops, and n is what
// it is known to have forgotten by then; another call goes on. Its error wraps
// [ErrTopicInvalid], [ErrQueryInvalid] for any other state, [ErrShutDown],
// [ErrOutcomeUnknown], ctx's cause, or why Redis refused.
func (q *Queue) Purge(ctx context.Context, topic string, states ...State) (n int, err error) {
	of, err := purged(states)
	if err != nil {
		return 0, fmt.Errorf("%w: purge topic %.80q: %w", ErrQueryInvalid, topic, err)
	}
	lanes, err := q.usedLanes(ctx, topic)
	if err != nil {
		return 0, err
	}
	for _, l := range lanes {
		forgotten, err := q.purgeLane(ctx, l, of)
		n += forgotten
		q.topicMetrics(topic).Cancelled.Add(int64(forgotten))
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// purged are the places of the states.
func purged(states []State) (of bucket.Places, err error) {
	if len(states) == 0 {
		return bucket.Places{Scheduled: true, Ready: true, Dead: true}, nil
	}
	for _, s := range states {
		switch s {
		case StateScheduled:
			of.Scheduled = true
		case StateReady:
			of.Ready = true
		case StateDead:
			of.Dead = true
		case StateLeased:
			return of, errors.New("what is leased cannot be purged: a process has it")
		default:
			return of, fmt.Errorf("state %.80q is none of %s, %s and %s", s, StateScheduled, StateReady, StateDead)
		}
	}
	return of, nil
}

// purgeLane purges one lane until nothing is left there.
func (q *Queue) purgeLane(ctx context.Context, l *key.Lane, of bucket.Places) (n int, err error) {
	for {
		if ctx.Err() != nil {
			return n, fmt.Errorf("dueq: purge topic %q: %w", l.Topic, context.Cause(ctx))
		}
		forgotten, err := bucket.Purge(context.WithoutCancel(ctx), q.rdb, l, of) // whole steps: n is exact
		n += forgotten
		if err != nil {
			return n, fmt.Errorf("dueq: %w", err)
		}
		if forgotten < bucket.PurgeBatch {
			return n, nil
		}
	}
}
