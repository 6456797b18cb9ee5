package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dueq-io/dueq/chaos/history"
)

const drainTime = 30 * lease

// arena is one run: servers, workers and, to a single server, their links.
type arena struct {
	settings
	dir      string
	program  string
	progress io.Writer
	history  *history.Writer

	serverMu sync.Mutex // held while a server is down, or data moves between them
	redis    *topology
	guard    guard
	memory   sync.Mutex // held while the server's memory is limited
	links    []*link    // to a single server: of the places, then the operator's
	places   []*place
	operator *operator

	mu       sync.Mutex
	breaches []string // of conservation, and workers that ended by themselves
	checks   int      // of conservation
	fatal    error    // the run cannot go on
	failed   chan struct{}
}

// chaos makes a run.
func chaos(ctx context.Context, s settings, progress io.Writer) (r *report, err error) {
	a := &arena{settings: s, progress: progress, failed: make(chan struct{})}
	if a.program, err = os.Executable(); err != nil {
		return nil, err
	}
	if a.dir, err = os.MkdirTemp("", "chaos-"); err != nil {
		return nil, err
	}
	defer func() {
		if r != nil && r.clean() || ctx.Err() != nil {
			err = errors.Join(err, os.RemoveAll(a.dir))
		}
	}()
	fmt.Fprintf(progress, "chaos: seed %d, redis: %s, %v, %d workers, %d events/s, faults: %v\n", s.seed, s.shape, s.duration, s.workers, s.rate, &s.faults)
	began := time.Now()
	err = errors.Join(a.fight(ctx), a.close())
	if err != nil {
		return nil, fmt.Errorf("%w (what there is lies in %s)", err, a.dir)
	}
	fmt.Fprintln(progress, "chaos: checking the histories")
	records, err := history.ReadDir(a.dir)
	if err != nil {
		return nil, err
	}
	return a.judge(records, began), nil
}

// fight is a run from its first process to its last.
func (a *arena) fight(ctx context.Context) error {
	if err := a.setUp(ctx); err != nil {
		return err
	}
	a.assail(ctx)
	if err := a.broken(ctx); err != nil {
		return err
	}
	a.drain(ctx)
	if err := a.broken(ctx); err != nil {
		return err
	}
	a.endWorkers()
	a.conserve(ctx)
	left, err := a.redis.left(ctx)
	if err != nil {
		return err
	}
	a.history.Write(left...)
	return nil
}

// broken is why the run cannot go on, or nil.
func (a *arena) broken(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Join(a.fatal, context.Cause(ctx))
}

// fail ends the run.
func (a *arena) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fatal == nil {
		a.fatal = err
		close(a.failed)
	}
}

func (a *arena) setUp(ctx context.Context) error {
	var err error
	if a.history, err = history.Create(filepath.Join(a.dir, "chaos"+history.Ext), "chaos"); err != nil {
		return err
	}
	if a.redis, err = startTopology(ctx, a.shape, a.dir); err != nil {
		return err
	}
	if a.shape == single {
		for i := range a.workers + 1 {
			l, err := newLink(linkName(i), a.redis.nodes[0].Addr())
			if err != nil {
				return err
			}
			a.links = append(a.links, l)
		}
	} else if _, err = a.awaitWhole(ctx); err != nil {
		return err
	}
	if a.operator, err = newOperator(a.shape, a.addrs(a.workers), a.history); err != nil {
		return err
	}
	for i := range a.workers {
		p := &place{index: i}
		a.places = append(a.places, p)
		if err := a.begin(p); err != nil {
			return err
		}
	}
	return nil
}

// addrs are where the worker in a place, or the operator, asks for Redis.
func (a *arena) addrs(place int) []string {
	if a.shape == single {
		return []string{a.links[place].addr()}
	}
	return a.redis.addrs()
}

func (a *arena) breach(lines ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.breaches = append(a.breaches, lines...)
}

// assail makes all faults of the plan.
func (a *arena) assail(run context.Context) {
	ctx, cancel := context.WithTimeout(run, a.duration)
	defer cancel()
	go func() {
		select {
		case <-a.failed:
			cancel()
		case <-ctx.Done():
		}
	}()
	start := time.Now()
	var steps, watchers sync.WaitGroup
	watchers.Go(func() { a.watch(ctx, start) })
	watchers.Go(func() { a.feel(ctx) })
	watchers.Go(func() { a.operator.work(ctx) })
	if len(a.faults) > 0 && a.shape == single {
		steps.Go(func() { a.relax(ctx, start) })
	}
	for _, s := range plan(a.seed, a.faults, a.workers, a.duration) {
		steps.Go(func() {
			if !pause(ctx, time.Until(start.Add(s.at))) {
				return
			}
			if err := a.make(run, ctx, s); err != nil {
				a.fail(fmt.Errorf("fault %s: %w", s.name, err))
			}
		})
	}
	<-ctx.Done()
	steps.Wait()
	watchers.Wait()
}

// relax has the server sync its file once a second in the second third of the
// time.
func (a *arena) relax(ctx context.Context, start time.Time) {
	for i, mode := range []string{history.EverySec, history.Always} {
		if !pause(ctx, time.Until(start.Add(a.duration*time.Duration(i+1)/3))) {
			break
		}
		if err := a.setSync(ctx, mode); err != nil {
			a.fail(err)
		}
	}
	if err := a.setSync(context.WithoutCancel(ctx), history.Always); err != nil {
		a.fail(err)
	}
}

func (a *arena) setSync(ctx context.Context, mode string) error {
	a.serverMu.Lock()
	defer a.serverMu.Unlock()
	server := a.redis.nodes[0]
	if server.mode == mode || ctx.Err() != nil {
		return nil
	}
	server.mode = mode
	return server.config(ctx, "appendfsync", mode)
}

// drain waits until everything is handled.
func (a *arena) drain(ctx context.Context) {
	for _, p := range a.places {
		_, _ = fmt.Fprintln(p.proc.stdin, quietLine) // one that has ended is noticed elsewhere
	}
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	feeling := make(chan struct{})
	go func() {
		defer close(feeling)
		a.feel(ctx)
	}()
	fmt.Fprintln(a.progress, "chaos: no more faults, no more events; draining")
	for a.conserve(ctx) != 0 && pause(ctx, 200*time.Millisecond) {
		a.operator.resumeAll(ctx)
		select {
		case <-a.failed:
			cancel()
		default:
		}
	}
	cancel()
	<-feeling
}

// close ends whatever runs still.
func (a *arena) close() error {
	for _, p := range a.places {
		if p.proc != nil {
			select {
			case <-p.gone:
			default:
				close(p.gone)
			}
			p.proc.Kill()
		}
	}
	if a.operator != nil {
		a.operator.close()
	}
	for _, l := range a.links {
		l.cut()
	}
	if a.redis != nil {
		a.redis.close()
	}
	if a.history == nil {
		return nil
	}
	return a.history.Close()
}
