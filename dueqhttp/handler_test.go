package dueqhttp_test

import (
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
	token     = "full-token-0123456789"
	readToken = "read-token-0123456789"
)

// newHandler makes a handler of a queue on a miniredis.
func newHandler(t testing.TB, opts dueqhttp.Options) (*dueqhttp.Handler, *redistest.Env) {
	t.Helper()
	env := redistest.Mini(t)
	q, err := dueq.New(env.Client, dueq.Options{Namespace: env.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	h, err := dueqhttp.New(q, opts)
	if err != nil {
		t.Fatal(err)
	}
	return h, env
}

// request makes a request with headers given as pairs.
func request(method, target, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// do serves a request.
func do(h http.Handler, r *http.Request) (*http.Response, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	res := w.Result()
	body, _ := io.ReadAll(res.Body)
	return res, string(body)
}

// wantProblem checks that an answer is a problem of the kind.
func wantProblem(t *testing.T, res *http.Response, body string, status int, kind string) {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
		RequestID           string `json:"request_id"`
	}
	err := json.Unmarshal([]byte(body), &p)
	if err != nil || res.StatusCode != status || p.Status != status || !strings.HasSuffix(p.Type, "#"+kind) || p.Title == "" ||
		p.Detail == "" || p.RequestID == "" || p.RequestID != res.Header.Get("X-Request-Id") ||
		res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %q %s, %v; want %d %s", res.StatusCode, res.Header.Get("Content-Type"), body, err, status, kind)
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	q, err := dueq.New(redistest.Mini(t).Client, dueq.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for want, opts := range map[string]dueqhttp.Options{
		"full token 1":        {Tokens: []string{"short"}},
		"read-only token 1":   {ReadTokens: []string{""}},
		"option MaxBody is -": {MaxBody: -1},
	} {
		if h, err := dueqhttp.New(q, opts); h != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", opts, err, want)
		}
	}
	if _, err := dueqhttp.New(nil, dueqhttp.Options{}); err == nil {
		t.Error("a nil queue is taken")
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	h, env := newHandler(t, dueqhttp.Options{Tokens: []string{token}, Hosts: []string{"dueq.test"}, Ephemeral: true})
	for _, path := range []string{"/healthz", "/readyz"} {
		res, body := do(h, request("GET", path, "", "Host", "10.0.0.1:7700"))
		if res.StatusCode != 200 || body != `{"status":"ok","ephemeral":true}`+"\n" {
			t.Errorf("%s: %d %s", path, res.StatusCode, body)
		}
	}
	env.Mini.SetError("LOADING")
	if res, body := do(h, request("GET", "/readyz", "")); res.StatusCode != 503 || !strings.Contains(body, "redis down") {
		t.Errorf("Redis down: %d %s", res.StatusCode, body)
	}
	if res, _ := do(h, request("GET", "/healthz", "")); res.StatusCode != 200 {
		t.Errorf("Redis down: /healthz %d", res.StatusCode)
	}
	env.Mini.SetError("")
	h.Drain()
	h.Drain()
	if res, body := do(h, request("GET", "/readyz", "")); res.StatusCode != 503 || !strings.Contains(body, "draining") {
		t.Errorf("draining: %d %s", res.StatusCode, body)
	}
	if keys := env.Mini.Keys(); len(keys) > 0 {
		t.Errorf("health checks left keys: %q", keys)
	}
}

func TestGuards(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t, dueqhttp.Options{Hosts: []string{"localhost", "::1"}})
	for _, host := range []string{"localhost", "localhost:7700", "LOCALHOST:1", "[::1]:7700", "[::1]"} {
		if res, body := do(h, request("GET", "/", "", "Host", host)); res.StatusCode != 200 {
			t.Errorf("host %s: %d %s", host, res.StatusCode, body)
		}
	}
	for _, host := range []string{"evil.test", "evil.test:7700", "localhost.evil.test", "", "["} {
		res, body := do(h, request("GET", "/v1/topics", "", "Host", host))
		wantProblem(t, res, body, 403, "wrong-host")
	}
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.test"}, {"Origin", "null"}} {
		for _, path := range []string{"/v1/topics/t/purge", "/cancel"} {
			res, body := do(h, request("POST", path, "{}", append(headers, "Host", "localhost:7700")...))
			wantProblem(t, res, body, 403, "cross-origin")
		}
	}
	for _, headers := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Origin", "http://localhost:7700"}} {
		res, body := do(h, request("POST", "/v1/topics/t/pause", "{}", append(headers, "Host", "localhost:7700", "Content-Type", "application/json")...))
		if res.StatusCode != 204 {
			t.Errorf("%q: %d %s", headers, res.StatusCode, body)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("dueq_up 1\n")) })
	h, _ := newHandler(t, dueqhttp.Options{Tokens: []string{token}, ReadTokens: []string{readToken}, Metrics: metrics})
	res, body := do(h, request("GET", "/metrics", ""))
	wantProblem(t, res, body, 401, "unauthorized")
	for _, token := range []string{token, readToken} {
		if res, body := do(h, request("GET", "/metrics", "", "Authorization", "Bearer "+token)); res.StatusCode != 200 || body != "dueq_up 1\n" {
			t.Errorf("%d %s", res.StatusCode, body)
		}
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		res, body := do(h, request("POST", path, ""))
		if wantProblem(t, res, body, 405, "no-method"); res.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: Allow is %q", path, res.Header.Get("Allow"))
		}
	}
	h, _ = newHandler(t, dueqhttp.Options{})
	res, body = do(h, request("GET", "/metrics", ""))
	wantProblem(t, res, body, 404, "no-route")
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t, dueqhttp.Options{})
	if res, _ := do(h, request("GET", "/healthz", "", "X-Request-Id", "ab-1.2_3:4/5+6=")); res.Header.Get("X-Request-Id") != "ab-1.2_3:4/5+6=" {
		t.Errorf("a good id became %q", res.Header.Get("X-Request-Id"))
	}
	for _, id := range []string{"", "a b", "<script>", "é", strings.Repeat("x", 129)} {
		res, _ := do(h, request("GET", "/healthz", "", "X-Request-Id", id))
		if got := res.Header.Get("X-Request-Id"); got == id || len(got) < 20 {
			t.Errorf("id %q became %q", id, got)
		}
	}
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zap.InfoLevel)
	panics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") })
	h, _ := newHandler(t, dueqhttp.Options{Tokens: []string{token}, Metrics: panics, Logger: zap.New(core)})
	do(h, request("GET", "/healthz", ""))
	if lines.Len() > 0 {
		t.Errorf("a health check is logged: %v", lines.All())
	}
	res, body := do(h, request("GET", "/metrics?token="+token, "", "Authorization", "Bearer "+token, "X-Request-Id", "r1"))
	wantProblem(t, res, body, 500, "internal")
	all := lines.TakeAll()
	if len(all) != 2 || all[0].Message != "panic" || all[0].ContextMap()["request_id"] != "r1" {
		t.Fatalf("log %v", all)
	}
	fields := all[1].ContextMap()
	if fields["route"] != "GET /metrics" || fields["status"] != int64(500) || fields["request_id"] != "r1" || fields["bytes"] == int64(0) {
		t.Errorf("log %v", fields)
	}
	for _, line := range all {
		if text, _ := json.Marshal(line.ContextMap()); strings.Contains(string(text), token) {
			t.Errorf("the log has the token: %s", text)
		}
	}
}

func TestUnderPrefix(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t, dueqhttp.Options{})
	mux := http.NewServeMux()
	mux.Handle("/dueq/", http.StripPrefix("/dueq", h))
	if res, body := do(mux, request("GET", "/dueq/healthz", "")); res.StatusCode != 200 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	res, body := do(mux, request("GET", "/dueq/nothing", ""))
	wantProblem(t, res, body, 404, "no-route")
}

// Who may only read does not see what may be a secret in a webhook's path.
func TestPushURLs(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t, dueqhttp.Options{
		Tokens: []string{token}, ReadTokens: []string{readToken},
		Push: []dueqhttp.Push{{Topic: "t", URL: "https://user:word@hooks.test:8443/T0/secret?key=k#f", Concurrency: 1}},
	})
	for token, want := range map[string]string{token: "https://hooks.test:8443/T0/secret", readToken: "https://hooks.test:8443"} {
		if res, body := do(h, request("GET", "/v1/push", "", "Authorization", "Bearer "+token)); res.StatusCode != 200 || !strings.Contains(body, `"url":"`+want+`"`) {
			t.Errorf("%d %s, want %s", res.StatusCode, body, want)
		}
	}
}
