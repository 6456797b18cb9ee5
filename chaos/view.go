package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

const (
	lookTime  = time.Second // for one look at all servers
	lookTick  = 100 * time.Millisecond
	agreeTime = 90 * time.Second // until all servers agree again, whatever was done to them
)

// view is what the servers say of themselves at one moment.
type view struct {
	masters  []*server           // those that say that they are
	replicas map[*server]*server // by master, if it has all the master's data
	ids      []string            // of the masters' data: a server that takes over gives it a new one
	whole    bool                // each master has its replica, and all servers know that
}

// look asks all servers.
func (t *topology) look(ctx context.Context) view {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	said := make([]map[string]string, len(t.nodes))
	var doubts atomic.Int64
	t.each(func(i int, node *server) {
		said[i] = fields(node.rdb.Info(ctx, "replication").Val())
		if t.shape == cluster && !agrees(ctx, node, t.masters()) {
			doubts.Add(1)
		}
	})
	v := view{replicas: make(map[*server]*server)}
	for i, about := range said {
		if about["role"] == "master" {
			v.masters = append(v.masters, t.nodes[i])
			v.ids = append(v.ids, about["master_replid"])
		}
	}
	for i, about := range said {
		if about["master_link_status"] != "up" {
			continue
		}
		addr := net.JoinHostPort(about["master_host"], about["master_port"])
		if n := slices.IndexFunc(v.masters, func(m *server) bool { return m.Addr() == addr }); n >= 0 {
			v.replicas[v.masters[n]] = t.nodes[i]
		}
	}
	slices.Sort(v.ids)
	v.whole = doubts.Load() == 0 && len(v.masters) == t.masters() && len(v.replicas) == t.masters()
	if v.whole && t.shape == sentinel {
		v.whole = t.sentinelsKnow(ctx, v.masters[0])
	}
	return v
}

// fields are the lines of INFO.
func fields(info string) map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[name] = value
		}
	}
	return all
}

// pair is one of the masters, and its replica.
func (v view) pair(dice uint64) (master, replica *server) {
	master = v.masters[dice%uint64(len(v.masters))]
	return master, v.replicas[master]
}

// leads reports whether a server says that it is a master.
func (s *server) leads(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	return fields(s.rdb.Info(ctx, "replication").Val())["role"] == "master"
}

// await returns once ok does.
func await(ctx context.Context, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, agreeTime)
	defer cancel()
	for !ok() {
		if !pause(ctx, lookTick) {
			return fmt.Errorf("it does not come to this: %s: %w", what, context.Cause(ctx))
		}
	}
	return nil
}
