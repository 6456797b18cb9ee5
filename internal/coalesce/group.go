// Package coalesce gathers items from many goroutines into batches without
// waiting for them: a batch leaves as soon as the last one has returned, with
// whatever has come in meanwhile.
package coalesce

import (
	"runtime"
	"sync"
)

// Group gathers items and hands them to a function, batch by batch.
type Group[T any] struct {
	limits Limits
	size   func(T) int
	run    func([]T)

	mu      sync.Mutex
	pending []T
	sizes   int // of all pending items
	active  int
	idle    sync.Cond
}

// Limits bound the batches of a [Group].
type Limits struct {
	Len   int // most items in a batch
	Size  int // most size of a batch, but for a single larger item
	Crowd int // a second batch leaves beside the first once so much size waits
}

// New returns a group that calls run with batches, at most two at a time. The
// batch is run's only until it returns.
func New[T any](limits Limits, size func(T) int, run func([]T)) *Group[T] {
	g := &Group[T]{limits: limits, size: size, run: run}
	g.idle.L = &g.mu
	return g
}

// Add queues items for the next batch; it does not wait.
func (g *Group[T]) Add(items ...T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pending = append(g.pending, items...)
	for _, item := range items {
		g.sizes += g.size(item)
	}
	if len(g.pending) > 0 && (g.active == 0 || g.active == 1 && g.sizes >= g.limits.Crowd) {
		g.active++
		go g.fly()
	}
}

// Wait returns when everything added so far has been run.
func (g *Group[T]) Wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.active > 0 {
		g.idle.Wait()
	}
}

// fly runs batches until none is left.
func (g *Group[T]) fly() {
	var batch []T
	for {
		clear(batch)
		batch = g.take(batch[:0])
		if len(batch) == 0 {
			return
		}
		g.run(batch)
		runtime.Gosched() // those it has woken may have the next items
	}
}

// take moves the next batch out of pending. It ends the flight when nothing is
// left, or too little for two.
func (g *Group[T]) take(batch []T) []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.pending) == 0 || g.active > 1 && g.sizes < g.limits.Crowd {
		g.active--
		g.idle.Broadcast()
		return nil
	}
	n, size := 0, 0
	for n < len(g.pending) && n < g.limits.Len {
		next := g.size(g.pending[n])
		if n > 0 && size+next > g.limits.Size {
			break
		}
		size += next
		n++
	}
	batch = append(batch, g.pending[:n]...)
	left := copy(g.pending, g.pending[n:])
	clear(g.pending[left:])
	g.pending = g.pending[:left]
	g.sizes -= size
	return batch
}
