// Package conserve checks for tests that every event lies in exactly one place.
package conserve

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

//go:embed breaches.lua
var breachesSource string

// Breaches looks, in one step, at all keys that match one of the patterns: whole
// lanes, each matched once. It counts the events that are not dead, and says which
// ids do not lie in exactly one of a bucket, ready, a held set and dead, what is
// held by no session, and what is kept of ids that are gone: a hundred at the most.
func Breaches(ctx context.Context, rdb redis.Scripter, patterns ...any) (live int64, breaches []string, err error) {
	reply, err := rdb.Eval(ctx, breachesSource, nil, patterns...).Slice()
	if err != nil {
		return 0, nil, fmt.Errorf("conserve: %w", err)
	}
	live, _ = reply[0].(int64)
	for _, b := range reply[1:] {
		breaches = append(breaches, fmt.Sprint(b))
	}
	slices.Sort(breaches)
	return live, breaches, nil
}
