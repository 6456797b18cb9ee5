package dueq

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dueq-io/dueq/internal/key"
)

// maxReplicas is the largest Options.Replicas.
const maxReplicas = 16

// Options say how a [Queue] behaves. The zero value is good.
type Options struct {
	// Namespace heads every key, so that several applications can share one
	// Redis: 1 to 64 bytes without braces, colons and control characters.
	// Defaults to "dueq".
	Namespace string

	// Buckets is over how many sorted sets a lane's events are spread, 1 to
	// 1024. It may change at any time, and differ between processes: events are
	// found in the buckets of every count a lane has had.
	// Defaults to 16.
	Buckets int

	// Partitions is how many lanes a topic has, 1 to 64. Each lies in one
	// Redis Cluster slot; a topic too hot for one node gets more of them. It may
	// change at any time: subscribers serve the lanes of every count the topic
	// has had. A caller's own id is unique only among events that were published
	// with the same count.
	// Defaults to 1.
	Partitions int

	// Concurrency is how many events of one topic this process handles at
	// once, 1 to 100,000.
	// Defaults to 64.
	Concurrency int

	// Lease is how long a process that has fallen silent keeps its events,
	// from 100 milliseconds to 24 hours. A handler may run for longer: its
	// process extends the lease.
	// Defaults to 15s.
	Lease time.Duration

	// HandlerTimeout is when a handler's ctx ends, at least a millisecond. A
	// handler that ignores that keeps its event and its slot until it returns.
	// Defaults to 30min.
	HandlerTimeout time.Duration

	// MaxAttempts is how many attempts an event has before it has failed for
	// good, at least 1, unless it was published [WithMaxAttempts].
	// Defaults to 10.
	MaxAttempts int

	// Backoff is the pause after a failed attempt (1 after the first), given
	// the handler's error. Less than zero counts as zero.
	// Defaults to 1s, doubled with each attempt up to 10min, with jitter.
	Backoff func(attempt int, cause error) time.Duration

	// PersistFn takes the events that have failed for good.
	// Defaults to nil: they go to dead.
	PersistFn PersistFn

	// DeadRetention is how long dead events are kept, from 1 second to 100
	// years. Processes that subscribe to their topic drop older ones, looking
	// about every twenty Fallbacks; each time the log says how many. If they are
	// set differently, the shortest retention counts, and the lowest limit.
	// Defaults to 90 days.
	DeadRetention time.Duration

	// DeadLimit is the most dead events that a lane keeps, 1 to 1,000,000,000:
	// of more, the oldest are dropped likewise. A topic has as many lanes as
	// Partitions.
	// Defaults to 1,000,000.
	DeadLimit int

	// MaxBody is the largest body in bytes, 1 to 256 MiB.
	// Defaults to 1 MiB.
	MaxBody int

	// Fallback is how often a process that sleeps looks whether it has missed a
	// signal, from 100 milliseconds to 1 hour. It bounds the delay that a lost
	// signal can cause.
	// Defaults to 15s.
	Fallback time.Duration

	// Replicas is how many replicas must have an event before its publish
	// returns nil, 0 to 16. A publish for which they are too few after a second,
	// or half the client's ReadTimeout if that is less, fails with
	// [ErrNotReplicated]. With a client other than a *redis.Client and a
	// *redis.ClusterClient it must be 0.
	// Defaults to 0: the server alone.
	Replicas int

	// ShutdownTimeout is how long [Queue.Run] lets running handlers finish, at
	// least a millisecond.
	// Defaults to 30s.
	ShutdownTimeout time.Duration

	// Logger gets what goes wrong without a caller to tell. Of the same message
	// it gets ten a second, then every hundredth.
	// Defaults to nil: silent.
	Logger *zap.Logger

	// TracerProvider gets an OpenTelemetry span for each publish (one for all of
	// a PublishEvents) and for each delivery, by the semantic conventions for
	// messaging. The W3C trace context of the publish travels with the event, and
	// the delivery's span has a link to it. Handlers find their span in ctx.
	// Defaults to nil: off.
	TracerProvider trace.TracerProvider
}

func (o Options) withDefaults() Options {
	o.Namespace = either(o.Namespace, "dueq")
	o.Buckets = either(o.Buckets, 16)
	o.Partitions = either(o.Partitions, 1)
	o.Concurrency = either(o.Concurrency, 64)
	o.Lease = either(o.Lease, 15*time.Second)
	o.HandlerTimeout = either(o.HandlerTimeout, 30*time.Minute)
	o.MaxAttempts = either(o.MaxAttempts, 10)
	o.DeadRetention = either(o.DeadRetention, 90*24*time.Hour)
	o.DeadLimit = either(o.DeadLimit, 1_000_000)
	o.MaxBody = either(o.MaxBody, 1<<20)
	o.Fallback = either(o.Fallback, 15*time.Second)
	o.ShutdownTimeout = either(o.ShutdownTimeout, 30*time.Second)
	o.Logger = either(o.Logger, zap.NewNop()).WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Second, 10, 100)
	}))
	if o.Backoff == nil {
		o.Backoff = backoff
	}
	return o
}

func either[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

func (o Options) validate() error {
	var errs []error
	if err := key.CheckNamespace(o.Namespace); err != nil {
		errs = append(errs, fmt.Errorf("option Namespace: %w", err))
	}
	counts := func(name string, v, most int) {
		if v < 1 || v > most {
			errs = append(errs, fmt.Errorf("option %s is %d, not from 1 to %d", name, v, most))
		}
	}
	counts("Buckets", o.Buckets, 1024)
	counts("Partitions", o.Partitions, maxPartitions)
	counts("Concurrency", o.Concurrency, 100_000)
	counts("MaxAttempts", o.MaxAttempts, maxAttempts)
	counts("DeadLimit", o.DeadLimit, 1_000_000_000)
	counts("MaxBody", o.MaxBody, 256<<20)
	if o.Replicas < 0 || o.Replicas > maxReplicas {
		errs = append(errs, fmt.Errorf("option Replicas is %d, not from 0 to %d", o.Replicas, maxReplicas))
	}
	lasts := func(name string, v, low, high time.Duration) {
		if v < low || v > high {
			errs = append(errs, fmt.Errorf("option %s is %v, not from %v to %v", name, v, low, high))
		}
	}
	lasts("Lease", o.Lease, 100*time.Millisecond, 24*time.Hour)
	lasts("HandlerTimeout", o.HandlerTimeout, time.Millisecond, 10*365*24*time.Hour)
	lasts("DeadRetention", o.DeadRetention, time.Second, 100*365*24*time.Hour)
	lasts("Fallback", o.Fallback, 100*time.Millisecond, time.Hour)
	lasts("ShutdownTimeout", o.ShutdownTimeout, time.Millisecond, 24*time.Hour)
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", ErrOptionsInvalid, errors.Join(errs...))
	}
	return nil
}

// backoff is 1.5 s, doubled with each attempt up to 10 min, less up to a third.
func backoff(attempt int, _ error) time.Duration {
	d := min(1500*time.Millisecond<<min(max(attempt, 1)-1, 20), 10*time.Minute)
	return d - rand.N(d/3)
}
