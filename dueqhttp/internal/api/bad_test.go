package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq/dueqhttp/internal/api"
	"github.com/dueq-io/dueq/internal/redistest"
)

// Whatever is wrong with a call: the status and the kind of problem are right, and
// nothing has changed.
func TestBadCalls(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	s.want(201, nil, "POST", "/v1/topics/t/events", `{"id": "e", "in": "1h"}`)
	before := s.env.Mini.Dump()
	const events, event, claim = "/v1/topics/t/events", "/v1/topics/t/events/e", "/v1/topics/t/claim"
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for _, c := range []struct {
		status                            int
		kind, method, path, body, wantsIn string
	}{
		{400, "bad-request", "POST", events, `{`, "the JSON ends too early"},
		{400, "bad-request", "POST", events, `nope`, "not a JSON object"},
		{400, "bad-request", "POST", events, `[]`, "not a JSON object"},
		{400, "bad-request", "POST", events, `null`, "not a JSON object"},
		{400, "bad-request", "POST", events, `{} {}`, "something follows"},
		{400, "bad-request", "POST", events, `{"id": }`, "at byte"},
		{400, "bad-request", "POST", events, `{"idd": "x"}`, `unknown field "idd"`},
		{400, "bad-request", "POST", events, `{"` + strings.Repeat("x", 9000) + `": 1}`, `unknown field "xxx`},
		{400, "bad-request", "POST", events, `{"id": 5}`, `field "id"`},
		{400, "bad-request", "POST", events, `{"metadata": {"a": 1}}`, "metadata"},
		{400, "bad-request", "POST", events, `{"max_attempts": 1.5}`, "max_attempts"},
		{400, "bad-request", "POST", events, `{"base64": "!"}`, "base64"},
		{400, "bad-request", "POST", events, "{\"text\": \"\xff\"}", "UTF-8"},
		{400, "bad-request", "POST", events, `{"body": ` + deep + `}`, "depth"},
		{422, "invalid", "POST", events, `{"body": 1, "text": "x"}`, "exclude each other"},
		{422, "invalid", "POST", events, `{"in": "1h", "at": "2030-01-01T00:00:00Z"}`, "exclude each other"},
		{422, "invalid", "POST", events, `{"in": "soon"}`, `"soon"`},
		{422, "invalid", "POST", events, `{"in": "900000h"}`, "100 years"},
		{422, "invalid", "POST", events, `{"at": "tomorrow"}`, `"tomorrow"`},
		{422, "invalid", "POST", events, `{"at": "2200-01-01T00:00:00Z"}`, "100 years"},
		{422, "invalid", "POST", events, `{"id": ""}`, "empty"},
		{422, "invalid", "POST", events, `{"id": "a{b"}`, "a{b"},
		{422, "invalid", "POST", events, `{"id": "` + strings.Repeat("x", 1025) + `"}`, "1024"},
		{422, "invalid", "POST", events, `{"on_duplicate": "keep"}`, "id"},
		{422, "invalid", "POST", events, `{"id": "n", "on_duplicate": "drop"}`, "drop"},
		{422, "invalid", "POST", events, `{"max_attempts": 0}`, "max_attempts"},
		{422, "invalid", "POST", events, `{"max_attempts": 99999999}`, "99999999"},
		{422, "invalid", "POST", events, `{"metadata": {"a": "` + strings.Repeat("x", 17_000) + `"}}`, "metadata"},
		{422, "invalid", "POST", "/v1/topics/%7B/events", `{}`, "topic"},
		{422, "invalid", "POST", "/v1/topics/t%0A/events", `{}`, "topic"},
		{422, "invalid", "POST", "/v1/topics/t%2F5/events", `{}`, "topic"},
		{422, "invalid", "POST", "/v1/topics/" + strings.Repeat("x", 256) + "/events", `{}`, "topic"},
		{400, "bad-request", "POST", "/v1/topics/t/raw?soon=1", `x`, `"soon"`},
		{400, "bad-request", "POST", "/v1/topics/t/raw?in=1h&in=2h", `x`, "twice"},
		{400, "bad-request", "POST", "/v1/topics/t/raw?in=%zz", `x`, "query"},
		{400, "bad-request", "POST", "/v1/topics/t/raw?id=%ff", `x`, "UTF-8"},
		{422, "invalid", "POST", "/v1/topics/t/raw?max_attempts=many", `x`, "many"},
		{422, "invalid", "POST", "/v1/topics/t/raw?id=", `x`, "empty"},
		{404, "no-event", "GET", "/v1/topics/t/events/none", "", "none"},
		{404, "no-event", "GET", "/v1/topics/never/events/e", "", "e"},
		{404, "no-event", "DELETE", "/v1/topics/t/events/none", "", "none"},
		{404, "no-event", "POST", "/v1/topics/t/events/none/reschedule", `{"in": "1s"}`, "none"},
		{404, "no-event", "POST", "/v1/topics/t/events/none/requeue", ``, "none"},
		{422, "invalid", "POST", event + "/reschedule", `{}`, "0s"},
		{422, "invalid", "POST", event + "/reschedule", `{"at": "2200-01-01T00:00:00Z"}`, "100 years"},
		{400, "bad-request", "POST", event + "/reschedule", `{"to": "1s"}`, "to"},
		{409, "not-dead", "POST", event + "/requeue", ``, "scheduled"},
		{422, "invalid", "GET", event + "?bodies=hex", "", "hex"},
		{422, "invalid", "GET", "/v1/topics/t/events/%7B", "", "id"},
		{400, "bad-request", "DELETE", event + "?force=1", "", "force"},
		{422, "invalid", "GET", events, "", "state"},
		{422, "invalid", "GET", events + "?state=lost", "", "lost"},
		{422, "invalid", "GET", events + "?state=dead&limit=0", "", "limit"},
		{422, "invalid", "GET", events + "?state=dead&limit=501", "", "limit"},
		{422, "invalid", "GET", events + "?state=dead&preview=-1", "", "preview"},
		{422, "invalid", "GET", events + "?state=dead&since=yesterday", "", "yesterday"},
		{422, "invalid", "GET", "/v1/topics/t/forecast?within=soon", "", "soon"},
		{422, "invalid", "GET", "/v1/topics/t/forecast?within=1h,1m", "", "order"},
		{422, "invalid", "GET", "/v1/topics/t/forecast?within=", "", "order"},
		{422, "invalid", "GET", "/v1/topics/t/forecast?within=" + strings.Repeat("1m,", 100) + "1m", "", "101"},
		{422, "invalid", "GET", "/v1/topics/%7B/stats", "", "topic"},
		{400, "bad-request", "POST", "/v1/topics/t/purge", `{"state": "all of it"}`, "state"},
		{422, "invalid", "POST", "/v1/topics/t/requeue", ``, "all"},
		{422, "invalid", "POST", "/v1/topics/t/requeue", `{"all": true, "id_prefix": "x"}`, "all"},
		{422, "invalid", "POST", "/v1/topics/t/requeue", `{"since": "x"}`, "since"},
		{400, "bad-request", "POST", "/v1/topics/t/check", `{"repair": "yes"}`, "repair"},
		{422, "invalid", "POST", claim, `{"max": 0}`, "max"},
		{422, "invalid", "POST", claim, `{"max": 501}`, "max"},
		{422, "invalid", "POST", claim, `{"wait": "2m"}`, "wait"},
		{422, "invalid", "POST", claim, `{"wait": "-1s"}`, "wait"},
		{422, "invalid", "POST", claim, `{"visibility": "1ms"}`, "visibility"},
		{422, "invalid", "POST", claim, `{"bodies": "hex"}`, "hex"},
		{422, "invalid", "POST", "/v1/topics/%7B/claim", ``, "topic"},
		{422, "invalid", "POST", "/v1/deliveries/nonsense/ack", ``, "nonsense"},
		{400, "bad-request", "POST", "/v1/deliveries/nonsense/ack", `{"after": "1s"}`, "after"},
		{422, "invalid", "POST", "/v1/deliveries/nonsense/retry", `{"after": "later"}`, "later"},
		{413, "too-large", "POST", claim, `{"wait": "` + strings.Repeat(" ", 70_000) + `"}`, "65536"},
		{404, "no-route", "GET", "/v1/nothing", "", "path"},
		{404, "no-route", "GET", "/v1/topics/t", "", "path"},
		{404, "no-route", "DELETE", "/v1/topics/t/events/", "", "path"},
		{404, "no-route", "POST", "/v1/topics//purge", "", "empty segment"},
		{404, "no-route", "POST", "/v1/topics/../purge", "", "dots"},
		{405, "no-method", "PUT", events, `{}`, "PUT"},
		{405, "no-method", "DELETE", "/v1/topics/t/purge", "", "DELETE"},
		{405, "no-method", "BREW", "/v1/topics", "", "BREW"},
	} {
		p := s.refused(c.status, c.kind, c.method, c.path, c.body)
		if !strings.Contains(p.Detail+p.Field, c.wantsIn) && c.status != 404 && c.kind != "too-large" {
			t.Errorf("%s %.80s %.80s: %q does not mention %q", c.method, c.path, c.body, p.Detail, c.wantsIn)
		}
		if len(p.Detail) > 600 {
			t.Errorf("%s %.80s %.80s: a detail of %d bytes", c.method, c.path, c.body, len(p.Detail))
		}
	}
	for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "json"} {
		s.refused(415, "media-type", "POST", events, `{}`, "Content-Type", media)
	}
	if got := s.call("PUT", events, ""); got.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow: %q", got.header.Get("Allow"))
	}
	if after := s.env.Mini.Dump(); after != before {
		t.Errorf("something has changed:\n%s\n\nwas:\n%s", after, before)
	}
}

