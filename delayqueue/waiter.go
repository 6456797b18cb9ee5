package delayqueue

import (
	"context"
	"time"
)

// waiter is a call that waits. It may be woken without a reason, by a signal
// sent late to the call that used the waiter before, so a woken call always
// looks again at what it waits for.
type waiter struct {
	wake  chan struct{} // holds one signal
	timer *time.Timer   // nil until the first wait that needs one
	prev  *waiter       // in a waitList
	next  *waiter       // in a waitList or a waiterStack
}

// signal wakes the call that has w, or makes its next wait end at once. It does
// nothing for a nil w and needs no lock.
func (w *waiter) signal() {
	if w == nil {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default: // a signal not yet received serves for this one too
	}
}

// wait returns nil on a signal, or after delay unless that is 0, and ctx.Err()
// when ctx ends.
func (w *waiter) wait(ctx context.Context, delay time.Duration) error {
	if delay > 0 {
		return w.waitTimer(ctx, delay)
	}
	select {
	case <-w.wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitTimer is wait for a delay above 0.
func (w *waiter) waitTimer(ctx context.Context, delay time.Duration) error {
	if w.timer == nil {
		w.timer = time.NewTimer(delay)
	} else {
		w.timer.Reset(delay)
	}
	select {
	case <-w.timer.C:
		return nil
	case <-w.wake:
		w.timer.Stop()
		return nil
	case <-ctx.Done():
		w.timer.Stop()
		return ctx.Err()
	}
}

// waitList is a queue of waiters. Its first waiter has a duty to all of them:
// to be awake, signalled, or on a timer whenever there is something to take. So
// whoever adds that something signals the first, and a first waiter that leaves
// signals the one after it if something is left.
type waitList struct {
	first, last *waiter
}

// push adds w at the end.
func (l *waitList) push(w *waiter) {
	if l.last == nil {
		l.first, l.last = w, w
		return
	}
	w.prev, l.last.next = l.last, w
	l.last = w
}

// remove takes w out and reports whether it was the first.
func (l *waitList) remove(w *waiter) bool {
	wasFirst := w.prev == nil
	if wasFirst {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	return wasFirst
}

// waiterStack keeps waiters for the next call. It holds at most as many as have
// waited at once.
type waiterStack struct {
	top *waiter
}

// push puts w on the stack.
func (s *waiterStack) push(w *waiter) {
	w.next, s.top = s.top, w
}

// pop takes a waiter off the stack, or makes one.
func (s *waiterStack) pop() *waiter {
	w := s.top
	if w == nil {
		return &waiter{wake: make(chan struct{}, 1)}
	}
	s.top, w.next = w.next, nil
	return w
}
