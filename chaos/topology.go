package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/chaos/history"
)

// shape is how the Redis of a run is built. It is a flag, too.
type shape string

const (
	single   shape = "single"
	sentinel shape = "sentinel"
	cluster  shape = "cluster"
)

// String is flag.Value's.
func (s shape) String() string { return string(s) }

// Set is flag.Value's.
func (s *shape) Set(text string) error {
	*s = shape(text)
	switch *s {
	case single, sentinel, cluster:
		return nil
	}
	return errors.New("not single, sentinel or cluster")
}

// partitions of each topic: enough for its lanes to lie on several nodes.
func (s shape) partitions() int {
	if s == cluster {
		return 4
	}
	return 1
}

// masters is how many there are.
func (s shape) masters() int {
	if s == cluster {
		return 3
	}
	return 1
}

// topology is the Redis of a run.
type topology struct {
	shape
	nodes     []*server // those that hold data
	sentinels []*server
	asked     []*redis.SentinelClient // of each of them
	rdb       redis.UniversalClient   // of all of it, for this program
}

// startTopology starts a Redis and returns once it can be used.
func startTopology(ctx context.Context, s shape, dir string) (*topology, error) {
	t := &topology{shape: s}
	var err error
	switch s {
	case sentinel:
		err = t.startSentinel(ctx, dir)
	case cluster:
		err = t.startCluster(ctx, dir)
	default:
		err = t.startNode(ctx, filepath.Join(dir, "redis"), history.Always)
	}
	if err == nil && s != single {
		err = await(ctx, "the servers agree", func() bool { return t.look(ctx).whole })
	}
	if err != nil {
		t.close()
		return nil, err
	}
	t.rdb = dial(s, t.addrs())
	return t, nil
}

func (t *topology) startNode(ctx context.Context, dir, mode string, args ...string) error {
	node, err := startServer(ctx, dir, mode, args...)
	if err == nil {
		t.nodes = append(t.nodes, node)
	}
	return err
}

// startNodes starts servers that keep nothing on disk: what one of them has lost
// it gets from another.
func (t *topology) startNodes(ctx context.Context, dir string, n int, args ...string) error {
	for range n {
		if err := t.startNode(ctx, filepath.Join(dir, fmt.Sprint("node", len(t.nodes))), "", args...); err != nil {
			return err
		}
	}
	return nil
}

// addrs are where clients ask first.
func (t *topology) addrs() []string {
	servers := t.nodes
	if t.shape == sentinel {
		servers = t.sentinels
	}
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

func (t *topology) close() {
	for _, s := range append(t.sentinels, t.nodes...) {
		s.close()
	}
	for _, rdb := range t.asked {
		_ = rdb.Close()
	}
	if t.rdb != nil {
		_ = t.rdb.Close()
	}
}

// each calls do with every node at once, and returns when all have returned.
func (t *topology) each(do func(i int, node *server)) {
	var wg sync.WaitGroup
	for i, node := range t.nodes {
		wg.Go(func() { do(i, node) })
	}
	wg.Wait()
}

// all calls do with every node, and returns the first error.
func (t *topology) all(do func(node *server) error) error {
	for _, node := range t.nodes {
		if err := do(node); err != nil {
			return err
		}
	}
	return nil
}

// dial is a client of a Redis of that shape.
func dial(s shape, addrs []string) redis.UniversalClient {
	const connections = 32
	switch s {
	case sentinel:
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: masterName, SentinelAddrs: addrs,
			DialTimeout: callTimeout, ReadTimeout: callTimeout, WriteTimeout: callTimeout, PoolSize: connections,
		})
	case cluster:
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: addrs, DialTimeout: callTimeout, ReadTimeout: callTimeout, WriteTimeout: callTimeout, PoolSize: connections,
		})
	}
	return redis.NewClient(&redis.Options{
		Addr: addrs[0], DialTimeout: callTimeout, ReadTimeout: callTimeout, WriteTimeout: callTimeout, PoolSize: connections,
	})
}
