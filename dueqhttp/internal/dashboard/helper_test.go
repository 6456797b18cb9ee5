package dashboard_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/access"
	"github.com/dueq-io/dueq/dueqhttp/internal/dashboard"
	"github.com/dueq-io/dueq/internal/redistest"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

const (
	fullToken = "full-0123456789abcdef"
	readToken = "read-0123456789abcdef"
)

// site is a dashboard of a queue, mostly on a miniredis.
type site struct {
	t   *testing.T
	q   *dueq.Queue
	env *redistest.Env
	h   http.Handler
}

func newSite(t *testing.T, opts dashboard.Options) *site {
	t.Helper()
	return newSiteOn(t, redistest.Mini(t), opts)
}

func newSiteOn(t *testing.T, env *redistest.Env, opts dashboard.Options) *site {
	t.Helper()
	s := &site{t: t, env: env, q: newQueue(t, env)}
	s.h = dashboard.New(s.q, opts)
	return s
}

func newQueue(t *testing.T, env *redistest.Env) *dueq.Queue {
	t.Helper()
	q, err := dueq.New(env.NewClient(), dueq.Options{Namespace: env.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := q.ShutDown(ctx); err != nil && !errors.Is(err, dueq.ErrShutDown) {
			t.Errorf("shut down: %v", err)
		}
	})
	return q
}

// guarded are options with tokens.
func guarded(t *testing.T) dashboard.Options {
	t.Helper()
	tokens, err := access.New([]string{fullToken}, []string{readToken})
	if err != nil {
		t.Fatal(err)
	}
	return dashboard.Options{Tokens: tokens}
}

func (s *site) publish(topic, id, body string, ahead time.Duration, opts ...dueq.PublishOption) {
	s.t.Helper()
	opts = append(opts, dueq.WithID(id))
	if _, err := s.q.PublishEvent(s.t.Context(), topic, []byte(body), time.Now().Add(ahead), opts...); err != nil {
		s.t.Fatal(err)
	}
}

// kill makes an event dead.
func (s *site) kill(topic, id, reason string) {
	s.t.Helper()
	s.publish(topic, id, "body of "+id, 0)
	worker := newQueue(s.t, s.env)
	err := worker.Subscribe(topic, dueq.HandlerFunc(func(context.Context, *dueq.Event) error {
		return dueq.SkipRetry(errors.New(reason))
	}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the event is dead", func() bool {
		info, err := s.q.Get(s.t.Context(), topic, id)
		return err == nil && info.State == dueq.StateDead
	})
	if err := worker.ShutDown(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) eventually(what string, ok func() bool) {
	s.t.Helper()
	redistest.Eventually(s.t, what, ok)
}

// answer is a response that was read.
type answer struct {
	*http.Response
	text string
}

// do sends a request as a browser would; token is that of its cookie.
func (s *site) do(method, target, token string, form url.Values, headers ...string) answer {
	s.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, "/"+target, body)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if token != "" {
		r.AddCookie(&http.Cookie{Name: access.Cookie, Value: token})
	}
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	return answer{w.Result(), w.Body.String()}
}

func (s *site) get(target string) answer {
	s.t.Helper()
	return s.do(http.MethodGet, target, "", nil)
}

// post sends a form, given as pairs.
func (s *site) post(target string, pairs ...string) answer {
	s.t.Helper()
	return s.do(http.MethodPost, target, "", values(pairs))
}

func values(pairs []string) url.Values {
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return form
}

// want checks a page's status and what its HTML contains.
func (a answer) want(t *testing.T, status int, texts ...string) {
	t.Helper()
	if a.StatusCode != status {
		t.Errorf("status %d, want %d:\n%s", a.StatusCode, status, a.text)
	}
	for _, text := range texts {
		if !strings.Contains(a.text, text) {
			t.Errorf("the page does not contain %q:\n%s", text, a.text)
		}
	}
}

// lacks checks what a page's HTML does not contain.
func (a answer) lacks(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.text, text) {
			t.Errorf("the page contains %q:\n%s", text, a.text)
		}
	}
}

// notice is what the next page will tell.
func (a answer) notice(t *testing.T) string {
	t.Helper()
	for _, c := range a.Cookies() {
		if c.Name == "dueq_notice" {
			text, err := url.QueryUnescape(c.Value)
			if err != nil {
				t.Error(err)
			}
			return text
		}
	}
	return ""
}
