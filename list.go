package dueq

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/inspect"
	"github.com/dueq-io/dueq/internal/key"
)

const (
	maxPage     = 500 // events
	defaultPage = 100
	maxForecast = 100 // durations
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
	Since    time.Time // scheduled: due at or after it; dead: died at or after it. Not for other states.
	Until    time.Time // scheduled: due before it; dead: died before it. Not for other states.
}

// Page is some of a topic's events.
type Page struct {
	Events []*EventInfo
	Next   string // the Cursor of the next page; "": there is none
}

// List lists a topic's events in one state, a page at a time: what is scheduled
// by due time, what is ready in the order of the topic's partitions and of their
// ready lists, what is leased by partition, by the session that holds it, and by id,
// what is dead with the newest death first. What is due counts as scheduled until it
// lies in ready. A session that holds more than 5,000 events of a partition has them
// listed in no order.
//
// The topic may be in use. An event that stays where it is is listed once; one that
// moves meanwhile may be missed, or listed twice, and so may one of these 5,000 be
// listed twice, if all but few of them go meanwhile. A page looks at some thousands of
// events at most: with a filter it may be short, or empty, and not be the last.
// Its error wraps [ErrTopicInvalid], [ErrQueryInvalid], [ErrShutDown], or why
// Redis refused.
func (q *Queue) List(ctx context.Context, topic string, query Query) (*Page, error) {
	listing, err := query.listing()
	if err != nil {
		return nil, fmt.Errorf("%w: list topic %.80q: %w", ErrQueryInvalid, topic, err)
	}
	if listing.Lanes, err = q.lanesOf(ctx, topic); err != nil {
		return nil, err
	}
	found, next, err := listing.Run(ctx, q.rdb)
	if err != nil {
		return nil, fmt.Errorf("dueq: %w", err)
	}
	page := &Page{Events: make([]*EventInfo, len(found)), Next: encodeCursor(query.State, next)}
	for i, e := range found {
		info := newEventInfo(topic, e.ID, e.Place)
		info.BodySize += e.Size - len(e.Record)
		page.Events[i] = info
	}
	return page, nil
}

// listing checks the query. It does not set the lanes.
func (query Query) listing() (l inspect.Listing, err error) {
	f := query.Filter
	l = inspect.Listing{
		State: string(query.State), Limit: either(query.Limit, defaultPage), Preview: query.Preview,
		Prefix: f.IDPrefix, Error: f.Error, Since: bound(f.Since), Until: bound(f.Until),
	}
	switch query.State {
	case StateScheduled, StateDead:
	case StateReady, StateLeased:
		if !f.Since.IsZero() || !f.Until.IsZero() {
			return l, fmt.Errorf("events that are %s have no time to filter by", query.State)
		}
	default:
		return l, fmt.Errorf("state %.80q is none of %s, %s, %s and %s",
			query.State, StateScheduled, StateReady, StateLeased, StateDead)
	}
	if l.Limit < 1 || l.Limit > maxPage {
		return l, fmt.Errorf("a limit of %d events, not 1 to %d", query.Limit, maxPage)
	}
	if l.Preview < 0 {
		return l, fmt.Errorf("a preview of %d bytes", l.Preview)
	}
	l.After, err = decodeCursor(query.State, query.Cursor)
	return l, err
}

// bound is the first whole millisecond at or after t, or 0 if there is no t.
func bound(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return millis(t)
}

// cursor is what a [Query.Cursor] says, in base64 of JSON.
type cursor struct {
	State  State
	At     string `json:",omitempty"`
	Lane   int    `json:",omitempty"`
	Bucket int    `json:",omitempty"`
	ID     string

	Session   string `json:",omitempty"`
	Scan, End int64  `json:",omitempty"`
}

func encodeCursor(s State, m *inspect.Mark) string {
	if m == nil {
		return ""
	}
	text, _ := json.Marshal(cursor{s, m.At, m.Lane, m.Bucket, m.ID, m.Session, m.Scan, m.End}) // strings and numbers always go
	return base64.RawURLEncoding.EncodeToString(text)
}

