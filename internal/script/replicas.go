package script

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// ReplicaTime is how long a round trip waits for replicas at the most.
	ReplicaTime = time.Second
	// redirectTime is for how long calls that wait for replicas are sent after a
	// slot that moves.
	redirectTime = time.Second
)

// errNotSent says that there was no node to send a call to.
var errNotSent = errors.New("not sent")

// CanWait reports whether calls on rdb can wait for replicas: whether it is
// known on which connection they go.
func CanWait(rdb redis.UniversalClient) bool {
	_, cluster := Client(rdb).(*redis.ClusterClient)
	return cluster || Single(rdb)
}

// replicas is the largest number of replicas that one of the calls waits for.
func replicas(calls []*Call) (most int) {
	for _, c := range calls {
		most = max(most, c.Replicas)
	}
	return most
}

// replicaTime is how long a round trip of rdb waits for replicas: not for as long
// as the client waits for replies, or it would not hear that the calls were done.
func replicaTime(rdb redis.UniversalClient) time.Duration {
	if c, ok := Client(rdb).(*redis.Client); ok && c.Options().ReadTimeout > 0 {
		return max(time.Millisecond, min(ReplicaTime, c.Options().ReadTimeout/2))
	}
	return ReplicaTime
}

// newWait is the command that returns how many replicas have all that its
// connection wrote, once they are so many or the time is over.
func newWait(ctx context.Context, replicas int, patience time.Duration) once {
	return newOnce(ctx, 0, []any{"wait", replicas, patience.Milliseconds()})
}

// confirm sets Unreplicated from the outcome of the wait that followed the call.
func (c *Call) confirm(wait once, patience time.Duration) {
	c.Unreplicated = nil
	if c.Replicas == 0 || c.Err != nil {
		return
	}
	n, err := wait.Int()
	switch {
	case err != nil:
		c.Unreplicated = fmt.Errorf("wait for %d replicas: %w", c.Replicas, err)
	case n < c.Replicas:
		c.Unreplicated = fmt.Errorf("%d replicas have it after %v, not %d", n, patience, c.Replicas)
	}
}

// runOnMasters runs calls on a cluster so that they can wait for replicas: WAIT
// looks at what its own connection has written, so the calls of each master go
// in one pipeline to it. Those that meet a slot on the move are sent again, for
// a while; the client does not see to that here.
func runOnMasters(ctx context.Context, rdb redis.UniversalClient, calls []*Call) {
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		fail(calls, fmt.Errorf("%w: a %T cannot wait for replicas", errNotSent, rdb))
		return
	}
	for pause := 10 * time.Millisecond; len(calls) > 0; pause *= 2 {
		eachOnMaster(ctx, cluster, calls)
		reloadAfter(ctx, cluster, calls)
		calls = slices.DeleteFunc(slices.Clone(calls), func(c *Call) bool { return !misdirected(c.Err) })
		if len(calls) == 0 || pause > redirectTime/2 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func eachOnMaster(ctx context.Context, cluster *redis.ClusterClient, calls []*Call) {
	of := make(map[*redis.Client][]*Call, 1)
	for _, c := range calls {
		master, err := cluster.MasterForKey(ctx, c.key())
		if err != nil {
			fail([]*Call{c}, fmt.Errorf("%w: %w", errNotSent, err))
			continue
		}
		of[master] = append(of[master], c)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for master, some := range of {
		wg.Go(func() { runAll(ctx, master, some) })
	}
}

// key is one of the call's keys.
func (c *Call) key() string {
	if c.Script != nil {
		return c.Keys[0]
	}
	for _, words := range c.Commands {
		if len(words) > 1 {
			key, _ := words[1].(string)
			return key
		}
	}
	return ""
}

func fail(calls []*Call, err error) {
	for _, c := range calls {
		c.Reply, c.Err, c.Unreplicated = nil, err, nil
	}
}

// misdirected reports whether a node refused a call because the slot is, or was,
// on its way to another.
func misdirected(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") || redis.HasErrorPrefix(err, "TRYAGAIN")
}

// reloadAfter is [Reload] if a call has failed.
func reloadAfter(ctx context.Context, rdb redis.UniversalClient, calls []*Call) {
	if slices.ContainsFunc(calls, func(c *Call) bool { return c.Err != nil }) {
		Reload(ctx, rdb)
	}
}

// Reload has the client of a cluster look, in the background, which node serves
// what. The client does so by itself when a node sends it elsewhere, but not when
// a node is gone: it would go on asking that one for a minute.
func Reload(ctx context.Context, rdb redis.UniversalClient) {
	if cluster, ok := Client(rdb).(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}
