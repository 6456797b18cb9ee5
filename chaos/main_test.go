package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/dueq-io/dueq/chaos/history"
)

// TestMain is a worker too: the program starts itself.
func TestMain(m *testing.M) {
	logging.Disable()
	if len(os.Args) == 3 && os.Args[1] == workerFlag {
		os.Exit(runWorker(os.Args[2], os.Stdin, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"-h", 0, "server-kill"},
		{"-duration 10ms", exitUsage, "-duration is 10ms"},
		{"-duration x", exitUsage, "invalid value"},
		{"-workers 0", exitUsage, "-workers is 0"},
		{"-workers 17", exitUsage, "-workers is 17"},
		{"-rate 0", exitUsage, "-rate is 0"},
		{"-faults kill,flood", exitUsage, `no fault "flood"`},
		{"-faults kill,cut -redis cluster", exitUsage, `no fault "cut" with -redis cluster`},
		{"-faults failover -redis sentinel", exitUsage, `no fault "failover" with -redis sentinel`},
		{"-redis ring", exitUsage, `"ring"`},
		{"-seed -1", exitUsage, "invalid value"},
		{"-nonsense", exitUsage, "-nonsense"},
		{"now", exitUsage, `unknown argument "now"`},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(c.args), &stdout, &stderr)
		if code != c.code || !strings.Contains(stderr.String(), c.text) || stdout.Len() > 0 {
			t.Errorf("%s: code %d, %s%s", c.args, code, &stdout, &stderr)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		want settings
	}{
		{"-seed 7", settings{single, 10 * time.Minute, 7, 3, 200, single.faults(), "", false}},
		{"-seed 7 -short", settings{single, shortDuration, 7, 3, 200, single.faults(), "", false}},
		{"-seed 7 -short -duration 5s -faults none", settings{single, 5 * time.Second, 7, 3, 200, nil, "", false}},
		{"-seed 7 -workers 2 -rate 50 -json r -v -faults cut,kill", settings{single, 10 * time.Minute, 7, 2, 50, faultNames{"cut", "kill"}, "r", true}},
		{"-seed 7 -faults all -redis cluster", settings{cluster, 10 * time.Minute, 7, 3, 200, cluster.faults(), "", false}},
	} {
		if got, err := parse(strings.Fields(c.args), nil); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", c.args, got, err, c.want)
		}
	}
	got, err := parse(nil, nil)
	if err != nil || got.seed == 0 {
		t.Errorf("without a seed: %+v, %v", got, err)
	}
}

// The same seed makes the same plan, which makes all faults that there are with
// such a Redis, within the time.
func TestPlan(t *testing.T) {
	t.Parallel()
	const duration = 3 * time.Minute
	for _, shape := range []shape{single, sentinel, cluster} {
		names := shape.faults()
		steps := plan(1, names, 3, duration)
		if again := plan(1, names, 3, duration); !reflect.DeepEqual(again, steps) {
			t.Errorf("%s: the same seed made another plan", shape)
		}
		if other := plan(2, names, 3, duration); reflect.DeepEqual(other, steps) {
			t.Errorf("%s: another seed made the same plan", shape)
		}
		count := make(map[string]int)
		for _, s := range steps {
			count[s.name]++
			if s.at < 0 || s.at+s.lasts > duration || s.worker >= 3 || s.target == aWorker && s.worker < 0 {
				t.Errorf("%s: step %+v", shape, s)
			}
		}
		for _, name := range names {
			if count[name] == 0 {
				t.Errorf("%s: no %s among %d steps", shape, name, len(steps))
			}
			delete(count, name)
		}
		if len(count) > 0 {
			t.Errorf("%s: also %v", shape, count)
		}
	}
	if steps := plan(1, nil, 3, duration); len(steps) > 0 {
		t.Errorf("%d faults of no kind", len(steps))
	}
}

// needServer skips the test without a server, unless one is required.
func needServer(t *testing.T) {
	t.Helper()
	for _, name := range []string{"redis-server", "valkey-server"} {
		if _, err := exec.LookPath(name); err == nil {
			return
		}
	}
	if os.Getenv("REQUIRE_REDIS") == "1" {
		t.Fatal("no redis-server on PATH")
	}
	t.Skip("no redis-server on PATH")
}

// shortRun runs the program, which must find no violation, and returns its report.
func shortRun(t *testing.T, args ...string) *report {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.json")
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), append([]string{"-seed", "1", "-rate", "100", "-workers", "2", "-json", path}, args...), &stdout, &stderr)
	if code != 0 {
		t.Fatalf("code %d\n%s%s", code, &stdout, &stderr)
	}
	for _, want := range []string{"seed 1", "no violations"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, &stdout)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := new(report)
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	if r.Seed != 1 || r.Stored == 0 || r.Acked == 0 || r.Checks == 0 || r.Claimed == 0 || r.Claimed == r.Delivered {
		t.Errorf("report %s", text)
	}
	return r
}

// Short runs, with and without faults.
func TestRun(t *testing.T) {
	t.Parallel()
	needServer(t)
	for _, faults := range []string{"none", "all"} {
		t.Run(faults, func(t *testing.T) {
			t.Parallel()
			r := shortRun(t, "-duration", "5s", "-faults", faults)
			if len(r.Result.Faults) == 0 != (faults == "none") || r.Confirmed > 0 || r.Listed == 0 {
				t.Errorf("faults %v, %d publishes confirmed by replicas, %d events listed", r.Result.Faults, r.Confirmed, r.Listed)
			}
			if faults == "none" && (r.Duplicates > 0 || r.Unknown > 0) && r.Stalls == 0 {
				t.Errorf("%d duplicates and %d unknown without a fault", r.Duplicates, r.Unknown)
			}
		})
	}
}

// A short run on servers that replace each other, of which one is killed.
func TestRunTakeover(t *testing.T) {
	t.Parallel()
	needServer(t)
	for _, shape := range []shape{sentinel, cluster} {
		t.Run(shape.String(), func(t *testing.T) {
			t.Parallel()
			r := shortRun(t, "-redis", string(shape), "-duration", "4s", "-faults", "kill,master-kill")
			if r.Redis != shape || r.Result.Faults["master-kill"] == 0 || r.Result.Faults[history.Takeover] == 0 {
				t.Errorf("redis %s, faults %v", r.Redis, r.Result.Faults)
			}
			if r.Confirmed == 0 || r.Confirmed == r.Stored {
				t.Errorf("of %d publishes %d were confirmed by replicas", r.Stored, r.Confirmed)
			}
		})
	}
}
