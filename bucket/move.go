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
)

//go:embed move.lua
var moveSource string

var moveScript = script.New(moveSource)

// Cancel forgets an event that nobody holds. Its errors are [ErrNotFound],
// [ErrLeased], [ErrOutcomeUnknown], or why Redis refused.
func Cancel(ctx context.Context, rdb redis.UniversalClient, l *key.Lane, id string) error {
	return move(ctx, rdb, l, "cancel", id, "")
}

// Reschedule gives an event that nobody holds a new due time, in milliseconds
// since 1970; one that was dead starts anew. Its errors are those of [Cancel].
func Reschedule(ctx context.Context, rdb redis.UniversalClient, l *key.Lane, id string, due int64) error {
	return move(ctx, rdb, l, "reschedule", id, due)
}

func move(ctx context.Context, rdb redis.UniversalClient, l *key.Lane, verb, id string, due any) error {
	for try := 1; ; try++ {
		counts := l.Counts()
		homes := counts.Homes(id)
		keys := fixedKeys(l, len(homes))
		for _, h := range homes {
			keys = append(keys, l.Bucket(h))
		}
		c := &script.Call{Script: moveScript, Keys: keys, Args: []any{counts.Stored, l.Alarm, id, homes[0], due, counts.Wanted}}
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
		}
		return nil
	}
}
