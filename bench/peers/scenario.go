package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dueq-io/dueq/bench/internal/measure"
)

// scenario measures one thing.
type scenario struct {
	name, does string
	figures    []figure // in the order of the table
	run        func(ctx context.Context, b *bed) error
}

func (s scenario) title() string { return s.name }

// figure is a kind of figure.
type figure struct {
	name, unit string
	good       direction
}

// direction says whether more of something is better.
type direction int

const (
	neither direction = iota
	more              // a rate
	less              // a cost
)

const (
	events      = "events"
	perSecond   = "events/s"
	serverCPU   = "server CPU"
	clientCPU   = "client CPU"
	slowestName = "slowest command"
	repeated    = "repeated"
	lateP50     = "lateness p50"
	lateP99     = "lateness p99"
	early       = "early"
	earliest    = "early by at most"
	commands    = "commands"
	connections = "connections"
	overBody    = "memory over the body"
)

func scenarios() []scenario {
	n := figure{events, "", neither}
	rate := figure{perSecond, "", more}
	server, client := figure{serverCPU, "µs/event", less}, figure{clientCPU, "µs/event", less}
	p50, p99 := figure{lateP50, "ms", less}, figure{lateP99, "ms", less}
	tooEarly, by := figure{early, "", neither}, figure{earliest, "ms", neither}
	again := figure{repeated, "", neither}
	return []scenario{
		{
			"publish", "64 callers, an event per call, due in an hour or so",
			[]figure{n, rate, server, client},
			publish,
		},
		{
			"drain", "a backlog of due events, 64 handlers that do nothing",
			[]figure{n, rate, server, client, {slowestName, "ms; 0: under 1", less}, again},
			drain,
		},
		{
			"steady", "2,000 events a second for 20 s, each published by itself, 1 to 5 s ahead",
			[]figure{n, p50, p99, tooEarly, by, again, server, client},
			steady,
		},
		{
			"mixed", "64 callers publish events that are due at once, which are handled meanwhile",
			[]figure{n, rate, p99, tooEarly, by, again, server, client},
			mixed,
		},
		{
			"idle", "100 topics with handlers and without events for 10 s",
			[]figure{{commands, "per s", less}, {connections, "", less}, {serverCPU, "ms/s", less}, {clientCPU, "ms/s", less}},
			idle,
		},
		{
			"memory", "what a pending event takes in the server",
			[]figure{n, {overBody, "bytes/event", less}},
			memory,
		},
	}
}

// sizing says how large measurements are.
type sizing struct {
	N     int
	Short bool
}

func (s sizing) events(full, short int) int {
	switch {
	case s.N > 0:
		return s.N
	case s.Short:
		return short
	}
	return full
}

func (s sizing) lasts(full, short time.Duration) time.Duration {
	if s.Short {
		return short
	}
	return full
}

// bed is where one measurement of one system is made, and what it has found.
type bed struct {
	sizing
	*host
	system system
	queue  queue
	outcome
}

// outcome is what one measurement has found.
type outcome struct {
	Server string             // what the system ran on
	Values map[string]float64 // by figure
	Worst  string             // the slowest command
}

// found takes over what n events cost.
func (b *bed) found(n int, s measure.Spent) {
	row := measure.NewRow("", n, s)
	b.Values[events], b.Values[perSecond] = float64(n), row.PerSecond
	b.Values[serverCPU], b.Values[clientCPU] = row.Redis, row.Client
}

func (b *bed) arrived(in *measure.Intake, late *measure.Lateness) {
	b.Values[repeated] = float64(in.Repeats())
	if late != nil {
		q := late.Quantiles()
		b.Values[lateP50], b.Values[lateP99] = q.P50, q.P99
		b.Values[early], b.Values[earliest] = float64(q.Early), measure.Micros(late.Earliest())/1e3
	}
}

// await returns when all events have arrived and the server has none left.
func (b *bed) await(ctx context.Context, in *measure.Intake) error {
	err := in.Await(ctx, func() string {
		n, err := b.queue.pending(ctx)
		return fmt.Sprintf("the server has %d, %v", n, err)
	})
	if err != nil {
		return err
	}
	return b.awaitPending(ctx, 0)
}

