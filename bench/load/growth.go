package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/bench/internal/measure"
	"github.com/dueq-io/dueq/internal/digits"
)

const (
	growthBatch   = 500 // events in a raw command: as many as dueq sends
	cancelCallers = 16
)

// growth measures how the cost of an event grows with the number of others
// that are pending.
func growth(ctx context.Context, e *env) ([]measure.Row, error) {
	g := &growing{env: e, slice: 10_000, lines: make(map[string][]series)}
	last := e.size(5_000_000, 50_000)
	if e.short {
		g.slice = 1000
	}
	for size := g.slice; size < last; size *= 10 {
		g.sizes = append(g.sizes, size)
	}
	g.sizes = append(g.sizes, last)
	err := g.measure(ctx, "raw", dueq.Options{}, func(r *rig) pending { return &rawPending{raw: newRaw(r)} })
	for _, buckets := range []int{1, 16, 64, 256} {
		if err != nil {
			return g.rows, err
		}
		name := fmt.Sprintf("Buckets %d", buckets)
		err = g.measure(ctx, name, dueq.Options{Buckets: buckets}, func(r *rig) pending { return &queuePending{rig: r} })
	}
	if err != nil {
		return g.rows, err
	}
	for _, move := range []string{"publish", "carry", "cancel"} {
		e.charts = append(e.charts, chart{
			name: "growth-" + move, title: "Cost of " + move + " by the number of pending events",
			x: axis{label: "pending events", log: true}, y: axis{label: "Redis CPU (µs/event)"},
			lines: g.lines[move],
		})
	}
	return g.rows, nil
}

// pending is a store of events.
type pending interface {
	publish(ctx context.Context, n int, at measure.Schedule) error
	// cancel forgets the events of the last publish.
	cancel(ctx context.Context) error
	// carry takes the n events that are due, and leaves the others.
	carry(ctx context.Context, n, others int) error
}

// growing is what growth has found so far.
type growing struct {
	env   *env
	sizes []int // numbers of pending events
	slice int   // how many events a measurement takes
	rows  []measure.Row
	lines map[string][]series // by move
}

// measure measures one store at all sizes.
func (g *growing) measure(ctx context.Context, name string, opts dueq.Options, open func(*rig) pending) error {
	curves := make(map[string][]point)
	err := g.env.within(ctx, opts, func(r *rig) error {
		p := open(r)
		have := 0
		for _, size := range g.sizes {
			g.env.say("growth: %s, %s pending", name, digits.Group(size))
			if err := p.publish(ctx, size-have, measure.NextHour); err != nil {
				return err
			}
			have = size
			add := func(move string, do func() error) error {
				s, err := r.meter.During(ctx, do)
				if err != nil {
					return err
				}
				cost := measure.Micros(s.Server) / float64(g.slice)
				curves[move] = append(curves[move], point{float64(size), cost})
				g.add(move, name, curves[move])
				return nil
			}
			if err := g.moves(ctx, p, size, add); err != nil {
				return err
			}
		}
		return nil
	})
	for move, points := range curves {
		g.lines[move] = append(g.lines[move], series{name: name, points: points})
	}
	return err
}

// add makes a row of the last point of a curve.
func (g *growing) add(move, name string, curve []point) {
	last := curve[len(curve)-1]
	figures := []measure.Figure{{Name: "of " + digits.Group(g.sizes[0]) + " pending", Value: measure.Ratio(last.y, curve[0].y), Unit: "×"}}
	if raw := g.lines[move]; len(raw) > 0 { // the first line
		figures = append(figures, measure.Figure{Name: "of raw", Value: measure.Ratio(last.y, raw[0].points[len(curve)-1].y), Unit: "×"})
	}
	g.rows = append(g.rows, measure.Row{
		Variant: fmt.Sprintf("%s, %s, %s pending", move, name, digits.Group(int(last.x))),
		Events:  g.slice, Redis: last.y, Figures: figures,
	})
}

// moves measures publish, cancel and carry of a slice of events beside others.
func (g *growing) moves(ctx context.Context, p pending, others int, add func(move string, do func() error) error) error {
	err := add("publish", func() error { return p.publish(ctx, g.slice, measure.NextHour) })
	if err != nil {
		return err
	}
	if err := add("cancel", func() error { return p.cancel(ctx) }); err != nil {
		return err
	}
	due := time.Now().Add(time.Second + time.Duration(g.slice)*time.Second/fillRate)
	if err := p.publish(ctx, g.slice, measure.Over(due, time.Second/10, g.slice)); err != nil {
		return err
	}
	if err := measure.Pause(ctx, time.Until(due.Add(time.Second/5))); err != nil {
		return err
	}
	return add("carry", func() error { return p.carry(ctx, g.slice, others) })
}

// queuePending is dueq's store.
type queuePending struct {
	*rig
	last []string // ids
}

func (p *queuePending) publish(ctx context.Context, n int, at measure.Schedule) (err error) {
	p.last, err = fill(ctx, p.queue, n, at)
	return err
}

func (p *queuePending) cancel(ctx context.Context) error {
	return measure.Spread(ctx, len(p.last), cancelCallers, func(ctx context.Context, i int) error {
		return p.queue.Cancel(ctx, topic, p.last[i])
	})
}

// carry subscribes with a queue of its own, so that the topic is without
// subscribers before and after.
func (p *queuePending) carry(ctx context.Context, n, others int) error {
	q, err := p.newQueue()
	if err != nil {
		return err
	}
	in := newIntake(n, nil)
	if err := q.Subscribe(topic, in); err != nil {
		return err
	}
	return errors.Join(in.await(ctx, q, others), shutDown(q))
}

// rawPending is the store of raw commands.
type rawPending struct {
	*raw
	last []string
}

func (p *rawPending) publish(ctx context.Context, n int, at measure.Schedule) error {
	p.last = rawIDs(n)
	return p.raw.publish(ctx, p.last, growthBatch, at)
}

func (p *rawPending) cancel(ctx context.Context) error {
	return measure.Spread(ctx, len(p.last), cancelCallers, func(ctx context.Context, i int) error {
		return p.raw.cancel(ctx, p.last[i])
	})
}

func (p *rawPending) carry(ctx context.Context, n, _ int) error {
	got, err := p.raw.carry(ctx, growthBatch)
	if err == nil && got != n {
		err = fmt.Errorf("raw: carried %d of %d events", got, n)
	}
	return err
}
