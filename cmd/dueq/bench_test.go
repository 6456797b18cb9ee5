package main_test

import (
	"strings"
	"testing"

	"github.com/dueq-io/dueq/internal/redistest"
)

func TestBench(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	code, stdout, stderr := run(t.Context(), nil, "bench", "--redis", "redis://"+s.Addr(), "-short", "-n", "200", "memory")
	if code != 0 || !strings.HasPrefix(stdout, "scenario ") {
		t.Errorf("exit code %d, stderr %q, stdout:\n%s", code, stderr, stdout)
	}
	code, stdout, stderr = run(t.Context(), nil, "bench", "--redis", s.Addr(), "-short", "-n", "200", "-o", "json", "memory")
	if code != 0 || !strings.HasPrefix(stdout, "{") {
		t.Errorf("exit code %d, stderr %q, stdout:\n%s", code, stderr, stdout)
	}
}

// Its exit codes are the command's.
func TestBenchUsage(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := run(t.Context(), nil, "bench", "nonsense")
	if code != 2 || stdout != "" || stderr != "dueq bench: no scenario \"nonsense\" (-h shows how to call it)\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	code, stdout, stderr = run(t.Context(), nil, "bench", "-o", "xml")
	if code != 2 || stdout != "" || !strings.Contains(stderr, "not table or json") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	code, stdout, stderr = run(t.Context(), nil, "bench", "--help")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "Usage: dueq bench") || !strings.Contains(stdout, "growth") {
		t.Errorf("exit code %d, stderr %q, help:\n%s", code, stderr, stdout)
	}
}
