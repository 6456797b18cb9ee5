package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/chaos/history"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/pool"
)

const namespace = "chaos"

// left describes every event that lies in Redis.
func (t *topology) left(ctx context.Context) ([]history.Record, error) {
	var all []history.Record
	for _, topic := range topics {
		for p := range t.partitions() {
			some, err := t.leftIn(ctx, key.NewLane(namespace, topic, p, t.partitions(), buckets))
			if err != nil {
				return nil, fmt.Errorf("look for what is left: %w", err)
			}
			all = append(all, some...)
		}
	}
	return all, nil
}

func (t *topology) leftIn(ctx context.Context, lane *key.Lane) ([]history.Record, error) {
	now, err := t.rdb.Time(ctx).Result()
	if err != nil {
		return nil, err
	}
	records, err := t.rdb.HGetAll(ctx, lane.Pool).Result()
	if err != nil {
		return nil, err
	}
	places, err := t.places(ctx, lane, now)
	if err != nil {
		return nil, err
	}
	var all []history.Record
	for id, text := range records {
		l := history.Record{Kind: history.Left, Topic: lane.Topic, ID: id, State: history.Stuck, Text: "neither in a bucket nor dead"}
		if place, ok := places[id]; ok {
			l.State, l.Text = place, place
		}
		if r, err := pool.Decode(text); err == nil {
			l.Pub, _, _ = strings.Cut(string(r.Body), " ")
		}
		all = append(all, l)
	}
	return all, nil
}

// places tells which ids of a lane are dead, and which lie in a bucket and are
// due, or not yet.
func (t *topology) places(ctx context.Context, lane *key.Lane, now time.Time) (map[string]string, error) {
	places := make(map[string]string)
	read := func(key string, state func(z redis.Z) string) error {
		zs, err := t.rdb.ZRangeWithScores(ctx, key, 0, -1).Result()
		for _, z := range zs {
			places[fmt.Sprint(z.Member)] = state(z)
		}
		return err
	}
	if err := read(lane.Dead, func(redis.Z) string { return history.Dead }); err != nil {
		return nil, err
	}
	for i := range buckets {
		err := read(lane.Bucket(i), func(z redis.Z) string {
			if int64(z.Score) <= now.UnixMilli() {
				return history.Stuck
			}
			return history.Waiting
		})
		if err != nil {
			return nil, err
		}
	}
	return places, nil
}
