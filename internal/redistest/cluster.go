package redistest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	slots = 16384

	clusterTimeout = 60 * time.Second
)

// Cluster is a Redis Cluster that belongs to one test or benchmark.
type Cluster struct {
	tb      testing.TB
	args    []string // of every node
	servers []*Server
}

// StartCluster starts a Redis Cluster of so many masters, without replicas, on
// the loopback interface, and returns once each of them says that the cluster is
// fine, which takes Redis some two seconds. The slots are dealt out in equal,
// contiguous ranges. args are further flags, as for [Start]. The servers are
// killed when tb ends.
func StartCluster(tb testing.TB, nodes int, args ...string) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb, args: append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "5000"}, args...)}
	var clients []*redis.Client
	for range nodes {
		s := Start(tb, c.args...)
		c.servers = append(c.servers, s)
		clients = append(clients, s.Client())
	}
	ctx, cancel := context.WithTimeout(tb.Context(), clusterTimeout)
	defer cancel()
	if err := c.join(ctx, clients); err != nil {
		tb.Fatalf("redistest: join cluster: %v", err)
	}
	for i, rdb := range clients {
		if err := awaitCluster(ctx, rdb); err != nil {
			tb.Fatalf("redistest: await cluster node %s: %v", c.servers[i].Addr(), err)
		}
	}
	return c
}

// Addrs are the host:port of all masters; the i-th of n has the i-th n-th of the slots.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.servers))
	for i, s := range c.servers {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Server is the i-th of the nodes that began as masters.
func (c *Cluster) Server(i int) *Server { return c.servers[i] }

// Client is a new client of the cluster, closed when the test ends.
func (c *Cluster) Client() *redis.ClusterClient {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	closeAtEnd(c.tb, rdb)
	return rdb
}

// join deals the slots out and introduces every node to every other.
func (c *Cluster) join(ctx context.Context, clients []*redis.Client) error {
	n, addrs := len(clients), c.Addrs()
	for i, rdb := range clients {
		if err := rdb.ClusterAddSlotsRange(ctx, i*slots/n, (i+1)*slots/n-1).Err(); err != nil {
			return fmt.Errorf("add slots to %s: %w", addrs[i], err)
		}
		// Nodes that start with the same epoch would have to quarrel about it.
		if err := rdb.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return fmt.Errorf("set epoch of %s: %w", addrs[i], err)
		}
	}
	for i, rdb := range clients {
		for _, other := range addrs[i+1:] {
			host, port, err := net.SplitHostPort(other)
			if err != nil {
				return err
			}
			if err := rdb.ClusterMeet(ctx, host, port).Err(); err != nil {
				return fmt.Errorf("have %s meet %s: %w", addrs[i], other, err)
			}
		}
	}
	return nil
}

// awaitCluster returns once rdb's node finds the cluster to be fine.
func awaitCluster(ctx context.Context, rdb *redis.Client) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := rdb.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		if strings.Contains(info, "cluster_state:ok") {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w:\n%s", ctx.Err(), info)
		case <-tick.C:
		}
	}
}
