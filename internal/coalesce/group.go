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
	if g.queue(items...) {
		go g.fly()
	}
}

// Join queues an item. If a batch may leave now, it leaves in the caller's
// goroutine, and Join returns when it has been run; else at once.
func (g *Group[T]) Join(item T) {
	if !g.queue(item) {
		return
	}
	if batch := g.take(nil); len(batch) > 0 {
		g.run(batch)
		if g.leave() {
			go g.fly()
		}
	}
}

// queue reports whether a flight may begin; then it has.
func (g *Group[T]) queue(items ...T) (flight bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pending = append(g.pending, items...)
	for _, item := range items {
		g.sizes += g.size(item)
	}
	flight = len(g.pending) > 0 && (g.active == 0 || g.active == 1 && g.sizes >= g.limits.Crowd)
	if flight {
		g.active++
	}
	return flight
}

// leave ends a flight, unless there is enough for it to go on.
func (g *Group[T]) leave() (stay bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.over()
}

// over ends the flight when nothing is left, or too little for two. The caller
// holds mu.
func (g *Group[T]) over() bool {
	if len(g.pending) > 0 && (g.active == 1 || g.sizes >= g.limits.Crowd) {
		return false
	}
	g.active--
	g.idle.Broadcast()
	return true
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

// take moves the next batch out of pending; it is empty when the flight is over.
func (g *Group[T]) take(batch []T) []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over() {
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
