package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	command "github.com/dueq-io/dueq/cmd/dueq"
	"github.com/dueq-io/dueq/dueqhttp"
	"github.com/dueq-io/dueq/internal/redistest"
)

// due publishes an event that is due, or makes the test fail.
func due(t *testing.T, q *dueq.Queue, topic, body string, opts ...dueq.PublishOption) (id string) {
	t.Helper()
	id, err := q.PublishEvent(t.Context(), topic, []byte(body), time.Now(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// untouched fails the test unless the event is due, all its attempts before it.
func untouched(t *testing.T, info *dueq.EventInfo, err error) {
	t.Helper()
	if err != nil || info.Attempts != 0 || info.State != dueq.StateReady && info.State != dueq.StateScheduled {
		t.Errorf("left as %+v, %v", info, err)
	}
}

// unwarned is stderr without what is said about the tests' Redis.
func unwarned(stderr string) string {
	return strings.ReplaceAll(stderr, "WARN this Redis persists nothing: a restart loses all events; set appendonly yes\n", "")
}

func TestSubscribePrints(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q, flags := target(t, env)
		wants := map[string]string{
			due(t, q, "a", `{"n": 1, "html": "<&>"}`, dueq.WithMetadata(map[string]string{"k": "v"})): `"metadata":{"k":"v"},"body":{"n":1,"html":"<&>"}}`,
			due(t, q, "a", "text\n"):                       `"text":"text\n"}`,
			due(t, q, "b", "\xff\x00"):                     `"base64":"/wA="}`,
			due(t, q, "b", "", dueq.WithMaxAttempts(3)):    `"attempt":1,"max_attempts":3}`,
			due(t, q, "b", "x", dueq.WithID("an <id> \"")): `{"id":"an <id> \"","topic":"b","effect_time":"20`,
		}
		code, stdout, stderr := run(t.Context(), nil, append([]string{"subscribe", "a", "b", "--count", "5"}, flags...)...)
		if code != 0 || unwarned(stderr) != "" {
			t.Errorf("exit code %d, stderr %q", code, stderr)
		}
		for line := range strings.Lines(stdout) {
			var e struct {
				ID         string
				EffectTime time.Time `json:"effect_time"`
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Errorf("%v in %q", err, line)
			}
			if want := wants[e.ID]; want == "" || !strings.Contains(line, want) || time.Since(e.EffectTime).Abs() > time.Hour {
				t.Errorf("line %q, want %q in it", line, want)
			}
			delete(wants, e.ID)
		}
		if len(wants) > 0 {
			t.Errorf("not printed: %v", wants)
		}
		for _, topic := range []string{"a", "b"} {
			if s, err := q.Stats(t.Context(), topic); err != nil || s.Ready+s.Leased+s.Scheduled+s.Dead != 0 {
				t.Errorf("%+v, %v", s, err)
			}
		}
	})
}

// A table shows the beginning of a long body, and no half of a character.
func TestSubscribeTableOfLongBodies(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q, flags := target(t, env)
		due(t, q, "a", "x"+strings.Repeat("é", 200))
		code, stdout, _ := run(t.Context(), nil, append([]string{"subscribe", "a", "--count", "1", "-o", "table"}, flags...)...)
		if code != 0 || !strings.HasSuffix(stdout, "  1/10  x"+strings.Repeat("é", 99)+"…\n") {
			t.Errorf("exit code %d, stdout %q", code, stdout)
		}
	})
}

// No more events are used up than were asked for.
func TestSubscribeCount(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q, flags := target(t, env)
		const n, count = 20, 7
		ids := make(map[string]bool)
		for range n {
			ids[due(t, q, "a", "body\x1b")] = true
		}
		code, stdout, stderr := run(t.Context(), nil, append([]string{"subscribe", "a", "--count", strconv.Itoa(count), "--concurrency", "4", "-o", "table"}, flags...)...)
		if code != 0 || unwarned(stderr) != "" || strings.Count(stdout, "\n") != count || strings.Count(stdout, `  1/10  "body\x1b"`) != count {
			t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
		left := 0
		for id := range ids {
			info, err := q.Get(t.Context(), "a", id)
			switch {
			case errors.Is(err, dueq.ErrNotFound):
			default:
				untouched(t, info, err)
				left++
			}
		}
		if left != n-count {
			t.Errorf("%d events are left, want %d", left, n-count)
		}
	})
}

