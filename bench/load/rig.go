package load

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/bench/internal/measure"
	"github.com/dueq-io/dueq/internal/child"
)

// shutdownTimeout bounds the end of a queue, and the clearing of a server that
// is not ours.
const shutdownTimeout = 10 * time.Second

// readTimeout is long, so that a stall of the machine shows in the figures and
// not as a failure.
const readTimeout = 30 * time.Second

// rig is one place to measure: a server, fresh unless it was given, and a queue
// in a namespace of its own.
type rig struct {
	meter *measure.Meter
	rdb   *redis.Client // the queue's; the meter has another
	queue *dueq.Queue
	ns    string

	server *measure.Server // nil if it was given
	opts   dueq.Options
}

// rig sets up a place to measure with the given options, but for the namespace.
// It has published and forgotten an event already, so that no measurement pays
// for connecting.
func (e *env) rig(ctx context.Context, opts dueq.Options) (*rig, error) {
	r := &rig{ns: "bench-" + strings.ToLower(rand.Text()[:12]), opts: opts}
	at := e.redis
	if at == nil {
		var err error
		if r.server, err = measure.StartRedis(ctx); errors.Is(err, child.ErrNoRedis) {
			err = fmt.Errorf("%w; -redis names a server", err)
		}
		if err != nil {
			return nil, err
		}
		at = &redis.Options{Addr: r.server.Addr()}
	}
	patient := *at
	patient.ReadTimeout = readTimeout
	r.rdb = redis.NewClient(&patient)
	r.meter = measure.NewMeter(at)
	r.opts.Namespace = r.ns
	if e.verbose {
		r.opts.Logger = zap.Must(zap.NewDevelopment())
	}
	if err := r.prepare(ctx, e); err != nil {
		return nil, errors.Join(fmt.Errorf("set up at %s: %w", at.Addr, err), r.close())
	}
	return r, nil
}

func (r *rig) prepare(ctx context.Context, e *env) error {
	info, err := r.meter.Info(ctx, "server")
	if err != nil {
		return err
	}
	e.version = info["redis_version"]
	if r.queue, err = r.newQueue(); err != nil {
		return err
	}
	id, err := r.queue.PublishEvent(ctx, "warm-up", nil, time.Now().Add(time.Hour))
	if err != nil {
		return err
	}
	return r.queue.Cancel(ctx, "warm-up", id)
}

// newQueue is one more queue in the same namespace, for the caller to shut down.
func (r *rig) newQueue() (*dueq.Queue, error) { return dueq.New(r.rdb, r.opts) }

// close shuts the queue down and leaves nothing behind.
func (r *rig) close() error {
	var errs []error
	if r.queue != nil {
		errs = append(errs, shutDown(r.queue))
	}
	if r.server != nil {
		r.server.Kill()
	} else {
		errs = append(errs, r.wipe())
	}
	errs = append(errs, r.rdb.Close(), r.meter.Close())
	return errors.Join(errs...)
}

func shutDown(q *dueq.Queue) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	return q.ShutDown(ctx)
}

// wipe deletes the namespace's keys.
func (r *rig) wipe() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	keys := r.rdb.Scan(ctx, 0, "*"+r.ns+":*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := r.rdb.Unlink(ctx, keys.Val()).Err(); err != nil {
			return fmt.Errorf("clear: %w", err)
		}
	}
	if err := keys.Err(); err != nil {
		return fmt.Errorf("clear: %w", err)
	}
	return nil
}

// within sets up a rig for do, and closes it afterwards.
func (e *env) within(ctx context.Context, opts dueq.Options, do func(r *rig) error) error {
	r, err := e.rig(ctx, opts)
	if err != nil {
		return err
	}
	return errors.Join(do(r), r.close())
}