// Every route needs its token.
func TestTokens(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	before := s.env.Mini.Dump()
	for _, route := range new(api.API).Routes() {
		path := strings.NewReplacer("{topic}", "t", "{id}", "e", "{receipt}", "r").Replace(route.Path)
		if path == "/v1/openapi.json" {
			continue
		}
		for _, token := range []string{"", "wrong-token-0123456789"} {
			s.token = token
			p := s.refused(401, "unauthorized", route.Method, path, "")
			if got := s.call(route.Method, path, ""); got.header.Get("WWW-Authenticate") == "" || strings.Contains(p.Detail, "wrong") {
				t.Errorf("%s %s: %+v", route.Method, path, got)
			}
		}
		s.token = readToken
		if route.Method != http.MethodGet {
			s.refused(403, "read-only", route.Method, path, "")
		} else if got := s.call(route.Method, path, ""); got.status == 401 || got.status == 403 {
			t.Errorf("%s %s with the token for reading: %+v", route.Method, path, got)
		}
	}
	if after := s.env.Mini.Dump(); after != before {
		t.Errorf("something has changed:\n%s", after)
	}
}

// Without Redis every call that needs it says so, and when to try again.
func TestRedisDown(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	s.env.Mini.SetError("LOADING Redis is loading the dataset in memory")
	for _, c := range [][3]string{
		{"GET", "/v1/topics", ""},
		{"GET", "/v1/stats", ""},
		{"GET", "/v1/topics/t/stats", ""},
		{"POST", "/v1/topics/t/events", `{}`},
		{"GET", "/v1/topics/t/events/e", ""},
		{"DELETE", "/v1/topics/t/events/e", ""},
		{"POST", "/v1/topics/t/purge", ""},
	} {
		got := s.call(c[0], c[1], c[2])
		if got.status != 503 || got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, "Redis") {
			t.Errorf("%s %s: %+v", c[0], c[1], got)
		}
	}
	s.env.Mini.SetError("")
	s.env.Mini.Close()
	p := s.refused(503, "redis-down", "GET", "/v1/topics", "")
	if strings.Contains(p.Detail, "127.0.0.1") {
		t.Errorf("an address in %q", p.Detail)
	}
	if err := s.env.Mini.Restart(); err != nil {
		t.Fatal(err)
	}
	s.want(200, nil, "GET", "/v1/topics", "")
}

