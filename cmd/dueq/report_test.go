package main_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	command "github.com/dueq-io/dueq/cmd/dueq"
)

func TestTally(t *testing.T) {
	t.Parallel()
	tally := command.NewTally(4)
	tally.Publish(4, time.Now())

	tally.Begin(0, 1, 3*time.Millisecond) // delivered, then again, and not counted twice
	tally.Deliver(0)
	tally.Begin(0, 2, time.Second)
	tally.Deliver(0)
	tally.Begin(1, 1, -time.Millisecond) // early, then retried
	tally.Begin(1, 2, time.Second)
	tally.Deliver(1)
	tally.Begin(2, 1, time.Millisecond) // handed back, so delivered a first time twice
	tally.Begin(2, 1, time.Second)
	tally.Persist(2)

	select {
	case <-tally.Done():
		t.Error("done with one event open")
	default:
	}
	got, lateness := tally.Read()
	if want := (command.Counts{Published: 4, Delivered: 2, Persisted: 1, Retried: 1, Repeated: 1, Early: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if want := []time.Duration{3 * time.Millisecond, -time.Millisecond, time.Millisecond}; !slices.Equal(lateness, want) {
		t.Errorf("lateness %v, want %v", lateness, want)
	}
	tally.Persist(3)
	<-tally.Done()
}

func TestSummaryNumbers(t *testing.T) {
	t.Parallel()
	var lateness []time.Duration
	for i := range 1000 { // 10 ms down to 10 µs
		lateness = append(lateness, time.Duration(1000-i)*10*time.Microsecond)
	}
	s := command.NewSummary(1000, command.Counts{Published: 1000, Delivered: 1000}, lateness, time.Second)
	if l := s.Lateness; l.P50 != 5 || l.P99 != 9.9 || l.Max != 10 {
		t.Errorf("lateness %+v, want 5, 9.9 and 10 ms", l)
	}
	want := []command.Row{{0, .25, 25}, {.25, .5, 25}, {.5, 1, 50}, {1, 2, 100}, {2, 4, 200}, {4, 8, 400}, {8, 16, 200}}
	if !slices.Equal(s.Histogram, want) {
		t.Errorf("histogram %v, want %v", s.Histogram, want)
	}
	s = command.NewSummary(1000, command.Counts{Published: 10}, nil, time.Second)
	if s.Open != 10 || s.Lateness.Max != 0 || s.Histogram == nil || len(s.Histogram) != 0 {
		t.Errorf("without deliveries: %+v", s)
	}
}

func TestSummaryText(t *testing.T) {
	t.Parallel()
	s := command.NewSummary(4000, command.Counts{Published: 3000, Delivered: 1300, Persisted: 12, Retried: 120, Repeated: 1},
		[]time.Duration{3 * time.Millisecond, 700 * time.Microsecond, 3500 * time.Microsecond, 40 * time.Millisecond}, 2345*time.Millisecond)
	s.Interrupted, s.ClockOffset = true, -1500
	var b strings.Builder
	s.WriteText(&b)
	const want = `Interrupted. 3,000 events published, 1,312 done in 2.3 s:

  delivered     1,300  events: a handler succeeded
  persisted        12  events: failed at all 3 attempts, then PersistFn took them
  open          1,688  events: neither of these, and given up
  retried         120  times a failed event came again, 300ms later
  repeated          1  times an event came again though it was done (at least once, not exactly)
  early             0  deliveries before the effect time: must be 0

Lateness, from an event's effect time to the start of its handler:

  p50 3.00 ms    p99 40.0 ms    max 40.0 ms

     0.5 to 1 ms            1  ####################
       1 to 2 ms            0
       2 to 4 ms            2  ########################################
       4 to 8 ms            0
       8 to 16 ms           0
      16 to 32 ms           0
      32 to 64 ms           1  ####################

The server's clock, which decides, is 1500 ms behind this machine's; that is allowed for.
`
	if got := b.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
