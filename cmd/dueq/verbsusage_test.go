package main_test

import (
	"strings"
	"testing"

	"github.com/dueq-io/dueq/internal/redistest"
)

func TestVerbsUsage(t *testing.T) {
	t.Setenv("DUEQ_REDIS", "")
	for args, want := range map[string]string{
		"topics x":                          "called with 1 argument, not as dueq",
		"topics -o xml":                     `"xml" for "-o, --output"`,
		"stats --interval 1s":               "--interval is for --watch",
		"stats -w --interval 99ms":          "--interval is 99ms, not from 100ms to 1h0m0s",
		"ls":                                "called with 0 arguments, not as dueq ls TOPIC",
		"ls a --limit 0":                    "--limit is 0, not from 1 to 500",
		"ls a --limit 3 --all":              "exclude each other",
		"ls a --preview -1":                 "--preview is -1",
		"ls a --since yesterday":            `--since is "yesterday", neither a time`,
		"ls a --redis redis://h -o x":       `"x" for "-o, --output"`,
		"ls a --until 0001-01-01T00:00:00Z": "--until is",
		"get a":                             "not as dueq get TOPIC ID",
		"cancel a":                          "not as dueq cancel TOPIC ID ...",
		"reschedule a b":                    "say when: --in, --at or --now",
		"reschedule a b --in x":             `--in is "x", not a duration`,
		"reschedule a b --in 1h --at x":     "--in and --at exclude each other",
		"reschedule a b --now --in 1h":      "--now excludes --in and --at",
		"requeue a":                         "name ids, or use --all, or filter",
		"requeue a b --all":                 "name ids, or use --all, or filter",
		"requeue a --all --error x":         "name ids, or use --all, or filter",
		"purge a --state leased --yes":      `--state is "leased", not scheduled, ready or dead`,
		"purge a --state= --yes":            "--state names no state",
		"pause":                             "not as dueq pause TOPIC ...",
		"resume a -o x":                     `"x" for "-o, --output"`,
		"sessions a":                        "called with 1 argument, not as dueq",
		"sessions":                          "no Redis is named",
	} {
		code, stdout, stderr := run(t.Context(), nil, strings.Fields(args)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) || !strings.Contains(stderr, "--help' for usage") {
			t.Errorf("dueq %s: exit code %d, stdout %q, stderr %q, want 2 and %q", args, code, stdout, stderr, want)
		}
	}
	url := "redis://" + redistest.Mini(t).Addr
	for args, want := range map[string]string{
		"ls a --state alive":            `state "alive" is none of`,
		"ls a --cursor x":               "cursor",
		"ls a --state ready --since 1h": "no time to filter by",
	} {
		v := append(strings.Fields(args), "--redis", url)
		if code, _, stderr := run(t.Context(), nil, "pause", "a", "--redis", url); code != 0 {
			t.Fatal(stderr)
		}
		if code, stdout, stderr := run(t.Context(), nil, v...); code != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("dueq %s: exit code %d, stdout %q, stderr %q, want 2 and %q", args, code, stdout, stderr, want)
		}
	}
}

// Every verb's help has examples, and says what Redis URLs look like.
func TestVerbsHelp(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"topics", "stats", "ls", "get", "cancel", "reschedule", "requeue", "purge", "pause", "resume", "sessions"} {
		code, stdout, _ := run(t.Context(), nil, verb, "--help")
		for _, want := range []string{"Examples:\n  dueq ", "redis-sentinel://", "--output"} {
			if code != 0 || !strings.Contains(stdout, want) {
				t.Errorf("dueq %s --help: exit code %d, lacks %q:\n%s", verb, code, want, stdout)
			}
		}
		for line := range strings.Lines(stdout) {
			if len(line) > 140 {
				t.Errorf("dueq %s --help: a line of %d bytes: %s", verb, len(line), line)
			}
		}
	}
}