func (b *bed) awaitPending(ctx context.Context, want int) error {
	for start := time.Now(); ; {
		n, err := b.queue.pending(ctx)
		if err != nil || n == want {
			return err
		}
		if time.Since(start) > measure.Patience {
			return fmt.Errorf("the server has %d events, not %d, after %v", n, want, measure.Patience)
		}
		if err := measure.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

func publish(ctx context.Context, b *bed) error {
	n := b.events(200_000, 10_000)
	s, err := b.meter.During(ctx, func() error {
		if b.system.batches {
			return fill(ctx, b.queue, n, measure.NextHour)
		}
		return publishEach(ctx, b.queue, n, measure.NextHour)
	})
	if err != nil {
		return err
	}
	b.found(n, s)
	return b.awaitPending(ctx, n)
}

func drain(ctx context.Context, b *bed) error {
	n := b.events(200_000, 10_000)
	if err := fill(ctx, b.queue, n, measure.Over(time.Now().Add(-time.Minute), time.Second, n)); err != nil {
		return err
	}
	in := measure.NewIntake(n, nil)
	slow, ok, err := b.slowest(ctx, func() error {
		s, err := b.meter.During(ctx, func() error {
			if err := b.queue.consume(ctx, []string{load}, in.Take); err != nil {
				return err
			}
			return b.await(ctx, in)
		})
		b.found(n, s)
		return err
	})
	if ok {
		b.Values[slowestName], b.Worst = measure.Micros(slow.Max)/1e3, slow.Worst
	}
	b.arrived(in, nil)
	return err
}

func steady(ctx context.Context, b *bed) error {
	const rate = 2000
	n := b.events(20*rate, 3*rate)
	return b.deliver(ctx, n, func() error {
		return measure.Pace(ctx, n, rate, func(i int) error {
			due := time.Now().Add(time.Second + rand.N(4*time.Second))
			return b.queue.publish(ctx, measure.Body(i, due), due)
		})
	})
}

func mixed(ctx context.Context, b *bed) error {
	n := b.events(200_000, 10_000)
	return b.deliver(ctx, n, func() error {
		return publishEach(ctx, b.queue, n, func(int) time.Time { return time.Now() })
	})
}

// deliver measures n events from publish to their end.
func (b *bed) deliver(ctx context.Context, n int, publish func() error) error {
	late := measure.NewLateness()
	in := measure.NewIntake(n, late)
	if err := b.queue.consume(ctx, []string{load}, in.Take); err != nil {
		return err
	}
	s, err := b.meter.During(ctx, func() error {
		if err := publish(); err != nil {
			return err
		}
		return b.await(ctx, in)
	})
	b.found(n, s)
	b.arrived(in, late)
	return err
}

func idle(ctx context.Context, b *bed) error {
	topics := make([]string, 100)
	for i := range topics {
		topics[i] = fmt.Sprintf("idle-%02d", i)
	}
	if err := b.queue.consume(ctx, topics, func([]byte) {}); err != nil {
		return err
	}
	if err := measure.Pause(ctx, b.lasts(5*time.Second, time.Second/2)); err != nil {
		return err
	}
	s, err := b.meter.During(ctx, func() error {
		return measure.Pause(ctx, b.lasts(10*time.Second, 3*time.Second/2))
	})
	seconds := s.Wall.Seconds()
	b.Values[commands], b.Values[connections] = float64(s.Commands)/seconds, float64(s.Connections)
	b.Values[serverCPU] = measure.Micros(s.Server) / 1e3 / seconds
	b.Values[clientCPU] = measure.Micros(s.Client) / 1e3 / seconds
	return err
}

func memory(ctx context.Context, b *bed) error {
	n := b.events(200_000, 10_000)
	s, err := b.meter.During(ctx, func() error {
		if err := fill(ctx, b.queue, n, measure.NextHour); err != nil {
			return err
		}
		return measure.Pause(ctx, time.Second/2) // the server frees the buffers of its replies in the background
	})
	b.Values[events], b.Values[overBody] = float64(n), float64(s.Memory)/float64(n)-measure.BodySize
	if err != nil {
		return err
	}
	return b.awaitPending(ctx, n)
}
