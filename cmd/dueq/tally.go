package main

import (
	"sync"
	"time"
)

// tally counts what happens to numbered events.
type tally struct {
	done chan struct{} // closed when every event is delivered or persisted

	mu        sync.Mutex
	counts    counts
	events    []fate
	lateness  []time.Duration // of first deliveries
	lastTouch time.Time       // when something happened last
	lastDue   time.Time       // by this machine's clock
}

// counts are what a demo shows. Delivered and Persisted count events, never one
// of them twice.
type counts struct {
	Published int `json:"published"` // stored in Redis
	Delivered int `json:"delivered"` // handled with success
	Persisted int `json:"persisted"` // failed for good, and taken by PersistFn
	Retried   int `json:"retried"`   // deliveries after a failed one
	Repeated  int `json:"repeated"`  // delivered again though done
	Early     int `json:"early"`     // deliveries before the effect time
}

// open is how many events are neither delivered nor persisted.
func (c counts) open() int { return c.Published - c.Delivered - c.Persisted }

// fate is what became of an event so far.
type fate struct{ seen, settled bool }

func newTally(events int) *tally {
	return &tally{done: make(chan struct{}), events: make([]fate, events), lastTouch: time.Now()}
}

// publish counts n more events, the last of them due at lastDue.
func (t *tally) publish(n int, lastDue time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.Published += n
	if lastDue.After(t.lastDue) {
		t.lastDue = lastDue
	}
}

// begin counts that a handler was called with event n, so much after its effect time.
func (t *tally) begin(n, attempt int, late time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastTouch = time.Now()
	if late < 0 {
		t.counts.Early++
	}
	e := &t.events[n]
	switch {
	case e.settled:
		t.counts.Repeated++
	case attempt > 1:
		t.counts.Retried++
	case !e.seen:
		t.lateness = append(t.lateness, late)
	}
	e.seen = true
}

// deliver counts that event n was handled with success.
func (t *tally) deliver(n int) { t.settle(n, &t.counts.Delivered) }

// persist counts that event n was persisted.
func (t *tally) persist(n int) { t.settle(n, &t.counts.Persisted) }

func (t *tally) settle(n int, count *int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastTouch = time.Now()
	if t.events[n].settled {
		return
	}
	t.events[n].settled = true
	*count++
	if t.counts.Delivered+t.counts.Persisted == len(t.events) {
		close(t.done)
	}
}

// quiet is for how long nothing has happened although events are due.
func (t *tally) quiet() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	since := t.lastTouch
	if t.lastDue.After(since) {
		since = t.lastDue
	}
	return time.Since(since)
}

// read returns the counts and the latenesses so far.
func (t *tally) read() (counts, []time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts, append([]time.Duration(nil), t.lateness...)
}

// now returns the counts so far.
func (t *tally) now() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}
