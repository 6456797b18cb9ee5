package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	sentinels    = 3
	sentinelName = "main"

	replicaTimeout = 60 * time.Second
)

// StartReplica starts a replica of the server and returns once it has all its
// data. args are further flags, as for [Start].
func (s *Server) StartReplica(args ...string) *Server {
	s.tb.Helper()
	host, port := split(s.tb, s.addr)
	r := Start(s.tb, append([]string{"--replicaof", host, port}, args...)...)
	r.awaitSync()
	return r
}

// awaitSync returns once a replica has its master's data.
func (s *Server) awaitSync() {
	s.tb.Helper()
	rdb := s.Client()
	await(s.tb, "replica "+s.addr+" in sync", func(ctx context.Context) bool {
		return strings.Contains(rdb.Info(ctx, "replication").Val(), "master_link_status:up")
	})
}

// Sentinel is a master with replicas and three sentinels that watch over them.
type Sentinel struct {
	tb      testing.TB
	servers []*Server
	addrs   []string // of the sentinels
	one     *redis.SentinelClient
}

// StartSentinel starts a master with so many replicas, and sentinels that
// replace it when it was silent for half a second. It returns once the sentinels
// know of all. args are further flags of master and replicas, as for [Start].
func StartSentinel(tb testing.TB, replicas int, args ...string) *Sentinel {
	tb.Helper()
	master := Start(tb, args...)
	s := &Sentinel{tb: tb, servers: []*Server{master}}
	for range replicas {
		s.servers = append(s.servers, master.StartReplica(args...))
	}
	host, port := split(tb, master.addr)
	config := fmt.Sprintf(`sentinel monitor %[1]s %[2]s %[3]s 2
sentinel down-after-milliseconds %[1]s 500
sentinel failover-timeout %[1]s 5000
`, sentinelName, host, port)
	for range sentinels {
		dir := tb.TempDir()
		file := filepath.Join(dir, "sentinel.conf")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			tb.Fatal(err)
		}
		s.addrs = append(s.addrs, start(tb, dir, []string{file, "--sentinel"}).addr)
	}
	for _, addr := range s.addrs {
		rdb := redis.NewSentinelClient(&redis.Options{Addr: addr})
		tb.Cleanup(func() { _ = rdb.Close() })
		s.one = rdb
		await(tb, "sentinel "+addr+" knows of all", func(ctx context.Context) bool {
			about := rdb.Master(ctx, sentinelName).Val()
			return about["num-slaves"] == fmt.Sprint(replicas) && about["num-other-sentinels"] == fmt.Sprint(sentinels-1)
		})
	}
	return s
}

// Client is a new client of whichever server is the master, closed when the test
// ends.
func (s *Sentinel) Client() *redis.Client {
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: sentinelName, SentinelAddrs: s.addrs})
	closeAtEnd(s.tb, rdb)
	return rdb
}

// Master is the server that the sentinels say is the master.
func (s *Sentinel) Master() *Server {
	s.tb.Helper()
	at, err := s.one.GetMasterAddrByName(s.tb.Context(), sentinelName).Result()
	if err != nil {
		s.tb.Fatalf("redistest: ask for the master: %v", err)
	}
	for _, server := range s.servers {
		if server.addr == net.JoinHostPort(at[0], at[1]) {
			return server
		}
	}
	s.tb.Fatalf("redistest: the sentinels name %v as master", at)
	return nil
}

// AddReplicas gives each master a replica and returns once all nodes know of
// them and they have all data.
func (c *Cluster) AddReplicas() {
	c.tb.Helper()
	host, port := split(c.tb, c.servers[0].addr)
	var replicas []*Server
	for range c.servers {
		r := Start(c.tb, c.args...)
		if err := r.Client().ClusterMeet(c.tb.Context(), host, port).Err(); err != nil {
			c.tb.Fatalf("redistest: have replica %s meet the cluster: %v", r.addr, err)
		}
		replicas = append(replicas, r)
	}
	for i, master := range c.servers {
		id, err := nodeID(c.tb.Context(), master.Client())
		if err != nil {
			c.tb.Fatal(err)
		}
		rdb := replicas[i].Client()
		await(c.tb, "replica of "+master.addr, func(ctx context.Context) bool { // which it has to have heard of
			return rdb.ClusterReplicate(ctx, id).Err() == nil
		})
	}
	for _, r := range replicas {
		r.awaitSync()
	}
	for _, node := range slices.Concat(c.servers, replicas) {
		rdb := node.Client()
		await(c.tb, node.addr+" knows the cluster", func(ctx context.Context) bool {
			return strings.Count(rdb.ClusterNodes(ctx).Val(), "slave ") == len(replicas)
		})
	}
}

// AwaitTakeover returns once the j-th master finds that another node serves what
// the i-th did.
func (c *Cluster) AwaitTakeover(i, j int) {
	c.tb.Helper()
	rdb := c.servers[j].Client()
	await(c.tb, "takeover of "+c.servers[i].addr, func(ctx context.Context) bool {
		for node := range strings.Lines(rdb.ClusterNodes(ctx).Val()) {
			if fields := strings.Fields(node); strings.HasPrefix(fields[1], c.servers[i].addr+"@") {
				return len(fields) == 8 // without slots
			}
		}
		return false
	})
}

// nodeID is how a cluster calls one of its nodes.
func nodeID(ctx context.Context, rdb *redis.Client) (string, error) {
	id, err := rdb.Do(ctx, "CLUSTER", "MYID").Text()
	if err != nil {
		return "", fmt.Errorf("redistest: name of cluster node %s: %w", rdb.Options().Addr, err)
	}
	return id, nil
}

// MoveSlot moves a slot from the i-th master to the j-th, key by key, as an
// operator does while clients go on.
func (c *Cluster) MoveSlot(slot, i, j int) error {
	ctx, cancel := context.WithTimeout(c.tb.Context(), clusterTimeout)
	defer cancel()
	from, to := c.servers[i].Client(), c.servers[j].Client()
	source, err := nodeID(ctx, from)
	if err != nil {
		return err
	}
	target, err := nodeID(ctx, to)
	if err != nil {
		return err
	}
	if err := to.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", source).Err(); err != nil {
		return fmt.Errorf("import slot %d: %w", slot, err)
	}
	if err := from.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", target).Err(); err != nil {
		return fmt.Errorf("migrate slot %d: %w", slot, err)
	}
	host, port := split(c.tb, c.servers[j].addr)
	for {
		keys, err := from.ClusterGetKeysInSlot(ctx, slot, 1).Result()
		if err != nil {
			return fmt.Errorf("keys of slot %d: %w", slot, err)
		}
		if len(keys) == 0 {
			break
		}
		if err := from.Migrate(ctx, host, port, keys[0], 0, 5*time.Second).Err(); err != nil {
			return fmt.Errorf("migrate key %q: %w", keys[0], err)
		}
	}
	for _, node := range []*redis.Client{to, from} {
		if err := node.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", target).Err(); err != nil {
			return fmt.Errorf("give slot %d to %s: %w", slot, c.servers[j].addr, err)
		}
	}
	return nil
}

func split(tb testing.TB, addr string) (host, port string) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		tb.Fatal(err)
	}
	return host, port
}

// await returns once ok does.
func await(tb testing.TB, what string, ok func(ctx context.Context) bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), replicaTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok(ctx) {
		select {
		case <-ctx.Done():
			tb.Fatalf("redistest: it never came to this: %s", what)
		case <-tick.C:
		}
	}
}
