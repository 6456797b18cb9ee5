// Command pageviews counts the page views in a web server's access log, in the
// Common or Combined Log Format, as if the requests came in now. It shows
// write-behind with dueq: a request costs one increment in Redis, and the database
// is written a second later, once for all requests that the path had until then.
//
//	go run ./pageviews -log access.log
//
// Kill it at any moment and start it again: it goes on where it was, and the
// totals are exact. Run one process per log and database.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/dueq-io/dueq"
)

// settings are the command line's.
type settings struct {
	log, redis, db, namespace string
	window                    time.Duration
	pace                      float64
	mustReach                 bool // the user has named the Redis
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, parseFlags(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pageviews:", err)
		os.Exit(1)
	}
}

func parseFlags() settings {
	var s settings
	env := os.Getenv("DUEQ_REDIS")
	flags := flag.NewFlagSet("pageviews", flag.ExitOnError)
	flags.StringVar(&s.log, "log", "", "access log to replay (required)")
	flags.StringVar(&s.redis, "redis", cmp.Or(env, defaultRedis),
		"Redis URL; \"\" is one within this process, also if nothing answers at the default; set by $DUEQ_REDIS")
	flags.StringVar(&s.db, "db", "pageviews.db", "SQLite database file")
	flags.StringVar(&s.namespace, "namespace", "pageviews", "what all Redis keys begin with")
	flags.DurationVar(&s.window, "window", time.Second, "how long after a view its path's total is written")
	flags.Float64Var(&s.pace, "pace", 0, "requests per second; 0 is as fast as possible")
	_ = flags.Parse(os.Args[1:]) // exits by itself
	if s.log == "" || flags.NArg() > 0 {
		flags.Usage()
		os.Exit(2)
	}
	s.mustReach = env != ""
	flags.Visit(func(f *flag.Flag) { s.mustReach = s.mustReach || f.Name == "redis" })
	return s
}

func run(ctx context.Context, s settings, out io.Writer) error {
	file, err := os.Open(s.log)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read
	log, err := upToNow(file)
	if err != nil {
		return err
	}
	direct, err := readSurvey(log)
	if err != nil {
		return err
	}
	rdb, disconnect, err := connect(ctx, s.redis, s.mustReach, out)
	if err != nil {
		return err
	}
	defer disconnect()
	store, err := openStore(ctx, s.db, direct.fingerprint)
	if err != nil {
		return err
	}
	queue, err := dueq.New(rdb, dueq.Options{
		Namespace: s.namespace,
		Lease:     lease,
		Backoff:   func(int, error) time.Duration { return time.Second },
		Logger:    zap.Must(zap.NewProduction()),
	})
	if err != nil {
		return errors.Join(err, store.close())
	}
	c := newCounter(rdb, queue, store, s.namespace, direct.fingerprint, s.window)
	err = c.run(ctx, log, direct, s.pace, out)
	return errors.Join(err, shutDown(queue), store.close())
}

// shutDown lets handlers finish.
func shutDown(queue *dueq.Queue) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return queue.ShutDown(ctx)
}

// run replays the log, or what is left of it, and reports.
func (c *counter) run(ctx context.Context, log io.ReadSeeker, direct survey, pace float64, out io.Writer) error {
	counted, err := c.resume(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d requests, %d of them counted before\n", direct.requests, counted.len())
	if err := c.queue.Subscribe(c.topic, c); err != nil {
		return err
	}
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return err
	}
	limit := rate.Inf
	if pace > 0 {
		limit = rate.Limit(pace)
	}
	if err := c.replay(ctx, log, counted, limit); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	totals, writes, err := c.drain(ctx, direct.counts)
	if err != nil {
		return fmt.Errorf("wait for the last writes: %w", err)
	}
	if err := report(out, direct, totals, writes); err != nil {
		return err
	}
	return c.forget(ctx)
}
