package dueq

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/subscriber"
)

const (
	maxPartitions = 64
	highWater     = bucket.HighWater
)

// topic is what this process knows of a topic.
type topic struct {
	name         string
	own          []*key.Lane         // where this process publishes; never changes
	lanes        map[int][]*key.Lane // by partition count
	served       []int               // partition counts that are subscribed to
	registered   bool                // the namespace's set of topics has it
	subscription *subscriber.Topic
}

// topic finds or makes a topic. The caller holds mu.
func (q *Queue) topic(name string) *topic {
	t := q.topics[name]
	if t == nil {
		t = &topic{name: name, lanes: make(map[int][]*key.Lane)}
		q.topics[name] = t
		t.own = q.addLanes(t, q.opts.Partitions)
	}
	return t
}

// addLanes makes the lanes of a partition count known. The caller holds mu.
func (q *Queue) addLanes(t *topic, partitions int) []*key.Lane {
	if t.lanes[partitions] == nil {
		for p := range partitions {
			t.lanes[partitions] = append(t.lanes[partitions],
				key.NewLane(q.opts.Namespace, t.name, p, partitions, q.opts.Buckets))
		}
	}
	return t.lanes[partitions]
}

// serve subscribes to the lanes of a partition count. The caller holds mu.
func (q *Queue) serve(t *topic, partitions int) {
	t.served = append(t.served, partitions)
	for _, k := range q.addLanes(t, partitions) {
		c := q.carrier.Lane(k)
		c.Start(t.subscription.AddLane(k, c.Kick))
	}
}

// lane is where this process publishes id.
func (t *topic) lane(id string) *key.Lane { return t.own[key.Partition(id, len(t.own))] }

// open checks a topic's name and registers it before the first use.
func (q *Queue) open(ctx context.Context, name string) (*topic, error) {
	if err := checkTopic(name); err != nil {
		return nil, err
	}
	q.mu.Lock()
	closed, t := q.closed, q.topics[name]
	if t == nil && !closed {
		t = q.topic(name)
	}
	ready := closed || t.registered
	q.mu.Unlock()
	if closed {
		return nil, ErrShutDown
	}
	if ready {
		return t, nil
	}
	return t, q.register(ctx, t)
}

// member is a topic with a partition count as the set of topics has it.
func member(name string, partitions int) string {
	if partitions == 1 {
		return name
	}
	return name + "/" + strconv.Itoa(partitions)
}

func (q *Queue) register(ctx context.Context, t *topic) error {
	q.checkServer.Do(func() { q.warnOfServer(ctx) })
	err := q.rdb.SAdd(ctx, key.Topics(q.opts.Namespace), member(t.name, q.opts.Partitions)).Err()
	if err != nil {
		return fmt.Errorf("dueq: register topic %q: %w", t.name, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	t.registered = true
	return nil
}

// partitionCounts are the counts with which processes have used a topic.
func (q *Queue) partitionCounts(ctx context.Context, name string) ([]int, error) {
	members := make([]any, maxPartitions)
	for i := range members {
		members[i] = member(name, i+1)
	}
	found, err := q.rdb.SMIsMember(ctx, key.Topics(q.opts.Namespace), members...).Result()
	if err != nil {
		return nil, fmt.Errorf("dueq: look up topic %q: %w", name, err)
	}
	var counts []int
	for i, is := range found {
		if is {
			counts = append(counts, i+1)
		}
	}
	return counts, nil
}

// settleIn registers a topic just subscribed to, and serves the lanes of other
// partition counts, as soon as Redis answers.
func (q *Queue) settleIn(t *topic) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := q.register(q.claims, t)
		if err == nil {
			var counts []int
			if counts, err = q.partitionCounts(q.claims, t.name); err == nil {
				q.serveAll(t.name, counts)
			}
		}
		if err == nil || q.claims.Err() != nil {
			return
		}
		q.opts.Logger.Warn("cannot reach Redis; will try again", zap.Error(err))
		select {
		case <-q.claims.Done():
			return
		case <-time.After(pause):
		}
	}
}

// serveAll serves the lanes of all the given partition counts.
func (q *Queue) serveAll(name string, counts []int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.topics[name]
	if t == nil || t.subscription == nil || q.stopping {
		return
	}
	for _, n := range counts {
		if !slices.Contains(t.served, n) {
			q.serve(t, n)
		}
	}
}

// watchPartitions serves lanes of partition counts that other processes bring
// up: when the set of topics has grown it is read once.
func (q *Queue) watchPartitions(ctx context.Context) {
	tick := time.NewTicker(q.opts.Fallback)
	defer tick.Stop()
	var last int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		size, err := q.rdb.SCard(ctx, key.Topics(q.opts.Namespace)).Result()
		if err != nil || size == last {
			continue
		}
		err = q.eachMember(ctx, func(name string, partitions int) {
			q.serveAll(name, []int{partitions})
		})
		if err == nil {
			last = size
		}
	}
}

// eachMember calls do for every topic and partition count that was registered.
func (q *Queue) eachMember(ctx context.Context, do func(name string, partitions int)) error {
	members := q.rdb.SScan(ctx, key.Topics(q.opts.Namespace), 0, "", 1000).Iterator()
	for members.Next(ctx) {
		name, partitions := members.Val(), 1
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			if n, err := strconv.Atoi(name[i+1:]); err == nil && 1 < n && n <= maxPartitions && member(name[:i], n) == name {
				name, partitions = name[:i], n
			}
		}
		do(name, partitions)
	}
	if err := members.Err(); err != nil {
		return fmt.Errorf("dueq: list topics: %w", err)
	}
	return nil
}

// Topics lists the namespace's topics in order: all that were ever published or
// subscribed to.
func (q *Queue) Topics(ctx context.Context) ([]string, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	var topics []string
	if err := q.eachMember(ctx, func(name string, _ int) { topics = append(topics, name) }); err != nil {
		return nil, err
	}
	slices.Sort(topics)
	return slices.Compact(topics), nil
}
