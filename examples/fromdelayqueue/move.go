package fromdelayqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
)

// Mover moves the messages of one delayqueue to a topic. No process may use the
// delayqueue meanwhile. If it is interrupted, call it again: an event has its
// message's id, and is published once.
type Mover struct {
	Redis  redis.UniversalClient // of the delayqueue
	Prefix string                // of its keys: "dp:" and its name, in braces if it was made with UseHashTagKey
	Queue  *dueq.Queue
	Topic  string
}

// Move moves all messages, and returns how many had a body still.
func (m *Mover) Move(ctx context.Context) (moved int, err error) {
	for _, set := range []string{"pending", "unack"} {
		n, err := m.each(ctx, func() (int, error) { return m.moveSet(ctx, m.Prefix+":"+set) })
		moved += n
		if err != nil {
			return moved, fmt.Errorf("move %s: %w", set, err)
		}
	}
	for _, list := range []string{"ready", "retry"} {
		n, err := m.each(ctx, func() (int, error) { return m.moveList(ctx, m.Prefix+":"+list) })
		moved += n
		if err != nil {
			return moved, fmt.Errorf("move %s: %w", list, err)
		}
	}
	return moved, nil
}

var errEmpty = errors.New("nothing is left")

// each repeats a step until nothing is left.
func (m *Mover) each(ctx context.Context, step func() (int, error)) (moved int, err error) {
	for ctx.Err() == nil {
		n, err := step()
		moved += n
		if errors.Is(err, errEmpty) {
			return moved, nil
		}
		if err != nil {
			return moved, err
		}
	}
	return moved, ctx.Err()
}

// moveSet moves the messages of a sorted set with the lowest scores, which are
// seconds since 1970.
func (m *Mover) moveSet(ctx context.Context, key string) (moved int, err error) {
	ids, err := m.Redis.ZRangeWithScores(ctx, key, 0, 499).Result()
	if err == nil && len(ids) == 0 {
		err = errEmpty
	}
	for i := 0; i < len(ids) && err == nil; i++ {
		var had bool
		id := ids[i].Member.(string)
		if had, err = m.publish(ctx, id, time.Unix(int64(ids[i].Score), 0)); had {
			moved++
		}
		if err == nil {
			err = m.Redis.ZRem(ctx, key, id).Err()
		}
	}
	return moved, err
}

// moveList moves the first messages of a list: they are due.
func (m *Mover) moveList(ctx context.Context, key string) (moved int, err error) {
	ids, err := m.Redis.LRange(ctx, key, 0, 499).Result()
	if err == nil && len(ids) == 0 {
		err = errEmpty
	}
	for i := 0; i < len(ids) && err == nil; i++ {
		var had bool
		if had, err = m.publish(ctx, ids[i], time.Now()); had {
			moved++
		}
		if err == nil {
			err = m.Redis.LRem(ctx, key, 1, ids[i]).Err()
		}
	}
	return moved, err
}

// publish publishes a message as an event, unless its body has expired.
func (m *Mover) publish(ctx context.Context, id string, due time.Time) (had bool, err error) {
	body, err := m.Redis.Get(ctx, m.Prefix+":msg:"+id).Bytes()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	retries, err := m.Redis.HGet(ctx, m.Prefix+":retry:cnt", id).Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, err
	}
	_, err = m.Queue.PublishEvent(ctx, m.Topic, body, due,
		dueq.WithID(id), dueq.WithKeyPolicy(dueq.KeyKeep), dueq.WithMaxAttempts(max(retries, 0)+1))
	return err == nil, err
}
