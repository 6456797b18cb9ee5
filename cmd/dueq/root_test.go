package main_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	command "github.com/dueq-io/dueq/cmd/dueq"
)

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"nonsense":                      `unknown command "nonsense"`,
		"--nonsense":                    "unknown flag: --nonsense",
		"demo nonsense":                 "called with 1 argument, not as dueq demo [flags]",
		"completion":                    "name a shell",
		"completion tcsh":               "name a shell",
		"demo --nonsense":               "unknown flag: --nonsense",
		"demo --events":                 "--events",
		"demo --events x":               "--events",
		"demo --events 0":               "--events is 0, not from 1 to 1000000",
		"demo --events 1000001":         "--events is 1000001",
		"demo --spread 5":               "--spread",
		"demo --spread -1s":             "--spread is -1s, not from 0s to 1h",
		"demo --spread 61m":             "--spread is 1h1m0s",
		"demo --patience 0s":            "--patience is 0s",
		"demo --redis http://h":         "--redis: a Redis URL begins with",
		"demo --redis redis://h:1/x":    "--redis: redis: invalid database number",
		"demo -o json --redis nonsense": "--redis: a Redis URL begins with",
	} {
		code, stdout, stderr := run(t.Context(), nil, strings.Fields(args)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) || !strings.Contains(stderr, "--help' for usage") {
			t.Errorf("dueq %s: exit code %d, stdout %q, stderr %q, want 2 and %q", args, code, stdout, stderr, want)
		}
	}
}

func TestBadEnvironment(t *testing.T) {
	t.Setenv("DUEQ_REDIS", "redis://ann:sec/ret@h")
	code, stdout, stderr := run(t.Context(), nil, "demo")
	if code != 2 || stdout != "" || !strings.Contains(stderr, "DUEQ_REDIS: ") || strings.Contains(stderr, "ret") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	// The help names the variable, not its value.
	code, stdout, _ = run(t.Context(), nil, "demo", "--help")
	if code != 0 || strings.Contains(stdout, "sec/ret") || !strings.Contains(stdout, "$DUEQ_REDIS") {
		t.Errorf("exit code %d, help:\n%s", code, stdout)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for args, wants := range map[string][]string{
		"":            {"demo", "Exit codes"},
		"--help":      {"demo", "Exit codes"},
		"demo --help": {"dueq demo --redis redis://localhost:6379", "keeps nothing", "Ctrl-C", "--events", "--spread", "--output"},
	} {
		code, stdout, stderr := run(t.Context(), nil, strings.Fields(args)...)
		if code != 0 || stderr != "" {
			t.Errorf("dueq %s: exit code %d, stderr %q", args, code, stderr)
		}
		for _, want := range wants {
			if !strings.Contains(stdout, want) {
				t.Errorf("dueq %s lacks %q:\n%s", args, want, stdout)
			}
		}
	}
}

// redisError is what a Redis answers.
type redisError string

func (e redisError) Error() string { return string(e) }

func (e redisError) RedisError() {}

func TestErrorsForPeople(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"broken":                      errors.New("broken"),
		`cancel id "dueq: x": broken`: errors.New(`dueq: bucket: cancel id "dueq: x": broken`),
		"--forward: broken\nbroken":   errors.Join(errors.New("--forward: dueqhttp: broken"), errors.New("dueq: broken")),
		"list topics: MOVED 1 h:1: this Redis is a Cluster, name it with redis-cluster://": fmt.Errorf("dueq: list topics: %w", redisError("MOVED 1 h:1")),
	} {
		if got := command.Tell(err); got != want {
			t.Errorf("%q is told as %q, want %q", err, got, want)
		}
	}
}
