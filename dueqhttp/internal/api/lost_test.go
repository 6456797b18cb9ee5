package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/access"
	"github.com/dueq-io/dueq/dueqhttp/internal/api"
	"github.com/dueq-io/dueq/internal/redistest"
)

// newAPI makes an API without a server around it.
func newAPI(t *testing.T, opts dueq.Options) (*api.API, *dueq.Queue) {
	t.Helper()
	env := redistest.Mini(t)
	q, err := dueq.New(env.Client, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.ShutDown(t.Context()) }) // the context has ended: what is held goes back at once
	tokens, err := access.New(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return api.New(q, api.Options{Tokens: tokens, MaxBody: 32 << 20, Draining: t.Context(), Logger: zap.NewNop()}), q
}

// post serves a request with a body of JSON.
func post(a *api.API, w http.ResponseWriter, path, body string) {
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	a.ServeHTTP(w, r)
}

// want serves a request that has to be answered with a status.
func want(t *testing.T, a *api.API, status int, path, body string) string {
	t.Helper()
	w := httptest.NewRecorder()
	post(a, w, path, body)
	if w.Code != status {
		t.Fatalf("%s: %d %.300s, want %d", path, w.Code, w.Body, status)
	}
	return w.Body.String()
}

// broken is a connection that breaks when something is written.
type broken struct{ http.ResponseWriter }

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// Events whose answer cannot be sent go back at no cost in attempts.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	a, q := newAPI(t, dueq.Options{})
	for range 3 {
		want(t, a, 201, "/v1/topics/t/events", `{}`)
	}
	post(a, broken{httptest.NewRecorder()}, "/v1/topics/t/claim", `{"max": 3, "wait": "1m"}`)
	stats, err := q.Stats(t.Context(), "t")
	if err != nil || stats.Leased != 0 || stats.Released == 0 || stats.Retried != 0 {
		t.Errorf("%+v, %v", stats, err)
	}
	if n := a.Sweep(); n != 0 {
		t.Errorf("%d receipts are kept", n)
	}
	if got := want(t, a, 200, "/v1/topics/t/claim", `{"wait": "1m"}`); !strings.Contains(got, `"attempt":1`) {
		t.Errorf("claimed %s", got)
	}
}

// hangingUp is a connection whose other end hangs up once it has the answer.
type hangingUp struct {
	http.ResponseWriter
	hangUp func()
}

func (h hangingUp) Write(text []byte) (int, error) {
	defer h.hangUp()
	return h.ResponseWriter.Write(text)
}

// A caller that hangs up as soon as it has its events keeps them.
func TestCallerHangsUp(t *testing.T) {
	t.Parallel()
	a, q := newAPI(t, dueq.Options{})
	want(t, a, 201, "/v1/topics/t/events", `{}`)
	ctx, hangUp := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/topics/t/claim", strings.NewReader(`{"wait": "1m"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	a.ServeHTTP(hangingUp{w, hangUp}, r)
	if stats, err := q.Stats(t.Context(), "t"); err != nil || stats.Leased != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
	receipt := regexp.MustCompile(`"receipt":"([^"]+)"`).FindStringSubmatch(w.Body.String())
	if receipt == nil {
		t.Fatalf("claimed %s", w.Body)
	}
	want(t, a, 204, "/v1/deliveries/"+receipt[1]+"/ack", `{}`)
}

// What does not fit into one answer goes back.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	a, q := newAPI(t, dueq.Options{MaxBody: 10 << 20})
	for range 3 {
		want(t, a, 201, "/v1/topics/t/raw", strings.Repeat("x", 7<<20))
	}
	left := 3
	for left > 0 {
		got := want(t, a, 200, "/v1/topics/t/claim", `{"max": 3, "wait": "1m"}`)
		n := strings.Count(got, `"receipt"`)
		if n < 1 || n > 2 {
			t.Fatalf("%d events in one answer", n)
		}
		left -= n
	}
	if stats, err := q.Stats(t.Context(), "t"); err != nil || stats.Leased != 3 {
		t.Errorf("%+v, %v", stats, err)
	}
}

// A delivery that ended by itself is not kept.
func TestEndedDeliveriesAreForgotten(t *testing.T) {
	t.Parallel()
	a, _ := newAPI(t, dueq.Options{})
	want(t, a, 201, "/v1/topics/t/events", `{"max_attempts": 1}`)
	want(t, a, 200, "/v1/topics/t/claim", `{"wait": "1m", "visibility": "100ms"}`)
	redistest.Eventually(t, "nothing is held", func() bool { return a.Sweep() == 0 })
}

// late is a body that does not come.
type late struct{}

func (late) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }
func (late) Close() error             { return nil }

func TestLateBody(t *testing.T) {
	t.Parallel()
	a, _ := newAPI(t, dueq.Options{})
	for path, media := range map[string]string{"/v1/topics/t/events": "application/json", "/v1/topics/t/raw": "text/plain"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", path, late{})
		r.Header.Set("Content-Type", media)
		if a.ServeHTTP(w, r); w.Code != 408 || !strings.Contains(w.Body.String(), "#timeout") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/v1/topics/t/batch", late{})
	r.Header.Set("Content-Type", "application/x-ndjson")
	if a.ServeHTTP(w, r); w.Code != 200 || !strings.Contains(w.Body.String(), `"done":false`) || !strings.Contains(w.Body.String(), "#timeout") {
		t.Errorf("batch: %d %s", w.Code, w.Body)
	}
}

// hasty is a writer with deadlines that come thirty times sooner.
type hasty struct{ http.ResponseWriter }

func (h hasty) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (h hasty) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(h.ResponseWriter).SetReadDeadline(sooner(t))
}

func (h hasty) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(h.ResponseWriter).SetWriteDeadline(sooner(t))
}

func sooner(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.Now().Add(time.Until(t) / 30)
}

// Who sends too slowly is told so, for there is time left for the answer, and then
// the connection ends: what still comes is no request. What has come of a batch is
// stored.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.h.ServeHTTP(hasty{w}, r) }))
	t.Cleanup(server.Close)
	for path, want := range map[string]string{"events": "HTTP/1.1 408 ", "batch": `"done":false,"stored":1,"failed":0`} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		media := map[string]string{"events": "application/json", "batch": "application/x-ndjson"}[path]
		_, err = fmt.Fprintf(conn, "POST /v1/topics/t/%s HTTP/1.1\r\nHost: x\r\n"+
			"Authorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\n{}\n{", path, s.token, media)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(got), want) || !strings.Contains(string(got), "#timeout") {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}
