package dueq_test

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/readyqueue"
)

// trim forgets dead events, the oldest first.
func (m *model) trim(t *rapid.T) {
	l := m.lane(t)
	m.begin()
	r := readyqueue.Retention{Age: time.Hour, Limit: rapid.IntRange(1, 3).Draw(t, "limit")}
	if m.mini != nil { // else the clock runs on meanwhile
		r.Age = time.Duration(rapid.IntRange(0, 80).Draw(t, "age")) * time.Millisecond
	}
	got, err := readyqueue.Trim(t.Context(), m.rdb, l, r)
	m.look()
	if err != nil {
		t.Fatal(err)
	}
	var dead []string
	for id, e := range m.all {
		if e.place == isDead {
			dead = append(dead, id)
		}
	}
	slices.SortFunc(dead, func(a, b string) int {
		return cmp.Or(cmp.Compare(m.all[a].due, m.all[b].due), strings.Compare(a, b))
	})
	var want readyqueue.Trimmed
	for i, id := range dead {
		switch {
		case m.all[id].due < m.low-r.Age.Milliseconds():
			want.Old++
		case i < len(dead)-r.Limit:
			want.Excess++
		default:
			continue
		}
		m.forget(id)
	}
	if got != want {
		t.Fatalf("trimmed %+v to %+v, want %+v", got, r, want)
	}
}

// purge forgets what nobody holds; mostly it lets the lane be.
func (m *model) purge(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "purge") > 0 {
		return
	}
	l := m.lane(t)
	m.begin()
	of := bucket.Places{
		Scheduled: rapid.Bool().Draw(t, "scheduled"), Ready: rapid.Bool().Draw(t, "ready"), Dead: rapid.Bool().Draw(t, "dead"),
	}
	n, err := bucket.Purge(t.Context(), m.rdb, l, of)
	m.look()
	want := 0
	for id, e := range m.all {
		if e.place == inBucket && of.Scheduled || e.place == inReady && of.Ready || e.place == isDead && of.Dead {
			m.forget(id)
			want++
		}
	}
	if n != want || err != nil {
		t.Fatalf("purged %d, %v, want %d", n, err, want)
	}
}
