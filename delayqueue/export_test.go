package delayqueue

import "time"

// StepTolerance is how far the wall clock may be set without being noticed.
const StepTolerance = stepTolerance

// SetWallClock makes it look to q as if the wall clock had been set ahead by d
// since q was made, or back if d is negative. Call it before q is used by
// several goroutines.
func (q *Queue[T]) SetWallClock(d time.Duration) {
	q.clock.wall = q.clock.wall.Add(-d)
}
