package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
)

// counter counts the page views of one log in Redis and moves the totals to the
// database a little later, many views in one write.
//
// The counts in Redis only grow: what moves is never a part that could get lost
// or arrive twice, but the whole total as it is at that moment. So nothing is
// lost or counted twice wherever the process dies:
//
//   - before [counter.count]: the replay begins again with this line.
//   - between count and [counter.publish]: [counter.catchUp] publishes.
//   - in the handler: the event's lease ends, and the handler runs again.
type counter struct {
	rdb    redis.UniversalClient
	queue  *dueq.Queue
	store  *store
	topic  string
	window time.Duration // how long a total may lag behind its count

	counts  string // key of a hash: path to requests so far
	counted string // key of a bitmap: the lines whose requests these are
}

// newCounter counts the log with this fingerprint. Its two keys share a hash
// tag: a script may use both even on a cluster.
func newCounter(rdb redis.UniversalClient, queue *dueq.Queue, store *store, namespace, log string, window time.Duration) *counter {
	return &counter{
		rdb: rdb, queue: queue, store: store, topic: "pageviews." + log, window: window,
		counts:  namespace + ":counts:{" + log + "}",
		counted: namespace + ":counted:{" + log + "}",
	}
}

//go:embed count.lua
var countSource string

var countScript = redis.NewScript(countSource)

// view counts the request of one line of the log, and sees to it that the total
// of its path reaches the database.
func (c *counter) view(ctx context.Context, line int, path string) error {
	if err := c.count(ctx, line, path); err != nil {
		return err
	}
	return c.publish(ctx, path)
}

// count adds one to the path's count and notes the line as counted, both or
// neither. The Redis client repeats a call whose reply got lost; a line that is
// counted already stays so.
func (c *counter) count(ctx context.Context, line int, path string) error {
	if err := countScript.Run(ctx, c.rdb, []string{c.counts, c.counted}, line, path).Err(); err != nil {
		return fmt.Errorf("count line %d: %w", line+1, err)
	}
	return nil
}

// publish schedules the path's next write. While one is scheduled, KeyKeep lets
// it stand: it will take this view along. One that has begun may have missed this
// view, so it runs again.
func (c *counter) publish(ctx context.Context, path string) error {
	err := c.publishAs(ctx, path, path)
	if errors.Is(err, dueq.ErrIDInvalid) { // too long, say; no path has a space, so this is no other path's id
		err = c.publishAs(ctx, fmt.Sprintf("sha256 %x", sha256.Sum256([]byte(path))), path)
	}
	return err
}

func (c *counter) publishAs(ctx context.Context, id, path string) error {
	_, err := c.queue.PublishEvent(ctx, c.topic, []byte(path), time.Now().Add(c.window),
		dueq.WithID(id), dueq.WithKeyPolicy(dueq.KeyKeep))
	return err
}

// HandleEvent moves a path's total to the database. It may run twice, or late
// and with an old total: see [store.save].
func (c *counter) HandleEvent(ctx context.Context, e *dueq.Event) error {
	path := string(e.Body)
	total, err := c.rdb.HGet(ctx, c.counts, path).Int()
	if errors.Is(err, redis.Nil) { // of a run that is over
		return nil
	}
	if err != nil {
		return fmt.Errorf("read count of %q: %w", path, err)
	}
	return c.store.save(ctx, path, total)
}

// catchUp publishes for each path whose total lags behind its count: the process
// may have died before it did.
func (c *counter) catchUp(ctx context.Context) error {
	totals, _, err := c.store.totals(ctx)
	if err != nil {
		return err
	}
	counts := c.rdb.HScan(ctx, c.counts, 0, "", 1000).Iterator() // a path, its count, the next path, …
	for counts.Next(ctx) {
		path := counts.Val()
		if counts.Next(ctx) && counts.Val() != strconv.Itoa(totals[path]) {
			if err := c.publish(ctx, path); err != nil {
				return err
			}
		}
	}
	if err := counts.Err(); err != nil {
		return fmt.Errorf("catch up: %w", err)
	}
	return nil
}

// forget ends the run: its totals are in the database.
func (c *counter) forget(ctx context.Context) error {
	if err := c.rdb.Unlink(ctx, c.counts, c.counted).Err(); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}
