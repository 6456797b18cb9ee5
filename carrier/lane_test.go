package carrier_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq/carrier"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/metric"
	"github.com/dueq-io/dueq/readyqueue"
)

// skew is how far the server's clock is ahead of ours.
const skew = 1000 * time.Hour

// alarmed is a lane whose alarms a test waits for, in a bubble.
type alarmed struct {
	*testing.T
	*carrier.Lane
	keys    *key.Lane
	carrier *carrier.Carrier
}

func newAlarmed(t *testing.T, buckets int) *alarmed {
	c := carrier.New(nil, zap.NewNop(), time.Hour, readyqueue.Retention{})
	k := key.NewLane("ns", "a", 0, 1, buckets)
	return &alarmed{t, c.Lane(k, new(metric.Topic)), k, c}
}

// server is the time after d by the server's clock, in milliseconds.
func server(d time.Duration) int64 { return time.Now().Add(skew + d).UnixMilli() }

// message is one of the lane's channel, sent now.
func message(parts string) string {
	return fmt.Sprint(time.Now().Add(skew).UnixMicro(), " ", parts)
}

// found is what a turn finds, given when each bucket's head is due: 0 for none.
func found(heads ...time.Duration) readyqueue.Claimed {
	c := readyqueue.Claimed{Now: time.Now().Add(skew).UnixMicro()}
	for i, d := range heads {
		h := readyqueue.Head{Bucket: i, Empty: d == 0}
		if d != 0 {
			h.Due = server(d)
		}
		c.Heads = append(c.Heads, h)
	}
	return c
}

// rings fails the test unless the next alarm rings in exactly d, and the turn it
// begins looks at these buckets and, if so, at the sessions.
func (a *alarmed) rings(d time.Duration, sessions bool, due ...int) {
	a.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(a.Context(), 1000*time.Hour)
	defer cancel()
	if _, err := a.carrier.Next(ctx); err != nil {
		a.Fatal("no alarm is set")
	}
	if got := time.Since(start); got != d {
		a.Errorf("the alarm rang after %v, want %v", got, d)
	}
	got, gotSessions, ok := a.Begin()
	slices.Sort(got)
	if !ok || gotSessions != sessions || !slices.Equal(got, due) {
		a.Errorf("the turn looks at buckets %v, sessions %t, %t; want %v, %t", got, gotSessions, ok, due, sessions)
	}
}

// quiet fails the test if an alarm is set.
func (a *alarmed) quiet() {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), 1000*time.Hour)
	defer cancel()
	if _, err := a.carrier.Next(ctx); err == nil {
		a.Error("an alarm rang")
	}
}

// started is a lane that has had its first turn, which found these heads.
func started(t *testing.T, heads ...time.Duration) *alarmed {
	a := newAlarmed(t, len(heads))
	a.Refresh()
	all := make([]int, len(heads))
	for i := range all {
		all[i] = i
	}
	a.rings(0, true, all...)
	a.End(found(heads...), false, nil)
	return a
}

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}

