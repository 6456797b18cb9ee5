package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/bench/internal/measure"
	"github.com/dueq-io/dueq/internal/digits"
)

const (
	counterKeys   = 10_000
	counterWindow = time.Second
)

// counter measures write-behind: every increment of a counter publishes its
// id, a second ahead and with KeyKeep, and the handler writes the total.
func counter(ctx context.Context, e *env) ([]measure.Row, error) {
	n := e.size(1_000_000, 20_000)
	keys := min(counterKeys, max(n/100, 1))
	uniform := func() int { return rand.IntN(keys) }
	var rows []measure.Row
	for _, d := range []struct {
		name string
		pick func() func() int // a caller's own source of keys
	}{
		{"uniform", func() func() int { return uniform }},
		{"zipf", func() func() int {
			z := rand.NewZipf(rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), 1.1, 1, uint64(keys-1))
			return func() int { return int(z.Uint64()) }
		}},
	} {
		e.say("counter: %s increments of %s keys, %s", digits.Group(n), digits.Group(keys), d.name)
		err := e.within(ctx, dueq.Options{}, func(r *rig) error {
			got, err := r.count(ctx, n, keys, d.pick)
			if err != nil {
				return err
			}
			got.Variant = fmt.Sprintf("%s, %s keys", d.name, digits.Group(keys))
			rows = append(rows, got)
			return nil
		})
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// counters are write-behind counters of one process, and its handler.
type counters struct {
	counts  []atomic.Int64 // as incremented
	written []atomic.Int64 // as a handler found them when it began
	runs    atomic.Int64
	last    atomic.Int64 // ns since 1970 at which the last handler began
}

// HandleEvent is dueq.Handler's.
func (c *counters) HandleEvent(_ context.Context, e *dueq.Event) error {
	c.last.Store(time.Now().UnixNano())
	c.runs.Add(1)
	k, _, ok := measure.ParseBody(e.Body)
	if !ok || k >= len(c.counts) || e.ID != counterID(k) {
		return dueq.SkipRetry(fmt.Errorf("not a counter: id %q", e.ID))
	}
	c.written[k].Store(c.counts[k].Load())
	return nil
}

func counterID(k int) string { return fmt.Sprintf("counter-%05d", k) }

// unwritten is how many counters have increments that no handler has seen.
func (c *counters) unwritten() int {
	n := 0
	for k := range c.counts {
		if c.written[k].Load() != c.counts[k].Load() {
			n++
		}
	}
	return n
}

func (r *rig) count(ctx context.Context, n, keys int, pick func() func() int) (measure.Row, error) {
	c := &counters{counts: make([]atomic.Int64, keys), written: make([]atomic.Int64, keys)}
	if err := r.queue.Subscribe(topic, c); err != nil {
		return measure.Row{}, err
	}
	const callers = 64
	start := time.Now()
	s, err := r.meter.During(ctx, func() error {
		return measure.Spread(ctx, callers, callers, func(ctx context.Context, caller int) error {
			next := pick()
			for range n*(caller+1)/callers - n*caller/callers {
				if err := r.increment(ctx, c, next()); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return measure.Row{}, err
	}
	if err := c.await(ctx, r.queue); err != nil {
		return measure.Row{}, err
	}
	windows := int(time.Unix(0, c.last.Load()).Sub(start)/counterWindow) + 1
	if runs := int(c.runs.Load()); runs > keys*windows {
		return measure.Row{}, fmt.Errorf("%d handler runs of %d keys in %d windows", runs, keys, windows)
	}
	return measure.NewRow("", n, s,
		measure.Figure{Name: "handler runs", Value: float64(c.runs.Load())},
		measure.Figure{Name: "at most", Value: float64(keys * windows)},
		measure.Figure{Name: "lost", Value: float64(c.unwritten())}), nil
}

func (r *rig) increment(ctx context.Context, c *counters, k int) error {
	c.counts[k].Add(1)
	due := time.Now().Add(counterWindow)
	_, err := r.queue.PublishEvent(ctx, topic, measure.Body(k, due), due, dueq.WithID(counterID(k)), dueq.WithKeyPolicy(dueq.KeyKeep))
	return err
}

// await returns when every counter is written and no event is left. That an
// event is gone and its counter is not written is a loss.
func (c *counters) await(ctx context.Context, q *dueq.Queue) error {
	if err := awaitSettled(ctx, q, 0); err != nil {
		return err
	}
	if n := c.unwritten(); n > 0 {
		return fmt.Errorf("%d counters have increments that no handler saw", n)
	}
	return nil
}
