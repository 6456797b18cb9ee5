package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

// scanStep is how many key names one SCAN looks at.
const scanStep = 1000

// laneKeys finds, by lane tag, the keys of all buckets and held sets that there
// are, without the tag, in one walk over all key names of the servers.
func laneKeys(ctx context.Context, rdb redis.UniversalClient, lanes []*key.Lane) (map[string][]string, error) {
	if len(lanes) == 0 {
		return nil, nil
	}
	found := make(map[string][]string, len(lanes))
	prefix := strings.TrimSuffix(lanes[0].Tag, "}")
	for _, l := range lanes {
		found[l.Tag] = nil
		for !strings.HasPrefix(l.Tag, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	pattern := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(prefix) + "*"
	var mu sync.Mutex
	scan := func(ctx context.Context, node redis.UniversalClient) error {
		names := node.Scan(ctx, 0, pattern, scanStep).Iterator()
		for names.Next(ctx) {
			before, name, _ := strings.Cut(names.Val(), "}:")
			if !strings.HasPrefix(name, "bucket:") && !strings.HasPrefix(name, "held:") {
				continue
			}
			mu.Lock()
			if known, ok := found[before+"}"]; ok && !slices.Contains(known, name) {
				found[before+"}"] = append(known, name)
			}
			mu.Unlock()
		}
		return names.Err()
	}
	var err error
	switch c := script.Client(rdb).(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return scan(ctx, node) })
	case *redis.Ring:
		err = c.ForEachShard(ctx, func(ctx context.Context, node *redis.Client) error { return scan(ctx, node) })
	default:
		err = scan(ctx, rdb)
	}
	if err != nil {
		return nil, fmt.Errorf("inspect: check topic %q: list keys: %w", lanes[0].Topic, err)
	}
	return found, nil
}
