package dashboard_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/dueq-io/dueq/dueqhttp/internal/access"
)

// pages are some of each kind.
var pages = []string{"", "topic?topic=orders", "event?topic=orders&id=a", "body?topic=orders&id=a", "check"}

func TestLogin(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded(t))
	s.publish("orders", "a", "x", time.Hour)
	for _, target := range pages {
		page := s.get(target)
		page.want(t, http.StatusSeeOther)
		if to := page.Header.Get("Location"); to != "login" {
			t.Errorf("%s: Location: %s", target, to)
		}
	}
	s.do(http.MethodGet, "", "", nil, "Accept", "text/event-stream").want(t, http.StatusUnauthorized)
	s.post("cancel", "topic", "orders", "id", "a").want(t, http.StatusUnauthorized, "Not logged in")
	s.post("check").want(t, http.StatusUnauthorized)
	// Who is not logged in takes no stream from those who are.
	s.do(http.MethodGet, "login", "", nil, "Accept", "text/event-stream").want(t, http.StatusOK, "<html")
	login := s.get("login")
	login.want(t, http.StatusOK, `type="password"`)
	login.lacks(t, "Sessions", "Log out")

	for _, token := range []string{"", "wrong", fullToken + "x", fullToken + "\r\nX: y"} {
		refused := s.post("login", "token", token)
		refused.want(t, http.StatusUnauthorized, "This token is not valid.")
		if len(refused.Cookies()) > 0 {
			t.Errorf("token %q: cookies %v", token, refused.Cookies())
		}
	}
	accepted := s.post("login", "token", fullToken)
	accepted.want(t, http.StatusSeeOther)
	cookie := accepted.Cookies()[0]
	if cookie.Name != access.Cookie || cookie.Value != fullToken || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Secure {
		t.Errorf("cookie %v", cookie)
	}
	secure := s.do(http.MethodPost, "login", "", values([]string{"token", readToken}), "X-Forwarded-Proto", "https")
	if !secure.Cookies()[0].Secure {
		t.Errorf("over TLS: cookie %v", secure.Cookies()[0])
	}
	for _, target := range pages {
		s.do(http.MethodGet, target, fullToken, nil).want(t, http.StatusOK)
		s.do(http.MethodGet, target, "", nil, "Authorization", "Bearer "+readToken).want(t, http.StatusOK)
	}
	s.do(http.MethodGet, "", fullToken, nil).want(t, http.StatusOK, "Log out")
	out := s.do(http.MethodPost, "logout", fullToken, values(nil))
	out.want(t, http.StatusSeeOther)
	if c := out.Cookies()[0]; c.Name != access.Cookie || c.MaxAge >= 0 {
		t.Errorf("cookie %v", c)
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded(t))
	s.publish("orders", "a", "x", time.Hour)
	s.kill("orders", "b", "broken")
	for _, target := range append(pages, "topic?topic=orders&state=dead", "event?topic=orders&id=b") {
		page := s.do(http.MethodGet, target, readToken, nil)
		page.want(t, http.StatusOK)
		page.lacks(t, `action="fire"`, `action="cancel"`, `action="reschedule"`, `action="pause"`, `action="purge"`, `action="requeue"`, "<dialog")
	}
	s.do(http.MethodPost, "check", readToken, values(nil)).want(t, http.StatusOK, "All is well")
	for _, target := range []string{"fire", "reschedule", "cancel", "requeue", "purge", "pause", "resume", "repair"} {
		form := values([]string{"topic", "orders", "id", "a", "typed", "orders", "in", "1", "unit", "min"})
		s.do(http.MethodPost, target, readToken, form).want(t, http.StatusForbidden, "only allows reading")
	}
	s.do(http.MethodGet, "confirm?do=purge&topic=orders", readToken, nil).want(t, http.StatusForbidden)
	stats, err := s.q.Stats(t.Context(), "orders")
	if err != nil || stats.Scheduled != 1 || stats.Dead != 1 || stats.Paused {
		t.Errorf("stats %+v, %v", stats, err)
	}
}