// The exit code of a command is the verdict; its facts come in the environment.
func TestSubscribeExec(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q, flags := target(t, env)
		id := due(t, q, "a", "the body", dueq.WithMetadata(map[string]string{"k": "v"}), dueq.WithMaxAttempts(4))
		subscribe := func(cmd string, more ...string) (stdout, stderr string) {
			t.Helper()
			code, stdout, stderr := run(t.Context(), nil, append(append([]string{"subscribe", "a", "--count", "1", "--exec", cmd}, more...), flags...)...)
			if code != 0 {
				t.Errorf("exit code %d, stderr %q", code, stderr)
			}
			return stdout, stderr
		}
		stdout, stderr := subscribe(`echo first >&2; for i in 1 2 3 4 5; do echo "line $i" >&2; done; exit 3`)
		info, err := q.Get(t.Context(), "a", id)
		const want = "the command ended with exit status 3: line 1\nline 2\nline 3\nline 4\nline 5"
		if err != nil || info.State != dueq.StateScheduled || info.Attempts != 1 || info.LastError != want {
			t.Errorf("%+v, %v", info, err)
		}
		if stdout != "" || !strings.Contains(stderr, "first\nline 1\n") || !strings.Contains(stderr, "a delivery failed") {
			t.Errorf("stdout %q, stderr %q", stdout, stderr)
		}
		again := func() {
			t.Helper()
			if err := q.Reschedule(t.Context(), "a", id, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		again()
		subscribe("kill -KILL $$")
		if info, err = q.Get(t.Context(), "a", id); err != nil || info.Attempts != 2 || info.LastError != "the command ended with signal: killed" {
			t.Errorf("%+v, %v", info, err)
		}
		again()
		stdout, _ = subscribe(`cat; echo " $DUEQ_TOPIC $DUEQ_ATTEMPT $DUEQ_MAX_ATTEMPTS $DUEQ_METADATA"; echo "$DUEQ_ID $DUEQ_EFFECT_TIME"; exit 65`)
		if info, err = q.Get(t.Context(), "a", id); err != nil || info.State != dueq.StateDead || info.LastError != "no more attempts: the command ended with exit status 65" {
			t.Errorf("%+v, %v", info, err)
		}
		if want := "the body a 3 4 {\"k\":\"v\"}\n" + id + " " + info.EffectTime.UTC().Format("2006-01-02T15:04:05.000Z") + "\n"; stdout != want {
			t.Errorf("stdout %q, want %q", stdout, want)
		}
		due(t, q, "a", strings.Repeat("more than a pipe holds", 10_000))
		subscribe("sleep 60 >&2 &") // it neither reads its stdin, nor do all end that have its stderr
		if s, err := q.Stats(t.Context(), "a"); err != nil || s.Acked != 1 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// When its time is up a command ends with all that it has started.
func TestSubscribeExecTimeout(t *testing.T) {
	t.Parallel()
	env := redistest.Mini(t)
	q, flags := target(t, env)
	pids := filepath.Join(t.TempDir(), "pids")
	id := due(t, q, "a", "x")
	cmd := "trap '' TERM; echo before >&2; sleep 300 & echo $! >>" + pids + "; echo $$ >>" + pids + "; wait; wait"
	code, _, stderr := run(t.Context(), nil, append([]string{"subscribe", "a", "--count", "1", "--exec", cmd, "--timeout", "3s"}, flags...)...)
	if code != 0 {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	info, err := q.Get(t.Context(), "a", id)
	if want := "handler timed out after 3s: the command was stopped: handler timed out: before"; err != nil || info.LastError != want {
		t.Errorf("%+v, %v; want %s", info, err, want)
	}
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, "the process is gone", func() bool { return gone(pid) })
	}
}

// gone reports whether a process has ended, be it not yet buried.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestSubscribeForward(t *testing.T) {
	const secret = "a secret of some length"
	t.Setenv("DUEQ_PUSH_SECRET", secret)
	env := redistest.Mini(t)
	q, flags := target(t, env)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err = errors.Join(err, dueqhttp.Verify(secret, r.Header, body, time.Minute)); err != nil {
			t.Error(err)
		}
		if string(body) == "bad" {
			http.Error(w, "no", http.StatusBadRequest)
		}
	}))
	defer receiver.Close()
	good, bad := due(t, q, "a", "good"), due(t, q, "a", "bad")
	code, stdout, stderr := run(t.Context(), nil, append([]string{"subscribe", "a", "--count", "2", "--forward", receiver.URL, "--timeout", "10s"}, flags...)...)
	if code != 0 || stdout != "" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if _, err := q.Get(t.Context(), "a", good); !errors.Is(err, dueq.ErrNotFound) {
		t.Errorf("the good one: %v", err)
	}
	info, err := q.Get(t.Context(), "a", bad)
	if err != nil || info.State != dueq.StateDead || !strings.HasSuffix(info.LastError, `: status 400: "no"`) {
		t.Errorf("the bad one: %+v, %v", info, err)
	}
}

