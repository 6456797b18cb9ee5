package dueq

import (
	"context"
	"slices"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/metric"
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
	settled      bool                // other partition counts were looked for since it was subscribed to
	subscription *subscriber.Topic
	metrics      metric.Topic
}

// topic finds or makes a topic. The caller holds mu.
func (q *Queue) topic(name string) *topic {
	t := q.topics[name]
	if t == nil {
		t = q.newTopic(name)
		q.topics[name] = t
	}
	return t
}

// newTopic makes a topic that the queue does not remember: not each name that
// somebody asks about stands for one. The caller holds mu.
func (q *Queue) newTopic(name string) *topic {
	t := &topic{name: name, lanes: make(map[int][]*key.Lane)}
	t.own = q.addLanes(t, q.opts.Partitions)
	return t
}

// addLanes makes the lanes of a partition count known. The caller holds mu.
func (q *Queue) addLanes(t *topic, partitions int) []*key.Lane {
	if t.lanes[partitions] == nil {
		lanes := make([]*key.Lane, partitions)
		for p := range lanes {
			lanes[p] = t.shared(p, partitions)
			if lanes[p] == nil {
				lanes[p] = key.NewLane(q.opts.Namespace, t.name, p, partitions, q.opts.Buckets)
			}
		}
		t.lanes[partitions] = lanes
	}
	return t.lanes[partitions]
}

// shared finds a lane of a partition count among those of other counts, or nil:
// the lanes of 2 partitions are the first two of 3.
func (t *topic) shared(p, partitions int) *key.Lane {
	for n, lanes := range t.lanes {
		if n > 1 && partitions > 1 && p < n {
			return lanes[p]
		}
	}
	return nil
}

// distinct leaves of partition counts those that have all lanes, and none twice.
func distinct(counts []int) []int {
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	return slices.DeleteFunc(slices.Clone(counts), func(n int) bool { return n != 1 && n != most })
}

// newLanes names afresh the lanes of partition counts.
func (q *Queue) newLanes(name string, counts []int) []*key.Lane {
	var lanes []*key.Lane
	for _, n := range distinct(counts) {
		for p := range n {
			lanes = append(lanes, key.NewLane(q.opts.Namespace, name, p, n, q.opts.Buckets))
		}
	}
	return lanes
}

// serve subscribes to the lanes of a partition count. The caller holds mu.
func (q *Queue) serve(t *topic, partitions int) {
	for _, k := range q.addLanes(t, partitions) {
		if !t.serves(k) {
			c := q.carrier.Lane(k, &t.metrics)
			c.Start(t.subscription.AddLane(k, c.Kick))
		}
	}
	t.served = append(t.served, partitions)
}

// serves reports whether a lane is subscribed to. The queue's mu is held.
func (t *topic) serves(k *key.Lane) bool {
	return slices.ContainsFunc(t.served, func(n int) bool { return slices.Contains(t.lanes[n], k) })
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

// serveOther serves the lanes of a partition count if the topic is subscribed to.
func (q *Queue) serveOther(name string, partitions int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.topics[name]
	if t != nil && t.subscription != nil && !q.stopping && !slices.Contains(t.served, partitions) {
		q.serve(t, partitions)
	}
}
