package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
)

// maxHolders is the most sessions of a lane whose events are counted.
const maxHolders = 1000

// Held counts, by session, the events that sessions hold in the lanes. A session
// that lost its leases goes on under the same name with a dot and a number.
func Held(ctx context.Context, rdb redis.UniversalClient, lanes []*key.Lane) (map[string]int, error) {
	held := make(map[string]int)
	for some := range slices.Chunk(lanes, maxStep) {
		holders := make([]*redis.StringSliceCmd, len(some))
		_, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, l := range some {
				holders[i] = pipe.ZRange(ctx, l.Sessions, -maxHolders, -1)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("inspect: read sessions: %w", err)
		}
		counts := make(map[string][]*redis.IntCmd)
		_, err = rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, l := range some {
				for _, name := range holders[i].Val() {
					session, _, _ := strings.Cut(name, ".")
					counts[session] = append(counts[session], pipe.SCard(ctx, l.Held(name)))
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("inspect: count what sessions hold: %w", err)
		}
		for session, of := range counts {
			for _, n := range of {
				held[session] += int(n.Val())
			}
		}
	}
	return held, nil
}
