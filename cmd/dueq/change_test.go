package main_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dueq-io/dueq/internal/redistest"
)

func TestChangingVerbs(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		v := newVerbs(t, env)
		far := time.Now().Add(time.Hour)
		for _, id := range []string{"a", "b", "c", "d"} {
			v.publish("t", id, "x", far)
		}
		at := time.Now().Add(10 * time.Hour).UTC().Truncate(time.Second)
		v.has(v.run(0, "reschedule", "t", "a", "--at", at.Format(time.RFC3339)), "a is due ", "in 9h59m")
		if e, err := v.q.Get(t.Context(), "t", "a"); err != nil || !e.Due.Equal(at) {
			t.Errorf("%+v, %v", e, err)
		}
		v.has(v.run(0, "reschedule", "t", "a", "--now"), ", now")
		var moved struct {
			ID         string
			EffectTime time.Time `json:"effect_time"`
		}
		v.json(&moved, "reschedule", "t", "a", "--in", "2h")
		if e, err := v.q.Get(t.Context(), "t", "a"); err != nil || !e.Due.Equal(moved.EffectTime) || moved.ID != "a" {
			t.Errorf("%+v, %+v, %v", moved, e, err)
		}
		v.has(v.run(1, "reschedule", "t", "none", "--now"), "no such event")

		v.has(v.run(2, "cancel", "t", "a", "b"), "add --yes")
		v.has(v.run(0, "cancel", "t", "a"), "1 event cancelled")
		v.has(v.run(1, "cancel", "t", "a", "b", "--yes"), "1 event cancelled\n  a: ", "1 event not cancelled")
		var done struct {
			Count    int
			Failures []struct{ ID, Error string }
		}
		v.json(&done, "cancel", "t", "c", "--yes")
		if done.Count != 1 || len(done.Failures) != 0 {
			t.Errorf("cancelled %+v", done)
		}
		v.has(v.run(1, "cancel", "t", "c", "-o", "json"), `{"count":0,"failures":[{"id":"c",`)

		for i := range 5 {
			v.publish("dying", fmt.Sprint(i), "x", time.Now())
		}
		v.kill("dying", "no route", 5)
		v.has(v.run(1, "requeue", "dying", "0", "none", "--in", "1h"), "1 event requeued", "none: ")
		v.has(v.run(1, "requeue", "dying", "0"), "the event is not dead but scheduled")
		v.has(v.run(2, "requeue", "dying", "--all"), "add --yes")
		v.has(v.run(0, "requeue", "dying", "--error", "nothing like it", "--yes"), "0 events requeued")
		v.has(v.run(0, "requeue", "dying", "--error", "route", "--id-prefix", "1", "--yes", "--in", "1h"), "1 event requeued")
		v.json(&done, "requeue", "dying", "--all", "--yes", "--in", "1h")
		if s, err := v.q.Stats(t.Context(), "dying"); done.Count != 3 || err != nil || s.Scheduled != 5 || s.Dead != 0 {
			t.Errorf("requeued %d, %+v, %v", done.Count, s, err)
		}

		v.has(v.run(2, "purge", "dying"), "add --yes")
		v.has(v.run(0, "purge", "dying", "--state", "dead,ready", "--yes"), "0 events forgotten")
		v.json(&done, "purge", "dying", "--yes")
		if done.Count != 5 {
			t.Errorf("purged %d", done.Count)
		}

		v.has(v.run(0, "pause", "t", "new"), "t is paused\nnew is paused\n")
		v.has(v.run(0, "stats"), "  t (paused)\n", "  new (paused)\n")
		var state struct {
			Topics []string
			Paused bool
		}
		if v.json(&state, "resume", "t", "new"); state.Paused || len(state.Topics) != 2 {
			t.Errorf("resumed %+v", state)
		}
		if s, err := v.q.Stats(t.Context(), "new"); err != nil || s.Paused {
			t.Errorf("%+v, %v", s, err)
		}
	})
}
