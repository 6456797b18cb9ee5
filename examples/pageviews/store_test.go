package main_test

import (
	"path/filepath"
	"strings"
	"testing"

	pageviews "github.com/dueq-io/dueq/examples/pageviews"
)

// A handler that runs twice, or late and with an old total, changes nothing.
func TestSave(t *testing.T) {
	t.Parallel()
	store, err := pageviews.OpenStore(t.Context(), filepath.Join(t.TempDir(), "test.db"), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i, c := range []struct{ save, total, writes int }{
		{5, 5, 1},
		{5, 5, 1},
		{3, 5, 1},
		{8, 8, 2},
		{5, 8, 2},
	} {
		if err := store.Save(t.Context(), "/a\x00\xff", c.save); err != nil {
			t.Fatal(err)
		}
		totals, writes, err := store.Totals(t.Context())
		if err != nil || len(totals) != 1 || totals["/a\x00\xff"] != c.total || writes != c.writes {
			t.Errorf("save %d: %v after %d writes, %v, want %d after %d", i, totals, writes, err, c.total, c.writes)
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	log := strings.Repeat("h - - [t] \"GET /a\x1b HTTP/1.1\" 200 5\n", 2) + "junk\n"
	direct, err := pageviews.ReadSurvey(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		totals map[string]int
		want   []string
		right  bool
	}{
		{
			map[string]int{"/a\x1b": 2},
			[]string{`2  "/a\x1b"`, "2 requests for 1 paths; 1 lines are no requests", "one for 2.0 requests", "all 1 totals equal"},
			true,
		},
		{map[string]int{"/a\x1b": 1}, []string{`WRONG: total 1, direct count 2: "/a\x1b"`}, false},
		{map[string]int{"/a\x1b": 2, "/b": 3}, []string{`WRONG: total 3, direct count 0: /b`}, false},
		{nil, []string{`WRONG: total 0, direct count 2: "/a\x1b"`}, false},
	} {
		var out strings.Builder
		err := pageviews.Report(&out, direct, c.totals, 1)
		if (err == nil) != c.right {
			t.Errorf("totals %#v: error %v", c.totals, err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("totals %#v: no %q in\n%s", c.totals, want, out.String())
			}
		}
	}
}
