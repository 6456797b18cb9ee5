package load_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq/bench/load"
	"github.com/dueq-io/dueq/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// output is what -json prints, as far as the tests look at it.
type output struct {
	Redis string
	Rows  []struct {
		Scenario, Variant string
		Events            int
		LatenessMS        *struct{ P50, Max, Early float64 } `json:"lateness_ms"`
		Figures           []struct {
			Name  string
			Value float64
		}
	}
}

// The scenarios themselves fail when an event is lost or forged; here it is
// checked that they measure what they should.
func TestScenarios(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scenario string
		args     []string
		events   []int // by row
		late     int   // rows with lateness
		charts   []string
	}{
		{scenario: "publish", args: []string{"-n", "2000"}, events: []int{2000, 200, 2000, 2000}},
		{scenario: "drain", args: []string{"-n", "5000"}, events: []int{5000, 5000}},
		{scenario: "steady", args: []string{"-n", "400", "-rate", "200,800"}, events: []int{400, 400}, late: 2, charts: []string{"steady"}},
		{scenario: "mixed", args: []string{"-n", "5000"}, events: []int{5000}, late: 1},
		{scenario: "idle", events: []int{0, 0, 0, 0}},
		{scenario: "cliff", args: []string{"-n", "5000"}, events: []int{5000, -1}, late: 2, charts: []string{"cliff"}},
		{
			scenario: "growth", args: []string{"-n", "3000"}, events: slicesOf(1000, 30),
			charts: []string{"growth-publish", "growth-carry", "growth-cancel"},
		},
		{scenario: "memory", args: []string{"-n", "2000"}, events: []int{2000, 2000}},
		{scenario: "counter", args: []string{"-n", "5000"}, events: []int{5000, 5000}},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			folder := t.TempDir()
			args := append([]string{"-redis", s.Addr(), "-short", "-json", "-svg", folder}, c.args...)
			out := measure(t, append(args, c.scenario)...)
			if len(out.Rows) != len(c.events) {
				t.Fatalf("%d rows, want %d", len(out.Rows), len(c.events))
			}
			late := 0
			for i, r := range out.Rows {
				if r.Scenario != c.scenario || r.Variant == "" {
					t.Errorf("row %d is of %q, %q", i, r.Scenario, r.Variant)
				}
				if r.Events != c.events[i] && c.events[i] >= 0 {
					t.Errorf("%s: %d events, want %d", r.Variant, r.Events, c.events[i])
				}
				if r.LatenessMS == nil {
					continue
				}
				late++
				if r.LatenessMS.Early != 0 || r.LatenessMS.P50 < 0 || r.LatenessMS.Max < r.LatenessMS.P50 {
					t.Errorf("%s: lateness %+v", r.Variant, *r.LatenessMS)
				}
			}
			if late != c.late {
				t.Errorf("%d rows with lateness, want %d", late, c.late)
			}
			checkCharts(t, folder, c.charts)
			if keys := s.Client().Keys(t.Context(), "*").Val(); len(keys) > 0 {
				t.Errorf("left behind: %q", keys)
			}
		})
	}
}

func slicesOf(v, n int) []int {
	vs := make([]int, n)
	for i := range vs {
		vs[i] = v
	}
	return vs
}

// measure runs the program with -json among args.
func measure(t *testing.T, args ...string) output {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := load.Run(t.Context(), "bench", args, &stdout, &stderr); code != 0 {
		t.Fatalf("%q: exit code %d\n%s", args, code, stderr.Bytes())
	}
	var out output
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		t.Fatalf("%v\n%s", err, stdout.Bytes())
	}
	return out
}

// checkCharts expects these SVG files and no others, each of them well formed.
func checkCharts(t *testing.T, folder string, names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) != len(names) {
		t.Errorf("charts: %q, %v, want %q", files, err, names)
	}
	for _, name := range names {
		svg, err := os.ReadFile(filepath.Join(folder, name+".svg"))
		if err != nil {
			t.Error(err)
			continue
		}
		elements := 0
		for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, ok := token.(xml.StartElement); ok {
				elements++
			}
		}
		if lines := bytes.Count(svg, []byte("<polyline")); lines == 0 || elements < 20 {
			t.Errorf("%s: %d lines, %d elements", name, lines, elements)
		}
		if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
			t.Errorf("%s: points that are nowhere", name)
		}
	}
}

// Without -redis it starts servers of its own, and prints a table.
func TestOwnServer(t *testing.T) {
	t.Parallel()
	redistest.Start(t) // skips without a server
	var stdout, stderr bytes.Buffer
	if code := load.Run(t.Context(), "bench", []string{"-short", "-n", "200", "memory"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr.Bytes())
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "scenario ") || !strings.HasPrefix(lines[1], "memory ") {
		t.Errorf("table:\n%s", stdout.Bytes())
	}
}

// Whether its servers have ended is for [redistest.Main] to see: somebody waits
// for each.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	redistest.Start(t) // skips without a server
	ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
	defer cancel()
	var stdout, stderr bytes.Buffer
	if code := load.Run(ctx, "bench", []string{"idle"}, &stdout, &stderr); code != 130 {
		t.Errorf("exit code %d\n%s", code, stderr.Bytes())
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"-h", 0, "growth"},
		{"-n -1", 2, "-1"},
		{"-rate fast", 2, "fast"},
		{"-rate 0", 2, "0"},
		{"publish nonsense", 2, "nonsense"},
		{"-nonsense", 2, "nonsense"},
		{"-redis 127.0.0.1:1 publish", 1, "127.0.0.1:1"},
		{"-redis redis://127.0.0.1:1/0 publish", 1, "127.0.0.1:1"},
		{"-redis http://127.0.0.1:1 publish", 2, "scheme"},
	} {
		var stdout, stderr bytes.Buffer
		code := load.Run(t.Context(), "bench", strings.Fields(c.args), &stdout, &stderr)
		if code != c.code || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%s: exit code %d\n%s", c.args, code, stderr.Bytes())
		}
	}
}
