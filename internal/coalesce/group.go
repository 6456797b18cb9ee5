// Package coalesce gathers items from many goroutines into batches without
// waiting for them: a batch leaves as soon as the last one has returned, with
// whatever has come in meanwhile.
package coalesce

import "sync"

// Group gathers items and hands them to a function, batch by batch.
type Group[T any] struct {
	run     func([]T)
	size    func(T) int
	maxLen  int
	maxSize int
	flights int

	mu      sync.Mutex
	pending []T
	active  int
	idle    sync.Cond
}

// New returns a group that calls run with batches of at most maxLen items, and,
// but for a single larger item, at most maxSize by the measure of size. At most
// flights calls run at a time. The batch is run's only until it returns.
func New[T any](run func([]T), flights, maxLen, maxSize int, size func(T) int) *Group[T] {
	g := &Group[T]{run: run, flights: flights, maxLen: maxLen, maxSize: maxSize, size: size}
	g.idle.L = &g.mu
	return g
}

// Add queues items for the next batch; it does not wait.
func (g *Group[T]) Add(items ...T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pending = append(g.pending, items...)
	if g.active < g.flights && len(g.pending) > 0 {
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
	}
}

// take moves the next batch out of pending; with none left the flight ends.
func (g *Group[T]) take(batch []T) []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, size := 0, 0
	for n < len(g.pending) && n < g.maxLen {
		if size += g.size(g.pending[n]); size > g.maxSize && n > 0 {
			break
		}
		n++
	}
	if n == 0 {
		g.active--
		g.idle.Broadcast()
		return nil
	}
	batch = append(batch, g.pending[:n]...)
	left := copy(g.pending, g.pending[n:])
	clear(g.pending[left:])
	g.pending = g.pending[:left]
	return batch
}
