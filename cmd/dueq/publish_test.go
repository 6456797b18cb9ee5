package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// target is a namespace on a server, with a queue to look at what came of a verb.
func target(t *testing.T, env *redistest.Env) (*dueq.Queue, []string) {
	t.Helper()
	q, err := dueq.New(env.Client, dueq.Options{Namespace: env.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	return q, []string{"--redis", "redis://" + env.Addr, "--namespace", env.Namespace}
}

func TestPublish(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q, flags := target(t, env)
		publish := func(stdin string, args ...string) (int, string, string) {
			return runWith(t.Context(), stdin, append(append([]string{"publish"}, args...), flags...)...)
		}
		code, stdout, stderr := publish("", "a", `{"n":1}`, "--in", "1h", "--id", "one", "--max-attempts", "3", "--metadata", "a=b,c=d")
		if code != 0 || stdout != "one\n" || stderr != "" {
			t.Fatalf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
		info, err := q.Get(t.Context(), "a", "one")
		if err != nil || string(info.Body) != `{"n":1}` || info.MaxAttempts != 3 || info.Metadata["c"] != "d" || info.State != dueq.StateScheduled {
			t.Errorf("%+v, %v", info, err)
		}
		code, stdout, stderr = publish("from stdin\x00", "a", "--at", "2100-01-02T03:04:05.5Z", "-o", "json")
		var got struct {
			ID, Topic  string
			EffectTime time.Time `json:"effect_time"`
		}
		if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil {
			t.Fatalf("exit code %d, %v, stdout %q, stderr %q", code, err, stdout, stderr)
		}
		info, err = q.Get(t.Context(), "a", got.ID)
		if err != nil || string(info.Body) != "from stdin\x00" || !info.Due.Equal(got.EffectTime) || got.Topic != "a" {
			t.Errorf("%+v, %v", info, err)
		}
		code, stdout, _ = publish("", "a", "x", "--in", "90m", "-o", "json") // told is the time that is stored
		if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil {
			t.Fatalf("exit code %d, %v, stdout %q", code, err, stdout)
		}
		if info, err = q.Get(t.Context(), "a", got.ID); err != nil || !info.Due.Equal(got.EffectTime) {
			t.Errorf("told %v, stored %+v, %v", got.EffectTime, info, err)
		}
		code, _, stderr = publish("", "a", "again", "--id", "one")
		if code != 1 || stderr != "dueq: topic \"a\", id \"one\": an event with this id exists\n" {
			t.Errorf("a duplicate: exit code %d, stderr %q", code, stderr)
		}
		if code, _, stderr = publish("", "a{", "x"); code != 2 || !strings.Contains(stderr, "a{") {
			t.Errorf("a bad topic: exit code %d, stderr %q", code, stderr)
		}
		if code, _, stderr = publish("", "a", "--file", "/no/such/file"); code != 2 || !strings.Contains(stderr, "/no/such/file") {
			t.Errorf("no file: exit code %d, stderr %q", code, stderr)
		}
		if code, _, stderr = publish("", "a", "again", "--id", "one", "--on-duplicate", "replace", "--in", "2h"); code != 0 {
			t.Errorf("exit code %d, stderr %q", code, stderr)
		}
		if info, err = q.Get(t.Context(), "a", "one"); err != nil || string(info.Body) != "again" {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

func TestPublishFile(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q, flags := target(t, env)
		var lines strings.Builder
		for i := range 1200 {
			_ = json.NewEncoder(&lines).Encode(map[string]any{"body": i, "in": "1h"})
		}
		lines.WriteString(`{"id":"x","at":"2100-01-01T00:00:00Z"}` + "\n\n" + `{"id":"x","at":"2100-01-01T00:00:00Z"}`)
		name := filepath.Join(t.TempDir(), "events")
		if err := os.WriteFile(name, []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := run(t.Context(), nil, append([]string{"publish", "a", "--file", name, "-o", "json"}, flags...)...)
		var got struct {
			Published, Failed int
			Failures          []struct {
				Line  int
				Error string
			}
		}
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 1 || got.Published != 1201 || got.Failed != 1 ||
			len(got.Failures) != 1 || got.Failures[0].Line != 1203 || !strings.Contains(stderr, "1 line not published") {
			t.Errorf("exit code %d, %v, stdout %q, stderr %q", code, err, stdout, stderr)
		}
		if s, err := q.Stats(t.Context(), "a"); err != nil || s.Scheduled != 1201 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// A bad line leaves nothing of a file published, and of a pipe what came before it.
func TestPublishBadLines(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q, flags := target(t, env)
		const lines = "{\"in\":\"1h\"}\n{\"in\":\"soon\"}\n"
		name := filepath.Join(t.TempDir(), "events")
		if err := os.WriteFile(name, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			file string
			left int
		}{{name, 0}, {"-", 1}} {
			code, stdout, stderr := runWith(t.Context(), lines, append([]string{"publish", "a", "--file", c.file}, flags...)...)
			if code != 1 || !strings.Contains(stderr, `line 2: in is "soon"`) {
				t.Errorf("%s: exit code %d, stdout %q, stderr %q", c.file, code, stdout, stderr)
			}
			if s, err := q.Stats(t.Context(), "a"); err != nil || s.Scheduled != c.left {
				t.Errorf("%s: %+v, %v", c.file, s, err)
			}
		}
	})
}

func TestPublishUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                              "not as dueq publish TOPIC [BODY]",
		"a b c":                         "not as dueq publish TOPIC [BODY]",
		"a b --in soon":                 `dueq: --in is "soon"`,
		"a b --at noon":                 `dueq: --at is "noon"`,
		"a b --in 1s --at x":            "--in and --at exclude each other",
		"a b --on-duplicate keep":       "--on-duplicate without an id",
		"a b --id= ":                    "--id is empty",
		"a b --id x --on-duplicate why": "not reject, keep or replace",
		"a b --max-attempts 0":          "--max-attempts is 0",
		"a b --file x":                  "exclude each other",
		"a --file x --in 1s":            "--file and --in exclude each other",
		"a b -o xml":                    "--output",
		"a b":                           "no Redis is named",
	} {
		code, stdout, stderr := run(t.Context(), nil, append([]string{"publish"}, strings.Fields(args)...)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("dueq publish %s: exit code %d, stdout %q, stderr %q, want %q", args, code, stdout, stderr, want)
		}
	}
}
