package dashboard_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/dashboard"
)

// sent checks that a form was accepted, and where the browser goes then.
func (a answer) sent(t *testing.T, to, notice string) {
	t.Helper()
	a.want(t, http.StatusSeeOther)
	if got := a.Header.Get("Location"); got != to {
		t.Errorf("Location: %s, want %s", got, to)
	}
	if got := a.notice(t); !strings.Contains(got, notice) {
		t.Errorf("notice %q, want %q", got, notice)
	}
}

func TestActions(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	ctx := t.Context()
	due := func(id string) time.Duration {
		info, err := s.q.Get(ctx, "orders", id)
		if err != nil {
			t.Fatal(err)
		}
		return time.Until(info.EffectTime)
	}
	for _, id := range []string{"fire", "in", "at", "cancel", "rest"} {
		s.publish("orders", id, "x", time.Hour)
	}

	s.post("fire", "topic", "orders", "id", "fire").sent(t, "topic?topic=orders", "is due now")
	if d := due("fire"); d > time.Millisecond { // the present is rounded up
		t.Errorf("the fired event is due in %v", d)
	}
	s.post("reschedule", "topic", "orders", "id", "in", "in", "1.5", "unit", "d").
		sent(t, "event?id=in&topic=orders", "in 1 d 11 h")
	if d := due("in"); d < 35*time.Hour || d > 36*time.Hour+time.Second {
		t.Errorf("due in %v, want 36 h", d)
	}
	s.post("reschedule", "topic", "orders", "id", "at", "at", "2099-12-31T23:59:58.000Z", "in", "", "back", "topic?topic=orders&state=scheduled#events").
		sent(t, "topic?topic=orders&state=scheduled#events", "is due in")
	if info, err := s.q.Get(ctx, "orders", "at"); err != nil || !info.EffectTime.Equal(time.Date(2099, 12, 31, 23, 59, 58, 0, time.UTC)) {
		t.Errorf("%v, %v", info, err)
	}
	s.post("cancel", "topic", "orders", "id", "cancel").sent(t, "topic?topic=orders", "is cancelled")
	if _, err := s.q.Get(ctx, "orders", "cancel"); !errors.Is(err, dueq.ErrNotFound) {
		t.Errorf("the cancelled event: %v", err)
	}

	s.post("pause", "topic", "orders").sent(t, "topic?topic=orders", "is paused")
	s.get("topic?topic=orders").want(t, http.StatusOK, "Resume delivery")
	if stats, err := s.q.Stats(ctx, "orders"); err != nil || !stats.Paused {
		t.Errorf("paused: %v, %v", stats.Paused, err)
	}
	s.post("resume", "topic", "orders").sent(t, "topic?topic=orders", "delivered again")
	if stats, err := s.q.Stats(ctx, "orders"); err != nil || stats.Paused {
		t.Errorf("paused: %v, %v", stats.Paused, err)
	}

	s.post("purge", "topic", "orders", "typed", "orders", "state", "dead").sent(t, "topic?topic=orders", "Forgot 0 events.")
	s.post("purge", "topic", "orders", "typed", "orders").sent(t, "topic?topic=orders", "Forgot 4 events.")
}

func TestRequeue(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	s.kill("mail", "m-1", "timeout")
	s.kill("mail", "m-2", "timeout")
	s.kill("mail", "other", "refused")

	confirm := s.get("confirm?do=requeue&topic=mail&state=dead&error=timeout&prefix=m-")
	confirm.want(t, http.StatusOK, "Those that the filter takes", `name="error" value="timeout"`, `name="prefix" value="m-"`)
	s.get("topic?topic=mail&state=dead").want(t, http.StatusOK, `id="ask-requeue"`, "timeout", "refused")
	s.post("requeue", "topic", "mail", "error", "timeout", "prefix", "m-").sent(t, "topic?topic=mail", "Requeued 2 events")
	if stats, err := s.q.Stats(t.Context(), "mail"); err != nil || stats.Dead != 1 {
		t.Errorf("%d dead, want 1; %v", stats.Dead, err)
	}

	// One that somebody else has requeued meanwhile stays as it is.
	s.get("topic?topic=mail&state=dead").want(t, http.StatusOK, `name="state" value="dead"`)
	s.get("event?topic=mail&id=other").want(t, http.StatusOK, `name="state" value="dead"`)
	s.post("fire", "topic", "mail", "id", "other", "state", "dead").sent(t, "topic?topic=mail", "is due now")
	s.post("reschedule", "topic", "mail", "id", "other", "in", "1", "unit", "h").sent(t, "event?id=other&topic=mail", "is due in")
	s.post("fire", "topic", "mail", "id", "other", "state", "dead").want(t, http.StatusConflict, "not dead any more", "but scheduled")
}

