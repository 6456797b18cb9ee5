package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp"
	"github.com/dueq-io/dueq/internal/redistest"
)

const (
	fullToken = "full-token-0123456789"
	readToken = "read-token-0123456789"
	maxBody   = 1000
)

// service is a service with its queue, and a caller of it.
type service struct {
	t     testing.TB
	env   *redistest.Env
	q     *dueq.Queue
	h     *dueqhttp.Handler
	url   string
	token string // that the caller sends
	log   *observer.ObservedLogs
}

// newService starts a service on env; nil is a miniredis of its own.
func newService(t testing.TB, env *redistest.Env) *service {
	t.Helper()
	if env == nil {
		env = redistest.Mini(t)
	}
	q, err := dueq.New(env.Client, dueq.Options{Namespace: env.Namespace, MaxBody: maxBody})
	if err != nil {
		t.Fatal(err)
	}
	core, log := observer.New(zap.InfoLevel)
	h, err := dueqhttp.New(q, dueqhttp.Options{
		Tokens: []string{fullToken}, ReadTokens: []string{readToken}, MaxBody: maxBody, Logger: zap.New(core),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		h.Drain()
		server.Close()
		http.DefaultClient.CloseIdleConnections()
		_ = q.ShutDown(t.Context()) // the context has ended: what is held goes back at once
	})
	return &service{t: t, env: env, q: q, h: h, url: server.URL, token: fullToken, log: log}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// call makes a call, and holds it against the document. Headers are given as pairs;
// a body is JSON unless they say otherwise.
func (s *service) call(method, path, body string, headers ...string) answer {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	document, err := theDocument()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := document.check(r, []byte(body), res, got); err != nil {
		s.t.Errorf("%s %s: %d %s\n%v", method, path, res.StatusCode, got, err)
	}
	return answer{res.StatusCode, res.Header, string(got)}
}

// want makes a call that has to succeed, and decodes its answer into out unless
// that is nil.
func (s *service) want(status int, out any, method, path, body string, headers ...string) answer {
	s.t.Helper()
	got := s.call(method, path, body, headers...)
	if got.status != status {
		s.t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, got.status, got.body, status)
	}
	if out != nil {
		d := json.NewDecoder(bytes.NewReader([]byte(got.body)))
		if err := d.Decode(out); err != nil {
			s.t.Fatalf("%s %s: %v in %s", method, path, err, got.body)
		}
	}
	return got
}

// refusal is an error of the service.
type refusal struct {
	Type, Title, Detail, Field, ID string
	Status                         int
	RequestID                      string `json:"request_id"`
}

// refused makes a call that has to fail with a problem of the kind.
func (s *service) refused(status int, kind, method, path, body string, headers ...string) refusal {
	s.t.Helper()
	var p refusal
	got := s.want(status, &p, method, path, body, headers...)
	if !strings.HasSuffix(p.Type, "#"+kind) || p.Status != status || p.Detail == "" || p.Title == "" ||
		p.RequestID != got.header.Get("X-Request-Id") || got.header.Get("Content-Type") != "application/problem+json" {
		s.t.Errorf("%s %s %s: %s, want kind %s", method, path, body, got.body, kind)
	}
	for _, name := range []string{"dueq", "bucket", "subscriber", "readyqueue"} {
		if strings.HasPrefix(p.Detail, name+": ") {
			s.t.Errorf("%s %s: the detail names a package: %s", method, path, p.Detail)
		}
	}
	return p
}

// event is an event as the service tells of it.
type event struct {
	ID, Topic, State, Receipt string
	Body                      json.RawMessage
	Text                      *string
	Base64                    []byte
	BodySize                  int    `json:"body_size"`
	EffectTime                string `json:"effect_time"`
	Due                       string
	DiedAt                    string `json:"died_at"`
	Attempt, Attempts         int
	MaxAttempts               int    `json:"max_attempts"`
	LastError                 string `json:"last_error"`
	Metadata                  map[string]string
	ExpiresAt                 string `json:"expires_at"`
}

// claim claims events of topic t.
func (s *service) claim(terms string) []event {
	s.t.Helper()
	var out struct{ Events []event }
	s.want(200, &out, "POST", "/v1/topics/t/claim", terms)
	return out.Events
}

// stats counts the events of topic t.
func (s *service) stats() (stats struct {
	Scheduled, Ready, Leased, Dead int
	Paused                         bool
	Counters                       map[string]int
},
) {
	s.t.Helper()
	s.want(200, &stats, "GET", "/v1/topics/t/stats", "")
	return stats
}
