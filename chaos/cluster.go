package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/dueq-io/dueq/internal/key"
)

const slots = 16384

// startCluster starts masters that share the slots, and a replica for each.
func (t *topology) startCluster(ctx context.Context, dir string) error {
	n := t.masters()
	if err := t.startNodes(ctx, dir, 2*n, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000"); err != nil {
		return err
	}
	for i, node := range t.nodes {
		// Nodes that start with the same epoch would have to quarrel about it.
		if err := node.rdb.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return fmt.Errorf("set epoch: %w", err)
		}
		if i < n {
			if err := node.rdb.ClusterAddSlotsRange(ctx, i*slots/n, (i+1)*slots/n-1).Err(); err != nil {
				return fmt.Errorf("add slots: %w", err)
			}
		}
		host, port, err := net.SplitHostPort(t.nodes[0].Addr())
		if err != nil {
			return err
		}
		if err := node.rdb.ClusterMeet(ctx, host, port).Err(); err != nil {
			return fmt.Errorf("meet: %w", err)
		}
	}
	for i, replica := range t.nodes[n:] {
		id, err := t.nodes[i].id(ctx)
		if err != nil {
			return err
		}
		err = await(ctx, "a replica knows its master", func() bool { return replica.rdb.ClusterReplicate(ctx, id).Err() == nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// id is what a cluster calls a node.
func (s *server) id(ctx context.Context) (string, error) {
	id, err := s.rdb.Do(ctx, "CLUSTER", "MYID").Text()
	if err != nil {
		return "", fmt.Errorf("name of a cluster's node: %w", err)
	}
	return id, nil
}

// agrees reports whether a node of a cluster finds that all is well.
func agrees(ctx context.Context, node *server, masters int) bool {
	all := node.rdb.ClusterNodes(ctx).Val()
	return fields(node.rdb.ClusterInfo(ctx).Val())["cluster_state"] == "ok" &&
		strings.Count(all, "slave ") == masters && strings.Count(all, "master ") == masters &&
		strings.Count(all, " connected") == 2*masters && !strings.Contains(all, "fail") && !strings.Contains(all, "handshake")
}

// failOver has a replica take over from its master, which loses nothing.
func failOver(ctx context.Context, replica *server) error {
	var asked time.Time
	for !replica.leads(ctx) {
		if time.Since(asked) > 6*time.Second { // it gives up after five
			asked = time.Now()
			if err := replica.rdb.ClusterFailover(ctx).Err(); err != nil {
				return fmt.Errorf("CLUSTER FAILOVER: %w", err)
			}
		}
		if !pause(ctx, lookTick) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// moveLane moves the slot of a lane to another master, key by key, and returns
// once the new master's replica has it all.
func (t *topology) moveLane(ctx context.Context, lane *key.Lane, v view, dice uint64) error {
	slot := int(v.masters[0].rdb.ClusterKeySlot(ctx, lane.Pool).Val())
	var from *server
	var others []*server
	for _, m := range v.masters {
		if m.rdb.Exists(ctx, lane.Pool).Err() == nil { // the others say where to ask
			from = m
		} else {
			others = append(others, m)
		}
	}
	if from == nil {
		return fmt.Errorf("nobody serves slot %d", slot)
	}
	to := others[dice%uint64(len(others))]
	if err := moveSlot(ctx, slot, from, to); err != nil {
		return fmt.Errorf("move slot %d from %s to %s: %w", slot, from.Addr(), to.Addr(), err)
	}
	pipe := to.rdb.Pipeline() // WAIT looks at what its own connection wrote: this comes after all the rest
	pipe.Set(ctx, lane.Tag+":moved", "", time.Second)
	wait := pipe.Do(ctx, "WAIT", 1, (10 * time.Second).Milliseconds())
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("await the replica of slot %d: %w", slot, err)
	}
	if n, err := wait.Int(); n < 1 || err != nil {
		return fmt.Errorf("no replica has got slot %d", slot)
	}
	return nil
}

// moveSlot moves a slot, which nobody else moves.
func moveSlot(ctx context.Context, slot int, from, to *server) error {
	source, err := from.id(ctx)
	if err != nil {
		return err
	}
	target, err := to.id(ctx)
	if err != nil {
		return err
	}
	if err := to.rdb.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", source).Err(); err != nil {
		return err
	}
	if err := from.rdb.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", target).Err(); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(to.Addr())
	if err != nil {
		return err
	}
	for {
		keys, err := from.rdb.ClusterGetKeysInSlot(ctx, slot, 1).Result()
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			break
		}
		if err := from.rdb.Migrate(ctx, host, port, keys[0], 0, 5*time.Second).Err(); err != nil {
			return fmt.Errorf("key %q: %w", keys[0], err)
		}
	}
	for _, node := range []*server{to, from} {
		if err := node.rdb.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", target).Err(); err != nil {
			return err
		}
	}
	return nil
}
