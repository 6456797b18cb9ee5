package delayqueue

import "time"

// Cap returns for how many items q has memory.
func (q *Queue[T]) Cap() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return cap(q.items.entries)
}

// SetWallClock makes it look to q as if the wall clock had been set ahead by d
// since q was made, or back if d is negative. Call it before q is used by
// several goroutines.
func (q *Queue[T]) SetWallClock(d time.Duration) {
	q.clock.wall = q.clock.wall.Add(-d)
}
