package inspect

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

// forecastCounts is about the most counts that one call makes.
const forecastCounts = 1000

//go:embed forecast.lua
var forecastSource string

var forecastScript = script.New(forecastSource)

// Forecast counts what is scheduled in the lanes: element i what is due within
// ahead[i] from now and not within ahead[i-1].
func Forecast(ctx context.Context, rdb redis.UniversalClient, lanes []*key.Lane, ahead []time.Duration) ([]int, error) {
	if err := learn(ctx, rdb, lanes); err != nil {
		return nil, err
	}
	pauses := make([]any, len(ahead))
	for i, d := range ahead {
		pauses[i] = d.Milliseconds()
	}
	var calls []*script.Call
	for _, l := range lanes {
		names := make([]string, l.Buckets())
		for i := range names {
			names[i] = l.Bucket(i)
		}
		for some := range slices.Chunk(names, max(1, forecastCounts/len(ahead))) {
			calls = append(calls, &script.Call{Script: forecastScript, Keys: some, Args: pauses})
		}
	}
	counts := make([]int, len(ahead))
	for some := range slices.Chunk(calls, maxStep) {
		script.RunAll(ctx, rdb, some)
		for _, c := range some {
			if c.Err != nil {
				return nil, fmt.Errorf("inspect: forecast topic %q: %w", lanes[0].Topic, c.Err)
			}
			for i, n := range c.Reply {
				counts[i] += int(num(n))
			}
		}
	}
	return counts, nil
}
