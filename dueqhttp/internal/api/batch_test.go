package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq/internal/redistest"
)

// line is a line of the answer to a batch.
type line struct {
	Line   int
	ID     string
	Error  *refusal
	Done   *bool
	Stored int
	Failed int
}

// batch publishes an NDJSON body, and returns the lines of the answer and the last one.
func (s *service) batch(path, body string) (lines []line, end line) {
	s.t.Helper()
	got := s.want(200, nil, "POST", path, body, "Content-Type", "application/x-ndjson")
	for text := range strings.Lines(got.body) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			s.t.Fatalf("%v in %q", err, text)
		}
		lines = append(lines, l)
	}
	last := len(lines) - 1
	if last < 0 || lines[last].Done == nil {
		s.t.Fatalf("the answer has no end: %s", got.body)
	}
	return lines[:last], lines[last]
}

func TestBatch(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		s := newService(t, env)
		var body strings.Builder
		for i := range 1300 {
			fmt.Fprintf(&body, "{\"id\": \"e%d\", \"body\": %d, \"in\": \"1h\"}\r\n", i, i)
		}
		lines, end := s.batch("/v1/topics/t/batch", body.String())
		if len(lines) != 1300 || !*end.Done || end.Stored != 1300 || end.Failed != 0 {
			t.Fatalf("%d lines, %+v", len(lines), end)
		}
		for i, l := range lines {
			if l.Line != i+1 || l.ID != fmt.Sprintf("e%d", i) || l.Error != nil {
				t.Errorf("line %d: %+v", i+1, l)
			}
		}
		if got := s.stats(); got.Scheduled != 1300 {
			t.Errorf("stats %+v", got)
		}
		lines, end = s.batch("/v1/topics/t/batch?results=failed", `{"id":"e7"}`+"\n\n"+`{"id":"new"}`)
		if len(lines) != 1 || lines[0].Line != 1 || !strings.HasSuffix(lines[0].Error.Type, "#duplicate-id") || end.Stored != 1 || end.Failed != 1 {
			t.Errorf("%+v, %+v", lines, end)
		}
	})
}

func TestBatchBadLines(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	long := `{"text": "` + strings.Repeat("x", 200_000) + `"}`
	in := []struct{ text, problem string }{
		{`{"id": "a"}`, ""},
		{`nonsense`, "bad-request"},
		{``, "none"},
		{`{"idd": "b"}`, "bad-request"},
		{`{"id": "c{"}`, "invalid"},
		{`{"id": "d", "in": "soon"}`, "invalid"},
		{long, "too-large"},
		{`{"text": "` + strings.Repeat("x", maxBody+1) + `"}`, "too-large"},
		{`{"id": "a"}`, "duplicate-id"},
		{`{"id": "a", "on_duplicate": "keep"}`, ""},
		{`{"metadata": {"m": "` + strings.Repeat("x", 17_000) + `"}}`, "invalid"},
		{`[{"id": "e"}]`, "bad-request"},
		{"{\"text\": \"\xff\"}", "bad-request"},
		{`{"id": "z"}`, ""},
	}
	var texts []string
	for _, l := range in {
		texts = append(texts, l.text)
	}
	lines, end := s.batch("/v1/topics/t/batch", strings.Join(texts, "\n"))
	i := 0
	for n, want := range in {
		if want.problem == "none" {
			continue
		}
		got := lines[i]
		i++
		if got.Line != n+1 || (got.Error == nil) != (want.problem == "") || got.Error != nil && !strings.HasSuffix(got.Error.Type, "#"+want.problem) {
			t.Errorf("line %d, %.60s: %+v %+v, want %q", n+1, want.text, got, got.Error, want.problem)
		}
	}
	if i != len(lines) || !*end.Done || end.Stored != 3 || end.Failed != 10 {
		t.Errorf("%d answers of %d, %+v", i, len(lines), end)
	}
	if got := s.stats(); got.Scheduled+got.Ready != 2 {
		t.Errorf("stats %+v, want 2 events", got)
	}
	lines, end = s.batch("/v1/topics/t/batch", "")
	if len(lines) != 0 || !*end.Done {
		t.Errorf("an empty body: %+v, %+v", lines, end)
	}
	s.refused(415, "media-type", "POST", "/v1/topics/t/batch", "{}")
	s.refused(422, "invalid", "POST", "/v1/topics/t{/batch", "{}", "Content-Type", "application/x-ndjson")
	s.refused(422, "invalid", "POST", "/v1/topics/t/batch?results=few", "{}", "Content-Type", "application/x-ndjson")
}

// A line is answered while the next ones are still being written.
func TestBatchStreams(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	in, out := io.Pipe()
	r, err := http.NewRequest("POST", s.url+"/v1/topics/t/batch", in)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/x-ndjson")
	answered := make(chan *bufio.Scanner)
	go func() {
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			close(answered)
			return
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		answered <- bufio.NewScanner(res.Body)
	}()
	if _, err := io.WriteString(out, `{"id": "first"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	var lines *bufio.Scanner
	select {
	case lines = <-answered:
	case <-time.After(time.Minute):
		t.Fatal("no answer to the first line")
	}
	for _, want := range []string{`{"line":1,"id":"first"}`, `{"line":2,"id":"second"}`} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("%q, %v, want %s", lines.Text(), lines.Err(), want)
		}
		_, _ = io.WriteString(out, `{"id": "second"}`+"\n") // after the second line, a duplicate
	}
	_ = out.Close()
	var rest []string
	for lines.Scan() {
		rest = append(rest, lines.Text())
	}
	if len(rest) != 2 || !strings.Contains(rest[0], "duplicate-id") || rest[1] != `{"done":true,"stored":2,"failed":1}` {
		t.Errorf("%q", rest)
	}
}

// When Redis goes away in the middle, the answer says where reading ended.
func TestBatchWithoutRedis(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	s.env.Mini.SetError("OOM command not allowed")
	got := s.refused(503, "redis-down", "POST", "/v1/topics/t/batch", `{}`, "Content-Type", "application/x-ndjson")
	if !strings.Contains(got.Detail, "OOM") {
		t.Errorf("detail %q", got.Detail)
	}
}