func TestLane(t *testing.T) {
	t.Parallel()
	const s = time.Second
	bubble(t, "empty", func(t *testing.T) { started(t, 0, 0, 0).quiet() })
	bubble(t, "earliest head", func(t *testing.T) {
		a := started(t, 5*s, 3*s, 0)
		a.rings(3*s, false, 1)
		a.End(readyqueue.Claimed{Now: found().Now, Heads: []readyqueue.Head{{Bucket: 1, Empty: true}}}, false, nil)
		a.rings(2*s, false, 0)
		a.End(found(0), false, nil)
		a.quiet()
	})
	bubble(t, "message", func(t *testing.T) {
		a := started(t, 5*s, 0)
		a.Hear(message(fmt.Sprintf("0=%d 1=%d", server(8*s), server(2*s)))) // a later head is no news
		a.rings(2*s, false, 1)
		a.End(found(3*s, 0), false, nil)
		a.rings(3*s, false, 0)
	})
	bubble(t, "message during a turn", func(t *testing.T) {
		a := started(t, s, 0)
		a.rings(s, false, 0)
		a.Hear(message(fmt.Sprintf("1=%d", server(2*s))))
		a.End(found(5*s), false, nil)
		a.rings(2*s, false, 1)
	})
	bubble(t, "message of the past", func(t *testing.T) {
		a := started(t, 0, 0)
		a.Hear(message(fmt.Sprintf("1=%d", server(-2*s))))
		a.rings(0, false, 1)
	})
	bubble(t, "unknown bucket", func(t *testing.T) {
		a := started(t, 5*s)
		a.Hear(message(fmt.Sprintf("7=%d", server(s))))
		a.rings(0, true, 0) // this turn learns that there are eight
		a.keys.Learn("8")
		a.End(found(5*s), false, nil)
		a.rings(0, true, 0, 1, 2, 3, 4, 5, 6, 7)
	})
	bubble(t, "session", func(t *testing.T) {
		a := started(t, 5*s)
		a.Hear(message(fmt.Sprintf("session=%d", server(3*s))))
		a.rings(3*s, true)
		a.Expired(server(s))
		a.End(found(), false, nil)
		a.rings(s, true)
		a.Expired(0)
		a.End(found(), false, nil)
		a.rings(s, false, 0)
	})
	bubble(t, "kick", func(t *testing.T) {
		a := started(t, 5*s)
		a.Kick()
		a.Kick()
		a.rings(0, false)
		a.Kick() // during the turn: one more follows
		a.End(found(), false, nil)
		a.rings(0, false)
		a.End(found(), false, nil)
		a.rings(5*s, false, 0)
	})
	bubble(t, "again", func(t *testing.T) {
		a := started(t, s)
		a.rings(s, false, 0)
		a.End(found(-s), true, nil)
		a.rings(0, false, 0)
		a.End(found(0), false, nil)
		a.quiet()
	})
	bubble(t, "no room", func(t *testing.T) {
		a := started(t, s)
		a.rings(s, false, 0)
		a.End(found(-s), false, nil) // due, and not taken: look again now and then
		a.rings(s, false, 0)
		a.End(found(-s), false, nil)
		a.Kick()
		a.rings(0, false, 0)
	})
	bubble(t, "paused", func(t *testing.T) {
		a := started(t, s/10, s/5)
		a.rings(s/10, false, 0)
		f := found(s/10, s/10)
		f.Paused = true
		a.End(f, false, nil) // what is due goes to ready, but nobody waits for it
		a.rings(s, false, 0, 1)
		f = found(-s, s)
		f.Paused = true
		a.End(f, false, nil) // ready is full
		a.Hear(message(fmt.Sprintf("1=%d", server(s/2))))
		a.rings(time.Hour, false, 0, 1)
		a.End(f, false, nil)
		a.Hear(message("resumed"))
		a.rings(0, true, 0, 1)
		a.Hear(message("resumed")) // during a turn, which may have come too early
		a.End(f, false, nil)
		a.rings(0, true, 0, 1)
		a.End(found(s, 0), false, nil)
		a.rings(s, false, 0)
	})
	bubble(t, "failures", func(t *testing.T) {
		a := started(t, time.Hour)
		a.Kick()
		a.rings(0, false)
		for _, pause := range []time.Duration{s / 10, s / 5, 2 * s / 5, 4 * s / 5, 8 * s / 5, 16 * s / 5, 5 * s, 5 * s} {
			a.End(readyqueue.Claimed{}, false, errors.New("broken"))
			a.rings(pause, true, 0) // everything is read afresh
		}
		a.End(found(time.Minute), false, nil)
		a.rings(time.Minute-time.Minute/500, false) // a little early, to look at the server's clock
	})
	bubble(t, "clock set", func(t *testing.T) {
		a := started(t, 5*s)
		a.Hear(fmt.Sprint(time.Now().Add(skew+2*s).UnixMicro(), " ")) // the server's clock is 2 s further
		a.rings(3*s, false, 0)
	})
	bubble(t, "alarm during a turn", func(t *testing.T) {
		a := started(t, 5*s)
		a.Kick()
		a.rings(0, false)
		if _, err := a.carrier.Next(t.Context()); err != nil { // that of the head, meanwhile
			t.Fatal(err)
		}
		if _, _, ok := a.Begin(); ok {
			t.Error("two turns at a time")
		}
		a.End(found(), false, nil)
		a.rings(0, false, 0)
	})
}

// What is not ours in a message is ignored.
func FuzzHear(f *testing.F) {
	for _, m := range []string{
		"", " ", "1", "1 0=1", "x 0=1", "1732184350000000 0=1732184357123 session=1732184365000", "1 =", "1 0", "1 0=", "1 99999999999=1",
		"1 -1=5", "1 resumed", "1 resumed=1", "1 session=", "1 0=99999999999999999999", "-5 0=-5", "9223372036854775807 0=9223372036854775807",
	} {
		f.Add(m)
	}
	f.Fuzz(func(_ *testing.T, m string) {
		l := carrier.New(nil, zap.NewNop(), time.Hour, readyqueue.Retention{}).Lane(key.NewLane("ns", "a", 0, 1, 2), new(metric.Topic))
		l.Refresh()
		l.Hear(m)
		if _, _, ok := l.Begin(); ok {
			l.Hear(m)
			l.End(readyqueue.Claimed{}, false, nil)
		}
		l.Hear(m)
	})
}
