package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// scanCount is how many keys a step of SCAN looks at.
const scanCount = 1000

// removeNamespace removes a throw-away namespace's keys. It looks at every key
// of the server, so it is for demonstrations, and ns must hold nothing that is
// special in a pattern.
func removeNamespace(ctx context.Context, rdb redis.UniversalClient, ns string) error {
	var err error
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			return removeKeys(ctx, node, ns)
		})
	} else {
		err = removeKeys(ctx, rdb, ns)
	}
	if err != nil {
		return fmt.Errorf("remove the keys of namespace %s: %w", ns, err)
	}
	return nil
}

// removeKeys removes the keys of one server: {ns:topic}:pool and so on, and ns:topics.
func removeKeys(ctx context.Context, node redis.UniversalClient, ns string) error {
	var keys []string
	found := node.Scan(ctx, 0, "*"+ns+":*", scanCount).Iterator()
	for found.Next(ctx) {
		keys = append(keys, found.Val())
	}
	if err := found.Err(); err != nil {
		return err
	}
	_, err := node.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, k := range keys { // one by one: a cluster's slots differ
			pipe.Unlink(ctx, k)
		}
		return nil
	})
	return err
}
