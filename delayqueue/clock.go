package delayqueue

import (
	"sync/atomic"
	"time"
)

// stepTolerance is how far wall clock and monotonic clock may drift apart
// before the wall clock counts as set. It is wider than the coarsest system
// clock ticks, and narrower than the 128 ms from which on ntpd sets the clock
// rather than slowing or hastening it.
const stepTolerance = 100 * time.Millisecond

// clock counts nanoseconds of the monotonic clock from its making.
type clock struct {
	start time.Time    // with a monotonic reading
	wall  time.Time    // start without it
	steps atomic.Int64 // nanoseconds the wall clock was set ahead since start
}

func newClock() clock {
	now := time.Now()
	return clock{start: now, wall: now.Round(0)}
}

// now returns the present as an offset.
func (c *clock) now() int64 {
	return int64(time.Since(c.start))
}

// offset returns t as an offset. Equal times give equal offsets unless the wall
// clock was set between the calls; times too far away give the largest or the
// smallest offset.
func (c *clock) offset(t time.Time) int64 {
	if t != t.Round(0) { // has a monotonic reading
		return int64(t.Sub(c.start))
	}
	return int64(t.Sub(c.wall.Add(c.step())))
}

// step returns how far ahead the wall clock has been set since start. It keeps
// to one value until the clock is set again.
func (c *clock) step() time.Duration {
	known := time.Duration(c.steps.Load())
	if (c.measure() - known).Abs() < stepTolerance {
		return known
	}
	// A goroutine interrupted between the readings of both clocks measures too
	// little, so that the larger of two measurements is the better one.
	step := max(c.measure(), c.measure())
	if (step - known).Abs() < stepTolerance {
		return known
	}
	c.steps.Store(int64(step))
	return step
}

// measure compares both clocks with what they showed at the start.
func (c *clock) measure() time.Duration {
	now := time.Now()
	return now.Round(0).Sub(c.wall) - now.Sub(c.start)
}