// An event that could not be printed is not lost, and keeps its attempts.
func TestSubscribeBrokenPipe(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q, flags := target(t, env)
		ids := []string{due(t, q, "a", "x"), due(t, q, "a", "y")}
		for _, more := range [][]string{nil, {"--count", "1"}} {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Close()
			var stderr bytes.Buffer
			code := command.Run(t.Context(), append(append([]string{"subscribe", "a"}, more...), flags...), strings.NewReader(""), w, &stderr)
			_ = w.Close()
			if code != 1 || !strings.Contains(stderr.String(), "broken pipe") {
				t.Errorf("exit code %d, stderr %q", code, &stderr)
			}
			for _, id := range ids {
				info, err := q.Get(t.Context(), "a", id)
				untouched(t, info, err)
			}
		}
	})
}

// A signal lets what runs finish; it is the end that is expected, unless --count
// says otherwise.
func TestSubscribeSignal(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		for count, want := range map[string]int{"": 0, "1": 0, "2": 130} {
			q, flags := target(t, env)
			dir := t.TempDir()
			began, end := filepath.Join(dir, "began"), filepath.Join(dir, "end")
			args := []string{"subscribe", "a", "--exec", "echo >" + began + "; until [ -e " + end + " ]; do sleep 0.01; done"}
			if count != "" {
				args = append(args, "--count", count)
			}
			ctx, signal := context.WithCancel(t.Context())
			id := due(t, q, "a", "x")
			code := make(chan int, 1)
			go func() {
				c, _, _ := run(ctx, nil, append(args, flags...)...)
				code <- c
			}()
			redistest.Eventually(t, "the command runs", func() bool { _, err := os.Stat(began); return err == nil })
			signal()
			if err := os.WriteFile(end, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := <-code; got != want {
				t.Errorf("--count %q: exit code %d, want %d", count, got, want)
			}
			if _, err := q.Get(t.Context(), "a", id); !errors.Is(err, dueq.ErrNotFound) {
				t.Errorf("what ran has not been acked: %v", err)
			}
		}
	})
}

func TestSubscribeUsage(t *testing.T) {
	t.Parallel()
	env := redistest.Mini(t)
	q, flags := target(t, env)
	id := due(t, q, "a", "x")
	for args, want := range map[string]string{
		"":                                   "not as dueq subscribe TOPIC...",
		"a --exec true --forward x":          "--exec and --forward exclude each other",
		"a --exec=":                          "--exec is empty",
		"a --exec true -o json":              "--output is for printing",
		"a -o xml":                           `"xml" for "-o, --output"`,
		"a --forward=":                       "forward URL: scheme",
		"a --forward ftp://h":                `scheme "ftp" is not http or https`,
		"a --forward http://h --timeout 25h": "option Timeout is 25h0m0s",
		"a --concurrency 0":                  "--concurrency is 0, not at least 1",
		"a --concurrency 100001":             "option Concurrency is 100001",
		"a --max-attempts 0":                 "--max-attempts is 0, not at least 1",
		"a --timeout 0s":                     "--timeout is 0s, not at least 1ms",
		"a --count 0":                        "--count is 0, not at least 1",
		"a --count x":                        "--count",
		"a a{":                               `"a{"`,
		"a a":                                "subscribed to already",
	} {
		code, stdout, stderr := run(t.Context(), nil, append(append([]string{"subscribe"}, strings.Fields(args)...), flags...)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 2 {
			t.Errorf("dueq subscribe %s: exit code %d, stdout %q, stderr %q, want %q", args, code, stdout, stderr, want)
		}
	}
	info, err := q.Get(t.Context(), "a", id)
	untouched(t, info, err)
	if code, _, stderr := run(t.Context(), nil, "subscribe", "a"); code != 2 || !strings.Contains(stderr, "no Redis is named") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}
