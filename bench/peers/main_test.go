package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	peers "github.com/dueq-io/dueq/bench/peers"
	"github.com/dueq-io/dueq/internal/redistest"
)

// TestMain is the program when it is called as its own child.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == peers.ChildFlag {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		code := peers.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}
	redistest.Main(m)
}

// output is what -json prints, as far as the tests look at it.
type output struct {
	Rounds  int
	Systems []struct{ Name, Server, Missing string }
	Figures []struct {
		Scenario, System, Figure string
		Median                   float64
		Rounds                   []float64
	}
}

// find is a figure's median; ok says whether it was measured in all rounds.
func (o output) find(scenario, system, figure string) (median float64, ok bool) {
	for _, f := range o.Figures {
		if f.Scenario == scenario && f.System == system && f.Figure == figure {
			return f.Median, len(f.Rounds) == o.Rounds
		}
	}
	return 0, false
}

// The measurements themselves fail when an event is lost; here it is checked that
// each system is measured. Nothing is said of speed.
func TestSystems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scenario string
		systems  string
		figures  []string
	}{
		{"publish", "dueq,asynq,naive,beanstalkd,raw,raw-each", []string{"events/s", "client CPU"}},
		{"drain", "dueq,asynq,naive,beanstalkd,raw", []string{"events/s", "repeated"}},
		{"mixed", "dueq,asynq,asynq-fast,naive,beanstalkd", []string{"events/s", "lateness p99", "early"}},
		{"steady", "dueq,asynq-fast", []string{"lateness p50", "early by at most"}},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			redistest.Start(t) // skips without a server
			out := measure(t, "-n", "300", "-rounds", "1", "-systems", c.systems, c.scenario)
			if len(out.Systems) != strings.Count(c.systems, ",")+1 {
				t.Errorf("systems: %+v", out.Systems)
			}
			for _, s := range out.Systems {
				if s.Missing != "" {
					if s.Name != "beanstalkd" {
						t.Errorf("%s: %s", s.Name, s.Missing)
					}
					continue
				}
				if s.Server == "" {
					t.Errorf("%s: no server", s.Name)
				}
				if n, ok := out.find(c.scenario, s.Name, "events"); !ok || n != 300 {
					t.Errorf("%s: %v events, %v", s.Name, n, ok)
				}
				for _, f := range c.figures {
					if _, ok := out.find(c.scenario, s.Name, f); !ok {
						t.Errorf("%s: no %s", s.Name, f)
					}
				}
			}
			if n, ok := out.find(c.scenario, "dueq", "early"); slices.Contains(c.figures, "early") && (!ok || n != 0) {
				t.Errorf("dueq: %v early events, %v", n, ok)
			}
		})
	}
}

// measure runs the program with -json among args.
func measure(t *testing.T, args ...string) output {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := peers.Run(t.Context(), append([]string{"-json", "-short"}, args...), &stdout, &stderr); code != 0 {
		t.Fatalf("%q: exit code %d\n%s", args, code, stderr.Bytes())
	}
	var out output
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		t.Fatalf("%v\n%s", err, stdout.Bytes())
	}
	return out
}

// The table has a line per figure, whoever could be measured.
func TestTable(t *testing.T) {
	t.Parallel()
	redistest.Start(t) // skips without a server
	var stdout, stderr bytes.Buffer
	args := []string{"-short", "-n", "100", "-rounds", "2", "-systems", "dueq,raw", "memory", "publish"}
	if code := peers.Run(t.Context(), args, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr.Bytes())
	}
	lines := strings.Split(stdout.String(), "\n")
	for _, prefix := range []string{"dueq ", "raw ", "scenario  figure", "publish   events ", "memory    memory over the body "} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, prefix) }) {
			t.Errorf("no line %q in\n%s", prefix, stdout.Bytes())
		}
	}
	if n := strings.Count(stderr.String(), "\n"); n != 2*3 {
		t.Errorf("%d lines of progress, want one per measurement\n%s", n, stderr.Bytes())
	}
}

// The child has ended its server when the program returns.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	redistest.Start(t) // skips without a server
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var stdout, stderr bytes.Buffer
	if code := peers.Run(ctx, []string{"-systems", "dueq", "idle"}, &stdout, &stderr); code != 130 {
		t.Errorf("exit code %d\n%s", code, stderr.Bytes())
	}
}

// Without any server the program says so.
func TestNoServer(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, peers.ChildFlag, `{"System":"dueq","Scenario":"idle"}`)
	cmd.Env = []string{"PATH="}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "redis-server") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"-h", 0, "asynq-fast"},
		{"-n -1", 2, "-1"},
		{"-rounds 0", 2, "0"},
		{"-systems dueq,nonsense", 2, "nonsense"},
		{"publish nonsense", 2, "nonsense"},
		{"-nonsense", 2, "nonsense"},
	} {
		var stdout, stderr bytes.Buffer
		code := peers.Run(t.Context(), strings.Fields(c.args), &stdout, &stderr)
		if code != c.code || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%s: exit code %d\n%s", c.args, code, stderr.Bytes())
		}
	}
}