// One topic that cannot be counted has the reason in the place of its numbers, and
// the others have theirs.
func TestStatsWithoutOne(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		s := newService(t, env)
		for i := range 3 {
			s.want(201, nil, "POST", fmt.Sprintf("/v1/topics/t%d/events", i), `{"in": "1h"}`)
		}
		if err := env.Client.Set(t.Context(), "{"+env.Namespace+":t1}:dead", "no sorted set", 0).Err(); err != nil {
			t.Fatal(err)
		}
		var all struct{ Topics []map[string]any }
		s.want(200, &all, "GET", "/v1/stats", "")
		if len(all.Topics) != 3 {
			t.Fatalf("%+v", all)
		}
		for i, topic := range all.Topics {
			why, _ := topic["error"].(string)
			if topic["topic"] != fmt.Sprint("t", i) || strings.Contains(why, "Redis") != (i == 1) || (topic["scheduled"] == 1.0) != (i != 1) || i == 1 && len(topic) != 2 {
				t.Errorf("%+v", topic)
			}
		}
		if logged := s.log.FilterMessage("topic not counted").FilterField(zap.String("topic", "t1")); logged.Len() != 1 {
			t.Errorf("logged %+v", s.log.All())
		}
		s.refused(503, "redis-down", "GET", "/v1/topics/t1/stats", "")
	})
}

