// Package delayqueue is a delay queue in memory: every item has a due time, and
// comes out when that time has come and not before.
//
// It needs nothing but the standard library and starts no goroutine: the calls
// that wait do the work. At most one waiting [Queue.Dequeue] has a timer
// running, set for the item at the head. When that call leaves, with an item or
// because its context ended, it hands the head on to the next one.
package delayqueue

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// ErrCapacity is the error, wrapped, of every [Queue.Enqueue] on a queue made
// with a negative capacity. No other queue returns it.
var ErrCapacity = errors.New("delayqueue: negative capacity")

// Queue holds items of type T until they are due. Make one with [New]; any
// number of goroutines may use it at once. A Queue needs no closing.
type Queue[T any] struct {
	capacity int // 0: unbounded
	clock    clock

	mu      sync.Mutex
	items   heap[T]
	seen    int64       // latest reading of clock; saves reading it again
	takers  waitList    // Dequeues waiting; the first looks after the head
	putters waitList    // Enqueues waiting; the first looks after the free room
	idle    waiterStack // waiters not in use
}

// New returns an empty queue that holds at most capacity items, or any number
// if capacity is 0. A negative capacity is a mistake, which New cannot report
// and does not panic over: each Enqueue on that queue returns [ErrCapacity].
func New[T any](capacity int) *Queue[T] {
	return &Queue[T]{capacity: capacity, clock: newClock()}
}

// Enqueue adds item, to come out at due, or at once if due has passed. While
// the queue is full it waits for room; waiting Enqueues are served in the order
// they were called, and a later one does not overtake them.
//
// If ctx has ended before the call, or ends during the wait, Enqueue returns
// ctx.Err(); on a queue of negative capacity it returns [ErrCapacity]. After an
// error the item is not in the queue.
//
// A due time with a monotonic clock reading, such as time.Now().Add(d), is kept
// by the monotonic clock. One without, such as a parsed or stored time, is
// translated to it when Enqueue is called; like a running [time.Timer], the
// item does not notice if the wall clock is set after that. A due time more
// than 292 years away is held to be never.
func (q *Queue[T]) Enqueue(ctx context.Context, item T, due time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	at := q.clock.offset(due)
	q.lock()
	if q.capacity != 0 && (q.full() || q.putters.first != nil) {
		return q.awaitRoom(ctx, item, at)
	}
	taker := q.push(item, at)
	q.mu.Unlock()
	taker.signal()
	return nil
}

// Dequeue removes and returns the item with the earliest due time, waiting
// until there is one and it is due. Items with equal due times come out in the
// order they were added. Waiting Dequeues are served in the order they were
// called, but one that finds an item due on arrival takes it without waiting.
//
// If ctx has ended before the call, even though an item may be due, or ends
// during the wait, Dequeue returns the zero value and ctx.Err(). After an error
// no item has been taken.
func (q *Queue[T]) Dequeue(ctx context.Context) (T, error) {
	if err := ctx.Err(); err != nil {
		var zero T
		return zero, err
	}
	q.lock()
	if !q.headDue() {
		return q.awaitHead(ctx)
	}
	item := q.items.pop()
	putter := q.putters.first
	q.mu.Unlock()
	putter.signal()
	return item, nil
}

// Len returns how many items the queue holds, due or not.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items.entries)
}

// awaitRoom is Enqueue's wait for its turn and for room. It is called with q.mu
// held and returns with it released.
func (q *Queue[T]) awaitRoom(ctx context.Context, item T, at int64) error {
	if q.capacity < 0 {
		q.mu.Unlock()
		return fmt.Errorf("%w: %d", ErrCapacity, q.capacity)
	}
	w := q.idle.pop()
	q.putters.push(w)
	var err error
	for {
		q.mu.Unlock()
		err = w.wait(ctx, 0)
		q.mu.Lock()
		if err != nil || (w == q.putters.first && !q.full()) {
			break
		}
	}
	var taker, putter *waiter
	if err == nil {
		taker = q.push(item, at)
	}
	if wasFirst := q.putters.remove(w); wasFirst && !q.full() {
		putter = q.putters.first
	}
	q.idle.push(w)
	q.mu.Unlock()
	taker.signal()
	putter.signal()
	return err
}

// awaitHead is Dequeue's wait for a due item. It is called with q.mu held and
// returns with it released.
func (q *Queue[T]) awaitHead(ctx context.Context) (item T, err error) {
	w := q.idle.pop()
	q.takers.push(w)
	for {
		var delay time.Duration
		if w == q.takers.first && len(q.items.entries) > 0 {
			delay = time.Duration(q.items.entries[0].at - q.seen)
		}
		q.mu.Unlock()
		err = w.wait(ctx, delay)
		q.mu.Lock()
		if err != nil || (w == q.takers.first && q.headDue()) {
			break
		}
	}
	var taker, putter *waiter
	if err == nil {
		item = q.items.pop()
		putter = q.putters.first
	}
	if wasFirst := q.takers.remove(w); wasFirst && len(q.items.entries) > 0 {
		taker = q.takers.first
	}
	q.idle.push(w)
	q.mu.Unlock()
	putter.signal()
	taker.signal()
	return item, err
}

// lock locks q.mu for a caller that has not waited yet. With other goroutines
// to run, a sync.Mutex that is taken puts the caller to sleep at once, and when
// many sleep it hands itself from one to the next, at the price of a goroutine
// switch per operation. What q.mu guards takes far less time than that, so lock
// first lets others run for a few turns, and sleeps only if that did not help.
func (q *Queue[T]) lock() {
	const turns = 16
	for range turns {
		if q.mu.TryLock() {
			return
		}
		runtime.Gosched()
	}
	q.mu.Lock()
}

// push adds item and returns the waiter to signal, nil if there is none to.
// q.mu is held.
func (q *Queue[T]) push(item T, at int64) *waiter {
	if isHead := q.items.push(item, at); isHead {
		return q.takers.first
	}
	return nil
}

// full reports whether there is no room. q.mu is held.
func (q *Queue[T]) full() bool {
	return len(q.items.entries) >= q.capacity
}

// headDue reports whether there is an item and it is due. If there is one and
// it is not due, q.seen is the present. q.mu is held.
func (q *Queue[T]) headDue() bool {
	if len(q.items.entries) == 0 {
		return false
	}
	at := q.items.entries[0].at
	if at > q.seen {
		q.seen = q.clock.now()
	}
	return at <= q.seen
}
