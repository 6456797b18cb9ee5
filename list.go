package dueq

import (
	"context"
	"time"
)

// Query says which of a topic's events [Queue.List] lists.
type Query struct {
	State   State  // in which they are; must be given
	Filter  Filter // Defaults to all of them.
	Cursor  string // Page.Next of the page before. Defaults to "": the first page.
	Limit   int    // most events of a page, 1 to 500. Defaults to 0: 100.
	Preview int    // most bytes of each body. Defaults to 0: none.
}

// Filter narrows events down. The zero value takes all.
type Filter struct {
	IDPrefix string    // those whose id begins with it
	Error    string    // those whose last error contains it
	Since    time.Time // scheduled: due at or after it; dead: died at or after it
	Until    time.Time // scheduled: due before it; dead: died before it
}

// Page is some of a topic's events.
type Page struct {
	Events []*EventInfo
	Next   string // the Cursor of the next page; "": there is none
}

// List lists a topic's events in one state, a page at a time.
func (q *Queue) List(_ context.Context, _ string, _ Query) (*Page, error) {
	return nil, errNotBuilt
}

// Requeue gives the dead events that the filter takes a new life, due at
// effectTime, and returns how many.
func (q *Queue) Requeue(_ context.Context, _ string, _ Filter, _ time.Time) (n int, err error) {
	return 0, errNotBuilt
}

// Forecast counts a topic's scheduled events by when they are due: element i those
// due within ahead[i] from now and not within ahead[i-1], ahead being in order.
func (q *Queue) Forecast(_ context.Context, _ string, _ ...time.Duration) ([]int, error) {
	return nil, errNotBuilt
}
