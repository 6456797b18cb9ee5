package metric

import (
	"sync"
	"sync/atomic"
)

// Topic is what a process has done for one topic.
type Topic struct {
	Published  atomic.Int64 // stored, replacing included
	Kept       atomic.Int64 // publishes that found their key and kept it
	Replaced   atomic.Int64 // publishes that put themselves in the place of another
	Duplicates atomic.Int64 // publishes that found their key and were refused

	Delivered atomic.Int64 // events claimed
	Acked     atomic.Int64 // outcomes that Redis has: handled
	Persisted atomic.Int64 // … taken by PersistFn
	Retried   atomic.Int64 // … scheduled again
	Buried    atomic.Int64 // … put among the dead
	Released  atomic.Int64 // … given back unhandled
	Lost      atomic.Int64 // events whose leases were taken away
	Sessions  atomic.Int64 // sessions that were lost, lane by lane

	Cancelled   atomic.Int64 // by Cancel or Purge
	Rescheduled atomic.Int64

	Dropped  atomic.Int64 // dead events that were not to be kept
	Findings atomic.Int64 // events that an audit found nowhere, or twice, or without a body

	Ready    Histogram // from due to claimed, of first attempts
	Lateness Histogram // from due to the handler's start, of first attempts
	Handling Histogram // of the handlers of a delivery
}

// Call is what a process knows of the calls of one script.
type Call struct {
	Took   Histogram
	Failed atomic.Int64
}

// Calls are the calls of all scripts, by their names. The zero value is ready for
// use.
type Calls struct{ of sync.Map }

// Of are the calls of the script with this name.
func (c *Calls) Of(name string) *Call {
	call, ok := c.of.Load(name)
	if !ok {
		call, _ = c.of.LoadOrStore(name, new(Call))
	}
	return call.(*Call)
}

// Each calls do with the calls of every script that was run.
func (c *Calls) Each(do func(name string, call *Call)) {
	c.of.Range(func(name, call any) bool {
		do(name.(string), call.(*Call))
		return true
	})
}
