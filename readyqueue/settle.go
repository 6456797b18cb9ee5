package readyqueue

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

// Outcome is how a lease ends.
type Outcome int

const (
	// Ack forgets the event.
	Ack Outcome = iota
	// Retry schedules it again after the delay.
	Retry
	// Bury puts it among the dead.
	Bury
	// Release gives it back to ready as if it had never been claimed.
	Release
)

// String is the outcome's name in scripts and messages.
func (o Outcome) String() string {
	names := [...]string{"ack", "retry", "bury", "release"}
	if o < 0 || int(o) >= len(names) {
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
	return names[o]
}

// Settlement ends one lease. An event that was published again while it was
// held runs again instead of being forgotten or buried.
type Settlement struct {
	ID       string
	Outcome  Outcome
	Delay    time.Duration // for Retry
	Attempts Attempts      // to keep, for Retry and Bury
	Err      error         // set by [Settle]: nil, [ErrLost], or why the call failed

	marked bool // an ack of an event that was published again meanwhile
}

// Settlements are what one session settles in one lane.
type Settlements struct {
	Lane    *key.Lane
	Session string
	Items   []*Settlement
}

//go:embed settle.lua
var settleSource string

var settleScript = script.New(settleSource)

// Settle ends leases, one call per lane and session in one round trip, and sets
// each settlement's Err.
func Settle(ctx context.Context, rdb redis.UniversalClient, batches []Settlements) {
	var again []Settlements
	calls := make([]*script.Call, len(batches))
	for i := range batches {
		calls[i] = batches[i].call()
	}
	script.RunAll(ctx, rdb, calls)
	for i := range batches {
		if marked := batches[i].take(calls[i]); len(marked) > 0 {
			again = append(again, Settlements{Lane: batches[i].Lane, Session: batches[i].Session, Items: marked})
		}
	}
	if len(again) > 0 {
		Settle(ctx, rdb, again) // what is marked is not found marked twice
	}
}

// call builds the settle script's arguments; settle.lua says how they lie.
func (s *Settlements) call() *script.Call {
	l := s.Lane
	keys := []string{l.Held(s.Session), l.Pool, l.Attempts, l.Again, l.Ready, l.Bell, l.Dead, l.Stats}
	args := make([]any, 2, 2+len(s.Items))
	acked := 0
	for _, it := range s.Items {
		if it.Outcome == Ack && !it.marked {
			args = append(args, &it.ID)
			acked++
		}
	}
	args[0], args[1] = l.Alarm, acked
	if acked == len(s.Items) {
		return &script.Call{Script: settleScript, Keys: keys, Args: args}
	}
	index := make(map[int]int)
	for _, it := range s.Items {
		if it.Outcome == Ack && !it.marked {
			continue
		}
		home := l.Home(it.ID)
		if index[home] == 0 {
			keys = append(keys, l.Bucket(home))
			index[home] = len(keys)
		}
		args = append(args, it.Outcome.String(), &it.ID, millis(it.Delay), it.Attempts.String(), index[home], home)
	}
	return &script.Call{Script: settleScript, Keys: keys, Args: args}
}

// millis is a pause in whole milliseconds, never too short: the script counts
// it from the beginning of the present millisecond.
func millis(pause time.Duration) int64 {
	if pause <= 0 {
		return 0
	}
	ms := pause.Milliseconds() + 1
	if pause%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// take sets the settlements' errors and returns those to settle once more.
func (s *Settlements) take(c *script.Call) (marked []*Settlement) {
	if c.Err != nil {
		err := fmt.Errorf("readyqueue: settle in topic %q: %w", s.Lane.Topic, c.Err)
		for _, it := range s.Items {
			it.Err = err
		}
		return nil
	}
	lost, again := names(c.Reply[0]), names(c.Reply[1])
	for _, it := range s.Items {
		it.Err = nil
		if lost[it.ID] {
			it.Err = fmt.Errorf("readyqueue: %s id %q in topic %q: %w", it.Outcome, it.ID, s.Lane.Topic, ErrLost)
		}
		if again[it.ID] && !it.marked {
			it.marked = true
			marked = append(marked, it)
		}
	}
	return marked
}

func names(reply any) map[string]bool {
	ids, _ := reply.([]any)
	if len(ids) == 0 {
		return nil
	}
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		if s, ok := id.(string); ok {
			set[s] = true
		}
	}
	return set
}
