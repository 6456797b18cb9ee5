package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/redis/go-redis/v9"
)

const (
	sentinels  = 3
	masterName = "main"
)

// startSentinel starts a master, its replica, and sentinels that replace a master
// when it was silent for a second.
func (t *topology) startSentinel(ctx context.Context, dir string) error {
	if err := t.startNodes(ctx, dir, 1); err != nil {
		return err
	}
	master := t.nodes[0]
	if err := t.startNodes(ctx, dir, 1, replicaOf(master)...); err != nil {
		return err
	}
	config := fmt.Sprintf(`sentinel monitor %[1]s 127.0.0.1 %[2]s 2
sentinel down-after-milliseconds %[1]s 1000
sentinel failover-timeout %[1]s 10000
`, masterName, master.port())
	for i := range sentinels {
		dir := filepath.Join(dir, fmt.Sprint("sentinel", i))
		file := filepath.Join(dir, "sentinel.conf")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			return err
		}
		s, err := startServer(ctx, dir, "", file, "--sentinel")
		if err != nil {
			return err
		}
		t.sentinels = append(t.sentinels, s)
		t.asked = append(t.asked, redis.NewSentinelClient(s.rdb.Options()))
		// They would look at a server that is back only every ten seconds. Those before 7.0 cannot be told.
		_ = s.rdb.Do(ctx, "SENTINEL", "DEBUG", "INFO-PERIOD", 1000).Err()
	}
	return nil
}

func replicaOf(master *server) []string {
	return []string{"--replicaof", "127.0.0.1", master.port()}
}

// sentinelsKnow reports whether all sentinels know the master and its replica,
// find that they are well, and know each other.
func (t *topology) sentinelsKnow(ctx context.Context, master *server) bool {
	for _, rdb := range t.asked {
		about := rdb.Master(ctx, masterName).Val()
		replicas := rdb.Replicas(ctx, masterName).Val()
		if about["port"] != master.port() || about["flags"] != "master" || about["num-other-sentinels"] != strconv.Itoa(sentinels-1) ||
			len(replicas) != 1 || replicas[0]["flags"] != "slave" || replicas[0]["master-link-status"] != "ok" {
			return false
		}
	}
	return true
}

// comeBack are the further arguments with which a server that was a master starts
// again: as a replica of the new one or, half the time, as a master that the
// sentinels have to teach.
func (t *topology) comeBack(old, master *server, dice uint64) {
	if t.shape != sentinel { // it finds out by itself
		return
	}
	old.args = nil
	if dice%2 == 0 {
		old.args = replicaOf(master)
	}
}
