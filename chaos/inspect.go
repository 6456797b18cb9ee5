package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/chaos/history"
	"github.com/dueq-io/dueq/pool"
)

const namespace = "chaos"

// left describes every event that lies in Redis.
func (s *server) left(ctx context.Context) ([]history.Record, error) {
	now, err := s.rdb.Time(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("look for what is left: %w", err)
	}
	var all []history.Record
	for _, topic := range topics {
		tag := "{" + namespace + ":" + topic + "}"
		records, err := s.rdb.HGetAll(ctx, tag+":pool").Result()
		if err != nil {
			return nil, fmt.Errorf("look for what is left: %w", err)
		}
		places, err := s.places(ctx, tag, now)
		if err != nil {
			return nil, fmt.Errorf("look for what is left: %w", err)
		}
		for id, text := range records {
			l := history.Record{Kind: history.Left, Topic: topic, ID: id, State: history.Stuck, Text: "neither in a bucket nor dead"}
			if place, ok := places[id]; ok {
				l.State, l.Text = place, place
			}
			if r, err := pool.Decode(text); err == nil {
				l.Pub, _, _ = strings.Cut(string(r.Body), " ")
			}
			all = append(all, l)
		}
	}
	return all, nil
}

// places tells which ids of a lane are dead, and which lie in a bucket and are
// due, or not yet.
func (s *server) places(ctx context.Context, tag string, now time.Time) (map[string]string, error) {
	places := make(map[string]string)
	read := func(key string, state func(z redis.Z) string) error {
		zs, err := s.rdb.ZRangeWithScores(ctx, key, 0, -1).Result()
		for _, z := range zs {
			places[fmt.Sprint(z.Member)] = state(z)
		}
		return err
	}
	if err := read(tag+":dead", func(redis.Z) string { return history.Dead }); err != nil {
		return nil, err
	}
	for i := range buckets {
		err := read(fmt.Sprint(tag, ":bucket:", i), func(z redis.Z) string {
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
