package main

import (
	"io"
	"time"
)

// What the external tests reach besides the command itself.
var (
	Main        = main
	Run         = run
	NewRoot     = newRoot
	NewClient   = newClient
	ClockOffset = clockOffset
	NewTally    = newTally
	NewSummary  = newSummary
	Distance    = distance
	Tell        = tell
)

const SameSignal = sameSignal

type (
	Counts = counts
	Row    = row
)

func (t *tally) Publish(n int, lastDue time.Time)         { t.publish(n, lastDue) }
func (t *tally) Begin(n, attempt int, late time.Duration) { t.begin(n, attempt, late) }
func (t *tally) Deliver(n int)                            { t.deliver(n) }
func (t *tally) Persist(n int)                            { t.persist(n) }
func (t *tally) Read() (counts, []time.Duration)          { return t.read() }
func (t *tally) Done() <-chan struct{}                    { return t.done }

func (s *summary) WriteText(w io.Writer) { s.writeText(w) }