func decodeCursor(s State, text string) (*inspect.Mark, error) {
	if text == "" {
		return nil, nil
	}
	var c cursor
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(decoded, &c)
	}
	if err != nil {
		return nil, errors.New("the cursor is none that a page has given")
	}
	if c.State != s {
		return nil, fmt.Errorf("the cursor is of a page of state %.80q, not %q", c.State, s)
	}
	at, err := strconv.ParseFloat(c.At, 64)
	timed := err == nil && !math.IsNaN(at) && !strings.ContainsAny(c.At, "xX") // hexadecimal
	if timed != (s == StateScheduled || s == StateDead) || c.Lane < 0 || c.Bucket < 0 || c.Scan < 0 || c.End < 0 {
		return nil, errors.New("the cursor is not a place among events")
	}
	return &inspect.Mark{At: c.At, Lane: c.Lane, Bucket: c.Bucket, ID: c.ID, Session: c.Session, Scan: c.Scan, End: c.End}, nil
}

// lanesOf are the lanes that a topic has had, the one that is not partitioned
// first, nil where there is none.
func (q *Queue) lanesOf(ctx context.Context, name string) ([]*key.Lane, error) {
	counts, err := q.partitionCounts(ctx, name)
	if err != nil {
		return nil, err
	}
	lanes := []*key.Lane{nil}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, n := range distinct(counts) {
		if n == 1 {
			lanes[0] = q.addLanes(q.topic(name), n)[0]
		} else {
			lanes = append(lanes, q.addLanes(q.topic(name), n)...)
		}
	}
	return lanes, nil
}

// usedLanes are [Queue.lanesOf] without the one that is not there.
func (q *Queue) usedLanes(ctx context.Context, name string) ([]*key.Lane, error) {
	lanes, err := q.lanesOf(ctx, name)
	return slices.DeleteFunc(lanes, func(l *key.Lane) bool { return l == nil }), err
}

// Requeue gives the dead events that the filter takes a new life, due at
// effectTime, and returns how many. The topic may be in use: an event that dies
// meanwhile may stay dead.
//
// It works in small steps. When ctx ends, or Redis fails, it stops, and n is what
// it is known to have requeued by then; another call goes on. Its errors are those
// of [Queue.Purge], and [ErrEventInvalid] for the time.
func (q *Queue) Requeue(ctx context.Context, topic string, filter Filter, effectTime time.Time) (n int, err error) {
	if err := checkTime(effectTime, time.Now()); err != nil {
		return 0, fmt.Errorf("%w: requeue topic %.80q: %w", ErrEventInvalid, topic, err)
	}
	listing, err := Query{State: StateDead, Filter: filter, Limit: maxPage}.listing()
	if err != nil {
		return 0, fmt.Errorf("%w: requeue topic %.80q: %w", ErrQueryInvalid, topic, err)
	}
	if listing.Lanes, err = q.lanesOf(ctx, topic); err != nil {
		return 0, err
	}
	for {
		if ctx.Err() != nil {
			return n, fmt.Errorf("dueq: requeue topic %q: %w", topic, context.Cause(ctx))
		}
		found, next, err := listing.Run(ctx, q.rdb)
		if err != nil {
			return n, fmt.Errorf("dueq: %w", err)
		}
		ids := make(map[*key.Lane][]string)
		for _, e := range found {
			ids[e.Lane] = append(ids[e.Lane], e.ID)
		}
		for l, some := range ids {
			requeued, err := bucket.Requeue(context.WithoutCancel(ctx), q.rdb, l, some, millis(effectTime)) // whole steps: n is exact
			n += requeued
			if err != nil {
				return n, fmt.Errorf("dueq: %w", err)
			}
		}
		if next == nil {
			return n, nil
		}
		listing.After = next
	}
}

// Forecast counts a topic's scheduled events by when they are due: element i those
// due within ahead[i] from now and not within ahead[i-1], ahead being in order, of
// 1 to 100 durations above zero. Element 0 includes what is due already and not
// ready yet. Now is by the server's clock. Its errors are those of [Queue.List].
func (q *Queue) Forecast(ctx context.Context, topic string, ahead ...time.Duration) ([]int, error) {
	if n := len(ahead); n < 1 || n > maxForecast {
		return nil, fmt.Errorf("%w: forecast topic %.80q: %d durations, not 1 to %d", ErrQueryInvalid, topic, n, maxForecast)
	}
	if ahead[0] <= 0 || !slices.IsSorted(ahead) {
		return nil, fmt.Errorf("%w: forecast topic %.80q: durations %v, which are not above zero and in order", ErrQueryInvalid, topic, ahead)
	}
	lanes, err := q.usedLanes(ctx, topic)
	if err != nil {
		return nil, err
	}
	sum, err := inspect.Forecast(ctx, q.rdb, lanes, ahead)
	if err != nil {
		return nil, fmt.Errorf("dueq: %w", err)
	}
	return sum, nil
}
