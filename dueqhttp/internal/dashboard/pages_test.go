package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/dashboard"
	"github.com/dueq-io/dueq/internal/redistest"
)

const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>`

func TestEmptyQueue(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	s.get("").want(t, http.StatusOK, "Nothing here yet", "dueq publish")
	s.get("topic?topic=none").want(t, http.StatusOK, "No events yet")
	s.get("check").want(t, http.StatusOK, "no topics to check")
}

func TestTopics(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, redistest.Start(t).Env(), dashboard.Options{}) // a miniredis may take too long to count so many
	for i := range 120 {
		s.publish(fmt.Sprintf("topic-%03d", i), "a", "x", time.Hour)
	}
	s.kill("mail", "m", "no route")
	s.publish("orders", "a", "x", time.Hour)
	s.publish("orders", "b", "x", time.Hour)

	page := s.get("")
	page.want(t, http.StatusOK, "122 topics", "topic?topic=mail", "topic?topic=orders", "Page 1 of 2", "page=2")
	page.lacks(t, "topic?topic=topic-100")
	s.get("?page=2").want(t, http.StatusOK, "Page 2 of 2", "topic?topic=topic-100")
	s.get("?page=99").want(t, http.StatusOK, "Page 2 of 2")
	s.get("?search=ORD").want(t, http.StatusOK, "1 of 122", "topic?topic=orders")
	s.get("?search=nothing-like-it").want(t, http.StatusOK, "No topic's name contains")

	first := regexp.MustCompile(`<tr data-key="([^"]*)"`)
	for sort, want := range map[string]string{"": "mail", "scheduled": "orders", "dead": "mail", "no such column": "mail"} {
		page := s.get("?sort=" + url.QueryEscape(sort))
		if m := first.FindStringSubmatch(page.text); m == nil || m[1] != want {
			t.Errorf("sorted by %q: %q comes first, want %s", sort, m, want)
		}
	}
}

func TestEphemeral(t *testing.T) {
	t.Parallel()
	const banner = "Nothing is kept."
	newSite(t, dashboard.Options{Ephemeral: true}).get("check").want(t, http.StatusOK, banner)
	newSite(t, dashboard.Options{}).get("check").lacks(t, banner)
}

func TestListPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	for i := range 60 {
		s.publish("orders", fmt.Sprintf("id-%02d", i), "x", time.Hour+time.Duration(i)*time.Minute)
	}
	page := s.get("topic?topic=orders&ahead=day")
	page.want(t, http.StatusOK, "id-00", "id-49", "Next page")
	page.lacks(t, "id=id-50")
	next := regexp.MustCompile(`href="(topic\?[^"]*cursor=[^"]*)#events" rel="next"`).FindStringSubmatch(page.text)
	if next == nil {
		t.Fatalf("no link to the next page:\n%s", page.text)
	}
	second := s.get(strings.ReplaceAll(next[1], "&amp;", "&"))
	second.want(t, http.StatusOK, "id=id-50", "id=id-59", "First page", "ahead=day")
	second.lacks(t, "id=id-49", "Next page")

	s.get("topic?topic=orders&prefix=id-0").want(t, http.StatusOK, "id=id-09", "Clear")
	s.get("topic?topic=orders&prefix=zz").want(t, http.StatusOK, "passes the filter")
	s.get("topic?topic=orders&since=2999-01-01T00:00").want(t, http.StatusOK, "passes the filter", `value="2999-01-01T00:00:00"`)
	s.get("topic?topic=orders&state=dead").want(t, http.StatusOK, "Nothing is dead")
	s.get("topic?topic=orders&cursor=nonsense").want(t, http.StatusOK, "cannot be listed")
}

func TestSessions(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	s.get("sessions").want(t, http.StatusOK, "Nobody subscribes")
	worker := newQueue(t, s.env)
	if err := worker.Subscribe("orders", dueq.HandlerFunc(func(context.Context, *dueq.Event) error { return nil })); err != nil {
		t.Fatal(err)
	}
	s.eventually("the session is seen", func() bool {
		return strings.Contains(s.get("sessions").text, `href="topic?topic=orders"`)
	})
	s.get("sessions").want(t, http.StatusOK, "process subscribes", fmt.Sprint(os.Getpid()))
}

func TestForecast(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	for i, ahead := range []time.Duration{30 * time.Second, 30 * time.Minute, 31 * time.Minute, 20 * time.Hour, 400 * 24 * time.Hour} {
		s.publish("orders", fmt.Sprint(i), "x", ahead)
	}
	page := s.get("topic?topic=orders&ahead=hour")
	page.want(t, http.StatusOK, "minute <b>1</b>", "hour <b>3</b>", "day <b>4</b>", "later <b>1</b>", "3 events are due in the next hour")
	if n := strings.Count(page.text, `<rect class="bar"`); n < 2 || n > 3 {
		t.Errorf("%d bars, want 2 or 3", n)
	}
}

func TestEventPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	s.publish("orders", "a/b?c", `{"n":12345678901234567890,"ok":true}`, time.Hour,
		dueq.WithMetadata(map[string]string{"trace": "t-1"}), dueq.WithMaxAttempts(7))
	link := "event?" + url.Values{"topic": {"orders"}, "id": {"a/b?c"}}.Encode()
	s.get(link).want(t, http.StatusOK, "a/b?c", "scheduled", "t-1", "0 of 7", "Fire now",
		`<span class="key">&#34;n&#34;</span>`, `<span class="number">12345678901234567890</span>`, `<span class="word">true</span>`)
	s.get(link+"&view=hex").want(t, http.StatusOK, "00000000  7b 22 6e 22")
	s.get(link+"&view=text").want(t, http.StatusOK, `<code>{&#34;n&#34;:12345678901234567890`)

	s.kill("orders", "gone-wrong", "dial: connection refused")
	s.get("event?topic=orders&id=gone-wrong").want(t, http.StatusOK, "dead", "connection refused", "Requeue now", "Failed for good")

	s.get("event?topic=orders&id=nobody").want(t, http.StatusNotFound, "No such event", "topic?topic=orders")
}

func TestBody(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	binary := "\x00\x01\xff" + strings.Repeat("x", 20_000)
	s.publish("t", "../bin\"", binary, time.Hour)
	s.publish("t", "long", strings.Repeat("é", 50_000), time.Hour)
	s.publish("t", "none", "", time.Hour)

	page := s.get("event?topic=t&id=" + url.QueryEscape("../bin\""))
	page.want(t, http.StatusOK, "00 01 ff 78", "These are the first 8.0 KiB.")
	page.lacks(t, ">json<", ">text<")
	s.get("event?topic=t&id=long").want(t, http.StatusOK, "These are the first 64.0 KiB.")
	s.get("event?topic=t&id=none").want(t, http.StatusOK, "The body is empty")

	file := s.get("body?topic=t&id=" + url.QueryEscape("../bin\""))
	file.want(t, http.StatusOK)
	if file.text != binary {
		t.Errorf("%d bytes, want %d", len(file.text), len(binary))
	}
	for name, want := range map[string]string{
		"Content-Type": "application/octet-stream", "Content-Disposition": "attachment; filename=___bin_.bin", "X-Content-Type-Options": "nosniff",
	} {
		if got := file.Header.Get(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	s.get("body?topic=t&id=nobody").want(t, http.StatusNotFound)
}

// TestHostileText shows what is named and filled with HTML on every page.
func TestHostileText(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	s.publish(evil, evil, evil, time.Hour, dueq.WithMetadata(map[string]string{evil: evil}))
	quoted, err := json.Marshal(map[string]string{evil: evil})
	if err != nil {
		t.Fatal(err)
	}
	s.publish(evil, "json", string(quoted), time.Hour)
	s.kill(evil, "dead"+evil, evil)
	topic := "topic=" + url.QueryEscape(evil)
	for _, target := range []string{
		"", "?search=" + url.QueryEscape(evil) + "&sort=" + url.QueryEscape(evil),
		"topic?" + topic, "topic?" + topic + "&state=dead&prefix=dead&error=" + url.QueryEscape(evil), "topic?" + topic + "&ahead=" + url.QueryEscape(evil),
		"topic?" + topic + "&state=" + url.QueryEscape(evil), "topic?" + topic + "&since=" + url.QueryEscape(evil),
		"event?" + topic + "&id=" + url.QueryEscape(evil), "event?" + topic + "&id=json", "event?" + topic + "&id=json&view=" + url.QueryEscape(evil),
		"event?" + topic + "&id=" + url.QueryEscape("dead"+evil), "event?" + topic + "&id=no" + url.QueryEscape(evil),
		"check", "sessions", "confirm?do=purge&" + topic, "confirm?do=cancel&id=" + url.QueryEscape(evil) + "&" + topic,
		"confirm?do=" + url.QueryEscape(evil), url.PathEscape(evil),
	} {
		page := s.do(http.MethodGet, target, "", nil, "Cookie", "dueq_notice="+url.QueryEscape(evil))
		page.lacks(t, "<script>alert", "<img src=x", "onerror=alert(2)>")
		if page.StatusCode >= http.StatusInternalServerError {
			t.Errorf("%s: status %d", target, page.StatusCode)
		}
	}
	report := s.post("check")
	report.want(t, http.StatusOK, "All is well")
	report.lacks(t, "<script>alert")
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	page := s.get("")
	for _, rule := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if policy := page.Header.Get("Content-Security-Policy"); !strings.Contains(policy, rule) || strings.Contains(policy, "unsafe") {
			t.Errorf("policy %q, want %s", policy, rule)
		}
	}
	if control := page.Header.Get("Cache-Control"); control != "no-store" {
		t.Errorf("Cache-Control: %s", control)
	}
	page.lacks(t, " style=", "<script>", "onclick", `href="/`, `action="/`, `src="/`, "http://", "https://")

	link := regexp.MustCompile(`static/[a-z]+\.(?:css|js|svg)\?v=[0-9a-f]+`)
	files := link.FindAllString(page.text, -1)
	if len(files) != 3 {
		t.Fatalf("links to %q, want 3 files", files)
	}
	for _, file := range files {
		got := s.get(file)
		got.want(t, http.StatusOK)
		if got.Header.Get("Content-Type") == "" || !strings.Contains(got.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %v", file, got.Header)
		}
	}
	s.get("static/frame.html").want(t, http.StatusNotFound)
	s.get("static/..%2fdashboard.go").want(t, http.StatusNotFound)
	s.do(http.MethodGet, "no/such/page", "", nil, "Accept", "text/html,*/*").want(t, http.StatusNotFound, "Nothing here")
	s.get("no/such/page").want(t, http.StatusNotFound, "#no-route")
}

func TestUnderPrefix(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	s.publish("orders", "a", "x", time.Hour)
	mux := http.NewServeMux()
	mux.Handle("/admin/queue/", http.StripPrefix("/admin/queue", s.h))
	server := httptest.NewServer(mux)
	defer server.Close()
	follow := server.Client()
	answer, err := follow.PostForm(server.URL+"/admin/queue/fire", values([]string{"topic", "orders", "id", "a"}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if got := answer.Request.URL.RequestURI(); answer.StatusCode != http.StatusOK || got != "/admin/queue/topic?topic=orders" {
		t.Errorf("status %d at %s", answer.StatusCode, got)
	}
}

func TestRedisDown(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{})
	s.publish("orders", "a", "x", time.Hour)
	s.env.Mini.SetError("LOADING Redis is loading the dataset in memory")
	for _, target := range []string{"", "topic?topic=orders", "event?topic=orders&id=a", "sessions", "check"} {
		s.get(target).want(t, http.StatusBadGateway, "LOADING", "Is Redis up?")
	}
	s.env.Mini.SetError("")
	s.get("event?topic=orders&id=a").want(t, http.StatusOK)
}

// One topic that cannot be counted leaves the others as they are: it is shown with
// the reason, and the sums say that they are without it.
func TestBrokenTopic(t *testing.T) {
	t.Parallel()
	s := newSite(t, dashboard.Options{Every: time.Millisecond})
	for i := range 3 {
		s.publish("orders", fmt.Sprint("a", i), "x", time.Hour)
	}
	events := make([]dueq.NewEvent, 500)
	for i := range events {
		events[i] = dueq.NewEvent{EffectTime: time.Now().Add(time.Hour)}
	}
	if _, err := s.q.PublishEvents(t.Context(), "broken", events); err != nil {
		t.Fatal(err)
	}
	if err := s.env.Mini.Set("{"+s.env.Namespace+":broken}:ready", "not a list"); err != nil {
		t.Fatal(err)
	}
	page := s.get("")
	page.want(t, http.StatusOK, `>broken</a> <span class="chip dead">not counted</span>`, `<td class="why" colspan="7">`, "WRONGTYPE",
		"1 of 2 topics could not be counted: the sums are without it.", `<dt>Scheduled</dt><dd>3</dd>`, `data-label="Scheduled">3</td>`)
	if n := strings.Count(page.text, `class="why"`); n != 1 {
		t.Errorf("%d topics are not counted", n)
	}
	s.get("?sort=scheduled").want(t, http.StatusOK, "not counted")
	s.get("topic?topic=broken").want(t, http.StatusBadGateway, "WRONGTYPE")
	s.get("topic?topic=orders").want(t, http.StatusOK, `href="event?id=a0&amp;topic=orders"`)
	s.post("check").want(t, http.StatusOK, "It was not looked at everything", "WRONGTYPE", "Nothing was found in the rest: 3 events in 1 topic")

	// When it is back, the sums jump, but nothing was published.
	s.env.Mini.Del("{" + s.env.Namespace + ":broken}:ready")
	s.eventually("it is counted", func() bool {
		page = s.get("")
		return !strings.Contains(page.text, "not counted")
	})
	page.want(t, http.StatusOK, `<dt>Scheduled</dt><dd>503</dd>`, `published <b>0</b>`)
	page.lacks(t, "could not be counted")
}
