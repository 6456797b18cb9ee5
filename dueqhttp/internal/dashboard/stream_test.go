package dashboard_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/dashboard"
)

// stream is an open stream of server-sent events.
type stream struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Scanner
}

// listen opens a stream on a server.
func listen(t *testing.T, server *httptest.Server, target string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/"+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	return &stream{t: t, response: response, lines: lines}
}

// next is the next event.
func (s *stream) next() (name, data string) {
	s.t.Helper()
	var text []string
	for s.lines.Scan() {
		switch line := s.lines.Text(); {
		case strings.HasPrefix(line, "event: "):
			name = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data: "):
			text = append(text, strings.TrimPrefix(line, "data: "))
		case line == "" && name != "":
			return name, strings.Join(text, "\n")
		case line != "" && !strings.HasPrefix(line, ":"):
			s.t.Fatalf("line %q", line)
		}
	}
	s.t.Fatalf("the stream has ended: %v", s.lines.Err())
	return "", ""
}

// until reads on until an event with this name contains text.
func (s *stream) until(name, text string) string {
	s.t.Helper()
	for {
		if got, data := s.next(); got == name && strings.Contains(data, text) {
			return data
		}
	}
}

func serve(t *testing.T, s *site) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(s.h)
	t.Cleanup(server.Close)
	return server
}

func TestStream(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{Every: 5 * time.Millisecond})
	s.publish("orders", "a", "one\rtwo", time.Hour)
	server := serve(t, s)

	topics := listen(t, server, "")
	if got := topics.response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type: %s", got)
	}
	first := topics.until("page", "topic?topic=orders")
	if strings.Contains(first, "<html") || strings.Contains(first, "<nav aria-label=\"Main\"") {
		t.Errorf("more than the main part:\n%s", first)
	}
	s.publish("mail", "b", "x", time.Hour)
	topics.until("page", "topic?topic=mail")

	event := listen(t, server, "event?topic=orders&id=a")
	event.until("page", "one&#13;two")
	if err := s.q.Cancel(t.Context(), "orders", "a"); err != nil {
		t.Fatal(err)
	}
	event.until("page", "No such event")

	s.env.Mini.SetError("LOADING it is loading")
	topics.until("trouble", "LOADING it is loading")
	s.env.Mini.SetError("")
	topics.until("page", "topic?topic=mail")
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{Every: 5 * time.Millisecond, Streams: 2})
	server := serve(t, s)
	first := listen(t, server, "")
	first.until("page", "")
	listen(t, server, "").until("page", "")
	refused := listen(t, server, "")
	if refused.response.StatusCode != http.StatusServiceUnavailable || refused.response.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, %v", refused.response.StatusCode, refused.response.Header)
	}
	if err := first.response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	s.eventually("the place is free again", func() bool {
		again := listen(t, server, "")
		defer func() { _ = again.response.Body.Close() }()
		return again.response.StatusCode == http.StatusOK
	})
}

func TestStreamsEndWithTheServer(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	s := newSite(t, dashboard.Options{Done: done})
	server := serve(t, s)
	open := listen(t, server, "")
	open.until("page", "")
	close(done)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := server.Config.Shutdown(ctx); err != nil {
		t.Errorf("shut down: %v", err)
	}
	if _, err := io.ReadAll(open.response.Body); err != nil {
		t.Errorf("the stream did not end well: %v", err)
	}
	late := s.do(http.MethodGet, "", "", nil, "Accept", "text/event-stream")
	late.want(t, http.StatusServiceUnavailable)
}

// TestViewersShareSamples has many look at once: Redis is asked about each topic
// once.
func TestViewersShareSamples(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{Every: time.Hour})
	s.publish("orders", "a", "x", time.Hour)
	s.get("").want(t, http.StatusOK)
	before := s.env.Mini.CommandCount()
	for range 20 {
		s.get("").want(t, http.StatusOK, "topic?topic=orders")
	}
	if n := s.env.Mini.CommandCount() - before; n != 0 {
		t.Errorf("%d commands for what was known", n)
	}
}

// TestLateness watches deliveries come in.
func TestLateness(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{Every: 5 * time.Millisecond})
	s.publish("orders", "before", "x", time.Hour)
	server := serve(t, s)
	page := listen(t, server, "topic?topic=orders")
	page.until("page", "No delivery while this page was open")
	worker := newQueue(t, s.env)
	if err := worker.Subscribe("orders", dueq.HandlerFunc(func(context.Context, *dueq.Event) error { return nil })); err != nil {
		t.Fatal(err)
	}
	s.publish("orders", "a", "x", 0)
	page.until("page", `<span class="p99">p99 <b>`)
}
