package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	command "github.com/dueq-io/dueq/cmd/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// report is the JSON object that demo -o json prints.
type report struct {
	Events, Published, Delivered, Persisted, Retried, Repeated, Early, Open int

	Interrupted bool
	Redis       string
	Lateness    struct{ P50, P99, Max float64 } `json:"lateness_ms"`
	Histogram   []struct{ Count int }
}

// run runs the command. onProgress, if not nil, is called with all that demo says
// besides its summary, as it says it.
func run(ctx context.Context, onProgress func(string), args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	var talk io.Writer = &errs
	if onProgress != nil {
		talk = io.MultiWriter(&errs, hook(onProgress))
	}
	code = command.Run(ctx, args, strings.NewReader(""), &out, talk)
	return code, out.String(), errs.String()
}

// runWith runs the command with something on stdin.
func runWith(ctx context.Context, stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = command.Run(ctx, args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

type hook func(string)

func (h hook) Write(text []byte) (int, error) {
	h(string(text))
	return len(text), nil
}

// demo runs the demo with -o json on the Redis at url; "" is the embedded one.
func demo(t *testing.T, wantCode int, url string, onProgress func(string), args ...string) (got report, stderr string) {
	t.Helper()
	code, stdout, stderr := run(t.Context(), onProgress, append([]string{"demo", "-o", "json", "--redis", url}, args...)...)
	if code != wantCode {
		t.Fatalf("exit code %d, want %d; stderr:\n%s", code, wantCode, stderr)
	}
	lines := json.NewDecoder(strings.NewReader(stdout))
	if err := lines.Decode(&got); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	if lines.More() {
		t.Errorf("stdout has more than one JSON object: %q", stdout)
	}
	return got, stderr
}

// check checks the report of a demo of 200 events that ran to its end.
func check(t *testing.T, got report) {
	t.Helper()
	if got.Events != 200 || got.Published != 200 || got.Delivered != 198 || got.Persisted != 2 ||
		got.Retried != 24 || got.Open != 0 || got.Early != 0 || got.Interrupted {
		t.Errorf("got %+v, want 198 delivered and 2 persisted of 200, 24 retried, none early", got)
	}
	rows := 0
	for _, r := range got.Histogram {
		rows += r.Count
	}
	if rows != 200 {
		t.Errorf("the histogram counts %d first deliveries, want 200", rows)
	}
	if l := got.Lateness; l.P50 < 0 || l.P50 > l.P99 || l.P99 > l.Max {
		t.Errorf("lateness %+v is not in order", l)
	}
}

// ownKey puts a key beside those of the demo, and returns a check that it alone is there.
func ownKey(t *testing.T, rdb *redis.Client) (checkKeys func()) {
	t.Helper()
	if err := rdb.Set(t.Context(), "own", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		keys, err := rdb.Keys(t.Context(), "*").Result()
		if err != nil || !slices.Equal(keys, []string{"own"}) {
			t.Errorf("keys after the demo: %q, %v, want only our own", keys, err)
		}
	}
}

func TestDemoEmbedded(t *testing.T) {
	t.Parallel()
	got, stderr := demo(t, 0, "", nil, "--events", "200", "--spread", "300ms")
	check(t, got)
	if got.Redis != "embedded miniredis" || !strings.Contains(stderr, "It keeps nothing") {
		t.Errorf("Redis is %q, and stderr does not say that it keeps nothing:\n%s", got.Redis, stderr)
	}
}

func TestDemoOnServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	checkKeys := ownKey(t, s.Client())
	got, stderr := demo(t, 0, "redis://"+s.Addr(), nil, "--events", "200", "--spread", "300ms")
	check(t, got)
	checkKeys()
	if got.Redis != "redis://"+s.Addr() || strings.Contains(stderr, "It keeps nothing") {
		t.Errorf("Redis is %q, and stderr says:\n%s", got.Redis, stderr)
	}
}

func TestDemoOnCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2)
	got, _ := demo(t, 0, "redis-cluster://"+c.Addrs()[0], nil, "--events", "200", "--spread", "300ms")
	check(t, got)
	err := c.Client().ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		keys, err := node.Keys(ctx, "*").Result()
		if len(keys) > 0 {
			t.Errorf("keys after the demo: %q", keys)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestDemoFromEnvironment(t *testing.T) {
	s := redistest.Start(t)
	t.Setenv("DUEQ_REDIS", "redis://"+s.Addr())
	code, stdout, stderr := run(t.Context(), nil, "demo", "--events", "20", "--spread", "0s")
	if code != 0 {
		t.Fatalf("exit code %d; stderr:\n%s", code, stderr)
	}
	for _, want := range []string{s.Addr(), "20 events published, 20 done", "delivered        20  events", "early             0  deliveries", "p99"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("stdout lacks %q:\n%s", want, stdout)
		}
	}
}

func TestDemoWithPassword(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client()
	if err := rdb.Do(t.Context(), "ACL", "SETUSER", "ann", "on", ">p/w@1", "~*", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Do(t.Context(), "ACL", "SETUSER", "default", "off").Err(); err != nil {
		t.Fatal(err)
	}
	u := url.URL{Scheme: "redis", User: url.UserPassword("ann", "p/w@1"), Host: s.Addr()}
	got, stderr := demo(t, 0, u.String(), nil, "--events", "200", "--spread", "0s")
	check(t, got)
	if got.Redis != "redis://"+s.Addr() || strings.Contains(stderr, "ann") {
		t.Errorf("Redis is %q, stderr:\n%s", got.Redis, stderr)
	}
	u.User = url.UserPassword("ann", "wrong")
	code, stdout, stderr := run(t.Context(), nil, "demo", "--redis", u.String())
	if code != 1 || stdout != "" || !strings.Contains(stderr, "WRONGPASS") || strings.Contains(stderr, "ann:") {
		t.Errorf("with a wrong password: exit code %d, stdout %q, stderr:\n%s", code, stdout, stderr)
	}
}

func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	checkKeys := ownKey(t, s.Client())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code, stdout, stderr := run(ctx, func(text string) {
		if strings.Contains(text, "of 200 done") {
			cancel()
		}
	}, "demo", "-o", "json", "--redis", "redis://"+s.Addr(), "--events", "200", "--spread", "1h")
	var got report
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	if code != 130 || !got.Interrupted || got.Published != 200 || got.Early != 0 ||
		got.Open == 0 || got.Delivered+got.Persisted+got.Open != got.Published {
		t.Errorf("exit code %d, %+v, want 130 and counts that add up; stderr:\n%s", code, got, stderr)
	}
	checkKeys()
}

func TestDemoInterruptedAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, stderr := run(ctx, nil, "demo", "--redis", ""); code != 130 {
		t.Errorf("exit code %d, want 130; stderr:\n%s", code, stderr)
	}
}

func TestDemoServerDies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	got, stderr := demo(t, 1, "redis://"+s.Addr(), func(text string) {
		if strings.Contains(text, "of 200 done") {
			s.Kill()
		}
	}, "--events", "200", "--spread", "5s", "--patience", "1ms")
	if got.Early != 0 || got.Interrupted || got.Delivered+got.Persisted+got.Open != got.Published {
		t.Errorf("got %+v, want counts that add up", got)
	}
	for _, want := range []string{"nothing has happened for 1ms", "remove the keys of namespace demo-"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("stderr lacks %q:\n%s", want, stderr)
		}
	}
}
