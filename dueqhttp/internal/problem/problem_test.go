package problem_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
)

// The page to which the types lead describes each kind, with its status.
func TestKindsAreDescribed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := problem.Kinds()
	for _, k := range kinds {
		if want := "\n### " + k.Name + "\n" + strconv.Itoa(k.Status) + ". "; !strings.Contains(string(page), want) {
			t.Errorf("docs/http.md lacks %q", want)
		}
		if !strings.HasSuffix(k.Type(), "docs/http.md#"+k.Name) {
			t.Errorf("type %q", k.Type())
		}
	}
	if n := strings.Count(string(page), "\n### "); n != len(kinds) {
		t.Errorf("docs/http.md describes %d kinds, there are %d", n, len(kinds))
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	w.Header().Set("X-Request-Id", "r1")
	p := problem.RedisDown.New("it says %q", "<b>")
	p.RetryAfter, p.Field, p.ID = 1500*time.Millisecond, "f", "e1"
	p.Write(w)
	want := map[string]any{
		"type": problem.RedisDown.Type(), "title": problem.RedisDown.Title, "status": 503.0, "detail": `it says "<b>"`,
		"field": "f", "id": "e1", "request_id": "r1",
	}
	got := make(map[string]any)
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got) != len(want) {
		t.Fatalf("%v in %s", err, w.Body)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
	if h := w.Header(); w.Code != 503 || h.Get("Retry-After") != "2" || h.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v", w.Code, h)
	}
	if p.Error() != problem.RedisDown.Title+`: it says "<b>"` {
		t.Errorf("error %q", p.Error())
	}
}

// A mux answers what it does not have with problems, and cleans up no paths.
func TestMux(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /a/{x}", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.PathValue("x"))) })
	h := problem.Mux(mux)
	for _, c := range []struct {
		method, path string
		status       int
		text         string
	}{
		{"GET", "/a/b", 200, "b"},
		{"GET", "/a/b%2Fc", 200, "b/c"},
		{"GET", "/a/%2E%2E", 200, ".."},
		{"GET", "/a//b", 404, "#no-route"},
		{"GET", "//a/b", 404, "#no-route"},
		{"GET", "/a/../a/b", 404, "#no-route"},
		{"GET", "/a/", 404, "#no-route"},
		{"GET", "/b", 404, "#no-route"},
		{"POST", "/a/b", 405, "#no-method"},
		{"OPTIONS", "*", 404, "#no-route"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.text) || (w.Header().Get("Allow") == "GET, HEAD") != (c.status == 405) {
			t.Errorf("%s %s: %d %v %s", c.method, c.path, w.Code, w.Header(), w.Body)
		}
	}
}
