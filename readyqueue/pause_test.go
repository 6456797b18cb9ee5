package readyqueue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/redistest"
	"github.com/dueq-io/dueq/readyqueue"
)

// Nobody gets anything in a paused lane, what is due goes to ready as long as
// there is room, and no bell rings until it is resumed.
func TestPause(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 2)
		pause := func(paused bool) {
			t.Helper()
			b.must(readyqueue.Pause(t.Context(), b.rdb, []*key.Lane{b.lane}, paused))
		}
		heard := b.rdb.Subscribe(t.Context(), b.lane.Alarm)
		t.Cleanup(func() { _ = heard.Close() })
		if _, err := heard.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.ready("r")
		b.scheduled("due", 1, time.Second)
		pause(true)
		got := b.claim("me", 10, 0, 1)
		if len(got.Leases) != 0 || !got.Paused || got.Left != 2 || !got.Heads[1].Empty {
			t.Errorf("claimed %+v", got)
		}
		b.lies(map[string][]string{
			b.lane.Ready: {"r", "due"}, b.lane.Bucket(1): nil, b.lane.Held("me"): nil, b.lane.Sessions: nil, b.lane.Bell: nil,
		})
		for i := range readyqueue.MaxBatch {
			b.scheduled(fmt.Sprint("more", i), 0, time.Second)
		}
		c := readyqueue.Claim{Session: "me", Lease: time.Hour, Extend: true, Limit: 1, HighWater: 5, Due: []int{0, 1}}
		got, err := c.Run(t.Context(), b.rdb, b.lane)
		b.must(err)
		if len(got.Leases) != 0 || got.Left != 5 || got.Heads[0].Empty {
			t.Errorf("claimed %+v", got)
		}
		pause(false)
		b.lies(map[string][]string{b.lane.Bell: {"1"}, b.lane.Meta: nil})
		m, err := heard.ReceiveMessage(t.Context())
		b.must(err)
		var now int64
		var what string
		if n, err := fmt.Sscan(m.Payload, &now, &what); n != 2 || err != nil || now < 1e15 || what != "resumed" {
			t.Errorf("alarm %q", m.Payload)
		}
		if got := b.claim("me", 10, 0, 1); len(got.Leases) != 10 || got.Paused {
			t.Errorf("claimed %d, paused %t", len(got.Leases), got.Paused)
		}
	})
}

// A lane that is paused before it is used learns its bucket count all the same.
func TestPauseKeepsCounts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		b := newBench(t, env, 2)
		lanes := []*key.Lane{b.lane}
		b.must(readyqueue.Pause(t.Context(), b.rdb, lanes, true))
		b.claim("me", 1)
		b.must(readyqueue.Pause(t.Context(), b.rdb, lanes, false))
		b.claim("me", 1)
		if stored := b.rdb.HGet(t.Context(), b.lane.Meta, "buckets").Val(); stored != "2" {
			t.Errorf("bucket counts %q are registered", stored)
		}
	})
}