func TestRefusedActions(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	s.publish("orders", "a", "x", time.Hour)
	for _, c := range []struct {
		name   string
		form   []string
		status int
		text   string
	}{
		{"fire", []string{"topic", "orders", "id", "nobody"}, 404, "No such event"},
		{"cancel", []string{"topic", "none", "id", "nobody"}, 404, "No such event"},
		{"fire", []string{"topic", "a{b", "id", "a"}, 400, "invalid topic"},
		{"fire", []string{"topic", "orders"}, 400, "invalid id"},
		{"reschedule", []string{"topic", "orders", "id", "a"}, 400, "no new time"},
		{"reschedule", []string{"topic", "orders", "id", "a", "in", "-5", "unit", "min"}, 400, "not a time"},
		{"reschedule", []string{"topic", "orders", "id", "a", "in", "NaN", "unit", "min"}, 400, "not a time"},
		{"reschedule", []string{"topic", "orders", "id", "a", "in", "1e30", "unit", "s"}, 400, "not a time"},
		{"reschedule", []string{"topic", "orders", "id", "a", "in", "5", "unit", "fortnights"}, 400, "not a time"},
		{"reschedule", []string{"topic", "orders", "id", "a", "in", "5", "unit", "min", "at", "2099-01-01T00:00"}, 400, "not both"},
		{"reschedule", []string{"topic", "orders", "id", "a", "at", "tomorrow"}, 400, "not a time such as"},
		{"reschedule", []string{"topic", "orders", "id", "a", "at", "9000-01-01T00:00"}, 400, "100 years"},
		{"purge", []string{"topic", "orders"}, 400, "typed"},
		{"purge", []string{"topic", "orders", "typed", "order"}, 400, "typed"},
		{"purge", []string{"topic", "orders", "typed", "orders", "state", "leased"}, 400, "leased"},
		{"requeue", []string{"topic", "orders", "since", "x"}, 400, "not a time such as"},
		{"cancel", []string{"topic", "orders", "id", strings.Repeat("x", 70<<10)}, 400, "too large"},
		{"pause", nil, 400, "invalid topic"},
		{"requeue", []string{"topic", "orders", "until", "0001-01-01T00:00"}, 400, "not a time such as"},
		{"repair", []string{"topic", "a{b"}, 400, "invalid topic"},
		{"repair", nil, 400, "no topic"},
		{"repair", []string{"topic", "orders", "x", strings.Repeat("x", 70<<10)}, 400, "too large"},
	} {
		s.post(c.name, c.form...).want(t, c.status, c.text)
	}
	// A form that cannot be read is not one without a topic.
	for media, form := range map[string]string{
		"application/x-www-form-urlencoded": "topic=%zz",
		"multipart/form-data; boundary=b":   "--b\r\nContent-Disposition: form-data; name=\"topic\"\r\n\r\norders\r\n--b--\r\n",
	} {
		r := httptest.NewRequest(http.MethodPost, "/repair", strings.NewReader(form))
		r.Header.Set("Content-Type", media)
		w := httptest.NewRecorder()
		if s.h.ServeHTTP(w, r); w.Code != http.StatusBadRequest {
			t.Errorf("repair with %s: %d", media, w.Code)
		}
	}
	for _, target := range []string{"fire", "cancel", "purge", "logout"} {
		s.get(target+"?topic=orders&id=a").want(t, http.StatusNotFound)
	}
	if info, err := s.q.Get(t.Context(), "orders", "a"); err != nil || info.State != dueq.StateScheduled {
		t.Errorf("the event: %v, %v", info, err)
	}
}

func TestLeased(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	release := make(chan struct{})
	defer close(release)
	s.publish("orders", "a", "x", 0)
	worker := newQueue(t, s.env)
	err := worker.Subscribe("orders", dueq.HandlerFunc(func(context.Context, *dueq.Event) error {
		<-release
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	s.eventually("it is leased", func() bool {
		info, err := s.q.Get(t.Context(), "orders", "a")
		return err == nil && info.State == dueq.StateLeased
	})
	s.post("cancel", "topic", "orders", "id", "a").want(t, http.StatusConflict, "A handler has it")
	page := s.get("event?topic=orders&id=a")
	page.want(t, http.StatusOK, "cannot be changed now")
	page.lacks(t, `action="fire"`, `action="reschedule"`, `action="cancel"`)
}

func TestBackStaysHere(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	s.publish("orders", "a", "x", time.Hour)
	for _, back := range []string{
		"https://example.com/", "//example.com/topic", "javascript:alert(1)", "/topic", "../topic", "topic/../x", "\\\\example.com", "login", "topic#x",
	} {
		s.post("fire", "topic", "orders", "id", "a", "back", back).sent(t, "topic?topic=orders", "is due now")
	}
}

func TestCheckAndRepair(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	s.publish("orders", "a", "x", time.Hour)
	s.publish("other", "b", "x", time.Hour)
	for i := range 16 { // some other hand drops the event's place
		s.env.Mini.Del("{" + s.env.Namespace + ":orders}:bucket:" + string("0123456789abcdef"[i]))
		s.env.Mini.Del("{" + s.env.Namespace + ":orders}:bucket:1" + string("0123456789"[i%10]))
	}
	s.post("check").want(t, http.StatusOK, "no_place", "1 finding among 2 events", `id="ask-repair"`, `href="event?id=a&amp;topic=orders"`)
	s.post("check", "topic", "other").want(t, http.StatusOK, "All is well: 1 event in 1 topic")
	s.get("confirm?do=repair").want(t, http.StatusOK, "Repair all topics?")
	s.post("repair", "topic", "orders").want(t, http.StatusOK, "all of them repaired")
	if info, err := s.q.Get(t.Context(), "orders", "a"); err != nil || info.State != dueq.StateDead {
		t.Errorf("the repaired event: %v, %v", info, err)
	}
	s.post("check").want(t, http.StatusOK, "All is well: 2 events in 2 topics")
}
