package inspect

import (
	"context"
	_ "embed"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/script"
)

const (
	maxStep   = 500       // most ids looked at in one command or pipeline
	firstStep = 10        // fields of a hash in the first step of a walk: their values may be large
	stepBytes = 256 << 10 // of values that a step over a hash should read
)

//go:embed ids.lua
var idsSource string

var idsScript = script.New(idsSource)

// walkReady looks at the ids in ready.
func (c *checker) walkReady(ctx context.Context) error {
	for from := int64(0); ; from += maxStep {
		ids, err := c.rdb.LRange(ctx, c.lane.Ready, from, from+maxStep-1).Result()
		if err != nil {
			return c.failed("read ready", err)
		}
		c.ready += len(ids)
		if err := c.lookMoving(ctx, ids); err != nil {
			return err
		}
		if len(ids) < maxStep {
			return nil
		}
	}
}

// walkHeld looks at the ids in held sets.
func (c *checker) walkHeld(ctx context.Context) error {
	for _, session := range slices.Clone(c.sessions) {
		alone := slices.Contains(c.alone, session)
		err := c.scan(func(cursor uint64) *redis.ScanCmd {
			return c.rdb.SScan(ctx, c.lane.Held(session), cursor, "", maxStep)
		}, func(ids []string) error {
			if !alone {
				return c.lookMoving(ctx, ids)
			}
			for _, id := range ids {
				c.moving[id] = true
				if err := c.suspect(ctx, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// lookMoving suspects ids in ready or held that lie elsewhere, too, or have no
// body.
func (c *checker) lookMoving(ctx context.Context, ids []string) error {
	places, err := c.places(ctx, ids)
	if err != nil {
		return err
	}
	for i, id := range ids {
		if places[i] > 0 || c.moving[id] {
			if err := c.suspect(ctx, id); err != nil {
				return err
			}
		}
		c.moving[id] = true
	}
	return c.lookBodies(ctx, ids)
}

// walkPool suspects bodies whose ids do not lie in one place.
func (c *checker) walkPool(ctx context.Context) error {
	return c.walkHash(ctx, c.lane.Pool, func(ids []string) error {
		places, err := c.places(ctx, ids)
		if err != nil {
			return err
		}
		for i, id := range ids {
			if c.moving[id] {
				places[i]++
			}
			if places[i] != 1 {
				if err := c.suspect(ctx, id); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// walkBuckets suspects ids that lie in a wrong bucket, or have no body.
func (c *checker) walkBuckets(ctx context.Context) error {
	for _, bucket := range slices.Clone(c.buckets) {
		err := c.walkSorted(ctx, bucket, func(ids []string) error {
			for _, id := range ids {
				if !c.isHome(id, bucket) {
					if err := c.suspect(ctx, id); err != nil {
						return err
					}
				}
			}
			return c.lookBodies(ctx, ids)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// walkDead looks at the dead.
func (c *checker) walkDead(ctx context.Context) error {
	return c.walkSorted(ctx, c.lane.Dead, func(ids []string) error { return c.lookBodies(ctx, ids) })
}

// walkEntries looks at what is kept of attempts and marks.
func (c *checker) walkEntries(ctx context.Context) error {
	for _, hash := range []string{c.lane.Attempts, c.lane.Again} {
		err := c.walkHash(ctx, hash, func(ids []string) error { return c.lookBodies(ctx, ids) })
		if err != nil {
			return err
		}
	}
	return nil
}

// lookBodies suspects ids that have no body.
func (c *checker) lookBodies(ctx context.Context, ids []string) error {
	bodies := make([]*redis.BoolCmd, len(ids))
	_, err := c.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, id := range ids {
			bodies[i] = pipe.HExists(ctx, c.lane.Pool, id)
		}
		return nil
	})
	if err != nil {
		return c.failed("look for bodies", err)
	}
	for i, id := range ids {
		if !bodies[i].Val() {
			if err := c.suspect(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// places counts in how many of their homes, and dead, the ids lie.
func (c *checker) places(ctx context.Context, ids []string) ([]int, error) {
	groups := make(map[string][]int) // indexes of ids by key
	for i, id := range ids {
		groups[c.lane.Dead] = append(groups[c.lane.Dead], i)
		var homes []int
		for _, n := range c.counts {
			if home := key.Shard(id, n); !slices.Contains(homes, home) {
				homes = append(homes, home)
				groups[c.lane.Bucket(home)] = append(groups[c.lane.Bucket(home)], i)
			}
		}
	}
	replies := make(map[string]*redis.Cmd, len(groups))
	_, err := c.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for name, members := range groups {
			words := append(make([]any, 0, 2+len(members)), "zmscore", name)
			for _, i := range members {
				words = append(words, ids[i])
			}
			replies[name] = pipe.Do(ctx, words...)
		}
		return nil
	})
	if err != nil {
		return nil, c.failed("look for ids", err)
	}
	places := make([]int, len(ids))
	for name, members := range groups {
		scores, err := replies[name].Slice()
		if err != nil {
			return nil, c.failed("look for ids", err)
		}
		for j, i := range members {
			if scores[j] != nil {
				places[i]++
			}
		}
	}
	return places, nil
}

// walkSorted calls do with the members of a sorted set, some at a time.
func (c *checker) walkSorted(ctx context.Context, name string, do func(ids []string) error) error {
	return c.scan(func(cursor uint64) *redis.ScanCmd {
		return c.rdb.ZScan(ctx, name, cursor, "", maxStep)
	}, func(pairs []string) error {
		ids := make([]string, 0, len(pairs)/2)
		for i := 0; i < len(pairs); i += 2 { // a member, its score
			ids = append(ids, pairs[i])
		}
		return do(ids)
	})
}

// scan takes the steps of a scan, and calls do with what each found, some at a
// time.
func (c *checker) scan(step func(cursor uint64) *redis.ScanCmd, do func(found []string) error) error {
	for cursor := uint64(0); ; {
		found, next, err := step(cursor).Result()
		if err != nil {
			return c.failed("scan", err)
		}
		for some := range slices.Chunk(found, maxStep) {
			if err := do(some); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// walkHash calls do with the fields of a hash, some at a time.
func (c *checker) walkHash(ctx context.Context, name string, do func(ids []string) error) error {
	for cursor, step := "0", firstStep; ; {
		call := &script.Call{Script: idsScript, Keys: []string{name}, Args: []any{cursor, step}}
		if err := script.Run(ctx, c.rdb, call); err != nil {
			return c.failed("scan", err)
		}
		fields, _ := call.Reply[1].([]any)
		for some := range slices.Chunk(fields, maxStep) {
			ids := make([]string, len(some))
			for i, field := range some {
				ids[i] = str(field)
			}
			if err := do(ids); err != nil {
				return err
			}
		}
		switch bytes := num(call.Reply[2]); {
		case bytes > stepBytes:
			step = max(1, step/2)
		case bytes < stepBytes/4:
			step = min(maxStep, 2*step)
		}
		if cursor = str(call.Reply[0]); cursor == "0" {
			return nil
		}
	}
}
