package dueq_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/inspect"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/readyqueue"
)

// pause pauses the lane, or resumes it.
func (m *model) pause(t *rapid.T) {
	m.paused = rapid.Bool().Draw(t, "paused")
	if err := readyqueue.Pause(t.Context(), m.rdb, []*key.Lane{m.lane(t)}, m.paused); err != nil {
		t.Fatal(err)
	}
}

// requeue gives those of some ids that are dead a new life.
func (m *model) requeue(t *rapid.T) {
	l := m.lane(t)
	known := append([]string{"none"}, slices.Sorted(maps.Keys(m.all))...)
	ids := rapid.SliceOfDistinct(rapid.SampledFrom(known), rapid.ID[string]).Draw(t, "ids")
	m.begin()
	due := m.low + m.delay(t, -20, 50)
	n, err := bucket.Requeue(t.Context(), m.rdb, l, ids, due)
	want := 0
	for _, id := range ids {
		if e := m.all[id]; e != nil && e.place == isDead {
			e.attempts, e.at, e.mark = nil, due, ""
			m.schedule(id, due, l.Home(id))
			want++
		}
	}
	if n != want || err != nil {
		t.Fatalf("requeued %d of %q, %v, want %d", n, ids, err, want)
	}
}

// list lists the events of one state, in pages.
func (m *model) list(t *rapid.T) {
	listing := inspect.Listing{
		State: rapid.SampledFrom([]string{"scheduled", "ready", "leased", "dead"}).Draw(t, "state"),
		Lanes: []*key.Lane{nil, m.lane(t)}, Limit: rapid.IntRange(1, 4).Draw(t, "limit"), Preview: 1000,
	}
	var got []inspect.Listed
	for {
		found, next, err := listing.Run(t.Context(), m.rdb)
		if err != nil || len(found) > listing.Limit {
			t.Fatalf("listed %d, limit %d, %v", len(found), listing.Limit, err)
		}
		got = append(got, found...)
		if listing.After = next; next == nil {
			break
		}
	}
	places := map[string]place{"scheduled": inBucket, "ready": inReady, "leased": isHeld, "dead": isDead}
	var want []string
	for id, e := range m.all {
		if strings.HasPrefix(string(e.place), string(places[listing.State])) {
			want = append(want, id)
		}
	}
	slices.SortFunc(want, func(a, b string) int {
		x, y := m.all[a], m.all[b]
		switch listing.State {
		case "ready":
			return cmp.Compare(slices.Index(m.ready, a), slices.Index(m.ready, b))
		case "scheduled":
			return cmp.Or(cmp.Compare(x.due, y.due), cmp.Compare(x.bucket, y.bucket), cmp.Compare(a, b))
		case "dead":
			return cmp.Or(cmp.Compare(y.due, x.due), cmp.Compare(b, a))
		}
		return cmp.Or(cmp.Compare(x.place, y.place), cmp.Compare(a, b)) // by session and id
	})
	ids := make([]string, len(got))
	for i, e := range got {
		ids[i] = e.ID
		if !strings.HasSuffix(e.Record, "\n"+m.all[e.ID].body) || e.Size != len(e.Record) {
			t.Fatalf("listed %s as %q of %d bytes", e.ID, e.Record, e.Size)
		}
	}
	if !slices.Equal(ids, want) {
		t.Fatalf("listed what is %s as %q, want %q", listing.State, ids, want)
	}
}
