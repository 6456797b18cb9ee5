// Package counter counts in Redis and writes the totals to a database a little
// later. The guide is docs/counter.md; pageviews beside it is a whole program.
package counter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
)

// Schema is the table that a [Counter] needs.
const Schema = `CREATE TABLE totals (name TEXT PRIMARY KEY, total INTEGER NOT NULL)`

// Counter counts by name. Its table follows the counts in Redis.
type Counter struct {
	Redis  redis.UniversalClient
	Queue  *dueq.Queue
	DB     *sql.DB
	Window time.Duration // how long a total may lag behind
}

// Add counts one. The order matters: first count, then publish.
func (c *Counter) Add(ctx context.Context, name string) error {
	if err := c.Redis.HIncrBy(ctx, "counts", name, 1).Err(); err != nil {
		return fmt.Errorf("count %s: %w", name, err)
	}
	_, err := c.Queue.PublishEvent(ctx, "flush", nil, time.Now().Add(c.Window),
		dueq.WithID(name), dueq.WithKeyPolicy(dueq.KeyKeep))
	return err
}

// HandleEvent writes the total of one name, as it is now.
func (c *Counter) HandleEvent(ctx context.Context, e *dueq.Event) error {
	total, err := c.Redis.HGet(ctx, "counts", e.ID).Int()
	if errors.Is(err, redis.Nil) {
		return nil // somebody has deleted the counts
	}
	if err != nil {
		return fmt.Errorf("read count of %s: %w", e.ID, err)
	}
	const write = `INSERT INTO totals (name, total) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET total = excluded.total WHERE excluded.total > totals.total`
	_, err = c.DB.ExecContext(ctx, write, e.ID, total)
	return err
}
