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

var (
	// ErrNotFound says that there is no event with this id.
	ErrNotFound = errors.New("no such event")
	// ErrLeased says that a handler has the event, so it cannot be changed now.
	ErrLeased = errors.New("the event is being handled")
	// ErrNotDead says that an event that was to be requeued is alive.
	ErrNotDead = errors.New("the event is not dead")
)

//go:embed move.lua
var moveSource string

var moveScript = script.New(moveSource)

// Cancel forgets an event that nobody holds. Its errors are [ErrNotFound],
// [ErrLeased], [ErrOutcomeUnknown], or why Redis refused.
func Cancel(ctx context.Context, rdb redis.UniversalClient, l *key.Lane, id string) error {
	return move(ctx, rdb, l, "cancel", id, "", false)
}

// Reschedule gives an event that nobody holds a new due time, in milliseconds
// since 1970; one that was dead starts anew. Its errors are those of [Cancel].
func Reschedule(ctx context.Context, rdb redis.UniversalClient, l *key.Lane, id string, due int64) error {
	return move(ctx, rdb, l, "reschedule", id, due, false)
}

// RequeueOne is [Reschedule] of an event that is dead. One that is not stays as it
// is: its errors are [ErrNotFound], [ErrNotDead], [ErrOutcomeUnknown], or why Redis
// refused.
func RequeueOne(ctx context.Context, rdb redis.UniversalClient, l *key.Lane, id string, due int64) error {
	return move(ctx, rdb, l, "requeue", id, due, true)
}

func move(ctx context.Context, rdb redis.UniversalClient, l *key.Lane, verb, id string, due any, ofDead bool) error {
	for try := 1; ; try++ {
		counts := l.Counts()
		homes := counts.Homes(id)
		keys := fixedKeys(l, len(homes))
		for _, h := range homes {
			keys = append(keys, l.Bucket(h))
		}
		args := []any{counts.Stored, l.Alarm, id, homes[0], due, counts.Wanted, flag(ofDead)}
		c := &script.Call{Script: moveScript, Keys: keys, Args: args}
		_ = script.Run(ctx, rdb, c)
		if stored, stale := staleCounts(c); stale && try < maxTries {
			l.Learn(stored)
			continue
		}
		if err := callError(c, l, verb); err != nil {
			return err
		}
		switch c.Reply[0] {
		case "missing":
			return fmt.Errorf("bucket: %s id %q in topic %q: %w", verb, id, l.Topic, ErrNotFound)
		case "leased":
			return fmt.Errorf("bucket: %s id %q in topic %q: %w", verb, id, l.Topic, ErrLeased)
		case "alive":
			return fmt.Errorf("bucket: %s id %q in topic %q: %w but %s", verb, id, l.Topic, ErrNotDead, c.Reply[1])
		}
		return nil
	}
}
