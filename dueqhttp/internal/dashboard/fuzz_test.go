package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/dashboard"
	"github.com/dueq-io/dueq/internal/redistest"
)

// paths are all that the dashboard has.
var paths = []string{
	"", "topic", "event", "body", "sessions", "check", "confirm", "login", "static/app.css",
	"fire", "reschedule", "cancel", "requeue", "purge", "pause", "resume", "repair", "logout",
}

// FuzzRequests sends any query and any form to any page: it answers with a page,
// which has no script but the dashboard's own, and never fails.
func FuzzRequests(f *testing.F) {
	env := redistest.Mini(f)
	q, err := dueq.New(env.NewClient(), dueq.Options{Namespace: env.Namespace})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := q.ShutDown(f.Context()); err != nil && f.Context().Err() == nil {
			f.Errorf("shut down: %v", err)
		}
	})
	h := dashboard.New(q, dashboard.Options{Every: time.Nanosecond})
	for i := range paths {
		f.Add(uint8(i), "topic=orders&id=a&state=dead&cursor=e30&ahead=hour&view=hex&do=purge", "topic=orders&id=a&in=1&unit=h&typed=orders&back=topic%3Fx")
	}
	f.Add(uint8(1), "topic=%3Cscript%3E&since=2026-01-01T00:00&until=x&page=-1", "at=9999-12-31T23:59:59Z")
	f.Fuzz(func(t *testing.T, n uint8, query, form string) {
		if _, err := q.PublishEvent(t.Context(), "orders", []byte(query), time.Now().Add(time.Hour), dueq.WithID("a"), dueq.WithKeyPolicy(dueq.KeyReplace)); err != nil {
			t.Fatal(err)
		}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := httptest.NewRequest(method, "/"+paths[int(n)%len(paths)], strings.NewReader(form))
			r.URL.RawQuery = query
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Accept", "text/html")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code >= http.StatusInternalServerError {
				t.Errorf("%s /%s: status %d:\n%s", method, r.URL.Path, w.Code, w.Body)
			}
			if strings.Contains(w.Header().Get("Content-Type"), "html") && strings.Count(w.Body.String(), "<script") > 1 {
				t.Errorf("%s /%s: more than one script:\n%s", method, r.URL.Path, w.Body)
			}
			if to := w.Header().Get("Location"); strings.HasPrefix(to, "/") || strings.Contains(strings.SplitN(to, "?", 2)[0], ":") {
				t.Errorf("%s /%s: goes to %q", method, r.URL.Path, to)
			}
		}
	})
}
