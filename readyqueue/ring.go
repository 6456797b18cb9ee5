package readyqueue

import (
	"context"
	_ "embed"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

//go:embed ring.lua
var ringSource string

var ringScript = script.New(ringSource)

// Ring wakes a process for each of the lanes that has ids in ready.
func Ring(ctx context.Context, rdb redis.UniversalClient, lanes []*key.Lane) error {
	var errs []error
	for some := range slices.Chunk(lanes, MaxBatch) {
		calls := make([]*script.Call, len(some))
		for i, l := range some {
			calls[i] = &script.Call{Script: ringScript, Keys: []string{l.Ready, l.Bell}}
		}
		script.RunAll(ctx, rdb, calls)
		for _, c := range calls {
			errs = append(errs, c.Err)
		}
	}
	return errors.Join(errs...)
}