// What the service shows of a topic and itself.
func TestShows(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	var who struct {
		Service, Access     string
		Ephemeral, Draining bool
	}
	if s.want(200, &who, "GET", "/v1", ""); who.Service != "dueq" || who.Access != "full" || who.Ephemeral || who.Draining {
		t.Errorf("%+v", who)
	}
	s.token = readToken
	if s.want(200, &who, "GET", "/v1", ""); who.Access != "read" {
		t.Errorf("%+v", who)
	}
	s.token = fullToken
	if got := s.want(200, nil, "GET", "/v1/topics", ""); got.body != "{\"topics\":[]}\n" {
		t.Errorf("%q", got.body)
	}
	if got := s.want(200, nil, "GET", "/v1/push", ""); got.body != "{\"push\":[]}\n" {
		t.Errorf("%q", got.body)
	}
	for i := range 3 {
		s.want(201, nil, "POST", fmt.Sprintf("/v1/topics/t%d/events", i), `{"in": "1h"}`)
	}
	var all struct {
		Topics []struct {
			Topic     string
			Scheduled int
		}
	}
	if s.want(200, &all, "GET", "/v1/stats", ""); len(all.Topics) != 3 || all.Topics[2].Topic != "t2" || all.Topics[2].Scheduled != 1 {
		t.Errorf("%+v", all)
	}
	var count struct{ Count int }
	if s.want(200, &count, "POST", "/v1/topics/t0/purge", ""); count.Count != 1 {
		t.Errorf("%+v", count)
	}
	var report struct {
		Events, Places, Left int
		Findings             []any
	}
	if s.want(200, &report, "POST", "/v1/topics/t1/check", `{"repair": true}`); report.Events != 1 || report.Places != 1 || len(report.Findings) != 0 {
		t.Errorf("%+v", report)
	}
	if got := s.call("GET", "/v1/topics/t0/events/x", "", "X-Request-Id", "mine"); got.header.Get("X-Request-Id") != "mine" {
		t.Errorf("%+v", got)
	}
}
