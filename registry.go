package dueq

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

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
		script.Reload(ctx, q.rdb)
		return fmt.Errorf("dueq: register topic %q: %w", t.name, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	t.registered = true
	return nil
}

// partitionCounts are the counts with which processes have used a topic, for calls
// that a queue refuses for a bad name, and once it is shut down.
func (q *Queue) partitionCounts(ctx context.Context, name string) ([]int, error) {
	if err := checkTopic(name); err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	counts, err := q.partitionCountsOf(ctx, []string{name})
	if err != nil {
		return nil, err
	}
	return counts[0], nil
}

// partitionCountsOf are the counts with which processes have used some topics.
func (q *Queue) partitionCountsOf(ctx context.Context, names []string) ([][]int, error) {
	found := make([]*redis.BoolSliceCmd, len(names))
	_, err := q.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, name := range names {
			members := make([]any, maxPartitions)
			for n := range members {
				members[n] = member(name, n+1)
			}
			found[i] = pipe.SMIsMember(ctx, key.Topics(q.opts.Namespace), members...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("dueq: look up topic %q: %w", names[0], err)
	}
	counts := make([][]int, len(names))
	for i := range names {
		for n, is := range found[i].Val() {
			if is {
				counts[i] = append(counts[i], n+1)
			}
		}
	}
	return counts, nil
}

// keepRegistered registers topics as they are subscribed to, all that have come up
// at once, and serves the lanes of partition counts that other processes bring
// up: when the set of topics has grown it is read once.
func (q *Queue) keepRegistered(ctx context.Context) {
	tick := time.NewTicker(q.opts.Fallback)
	defer tick.Stop()
	var seen int64 // members of the set when it was read
	for {
		var retry <-chan time.Time
		if err := q.registerSubscribed(ctx, &seen); err != nil && ctx.Err() == nil {
			script.Reload(ctx, q.rdb)
			q.opts.Logger.Warn("cannot register topics; will try again", zap.Error(err))
			retry = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-q.subscribed:
		case <-tick.C:
		case <-retry:
		}
	}
}

// registerSubscribed registers the topics that were subscribed to since the last
// time, and reads the set if it is not as large as it was.
func (q *Queue) registerSubscribed(ctx context.Context, seen *int64) error {
	var fresh []*topic
	var members []any
	q.mu.Lock()
	for _, t := range q.topics {
		if t.subscription != nil && !t.settled {
			fresh = append(fresh, t)
			members = append(members, member(t.name, q.opts.Partitions))
		}
	}
	q.mu.Unlock()
	topics := key.Topics(q.opts.Namespace)
	if len(fresh) > 0 {
		q.checkServer.Do(func() { q.warnOfServer(ctx) })
	}
	for some := range slices.Chunk(members, 1000) {
		if err := q.rdb.SAdd(ctx, topics, some...).Err(); err != nil {
			return fmt.Errorf("dueq: register %d topics: %w", len(some), err)
		}
	}
	size, err := q.rdb.SCard(ctx, topics).Result()
	if err != nil {
		return fmt.Errorf("dueq: count topics: %w", err)
	}
	if size != *seen || len(fresh) > 0 {
		if err := q.eachMember(ctx, q.serveOther); err != nil {
			return err
		}
		*seen = size
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range fresh {
		t.registered, t.settled = true, true
	}
	return nil
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
