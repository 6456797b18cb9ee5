package api_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq/internal/redistest"
)

func TestPublish(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		s := newService(t, env)
		for body, want := range map[string]string{
			`{"body": {"order": 42, "a<b": 1.50}}`: `"body":{"order":42,"a<b":1.50}`,
			`{"body": null, "in": "1h"}`:           `"body":null`,
			`{"body": "x"}`:                        `"body":"x"`,
			`{"text": "plain <b>\u00e9"}`:          `"text":"plain <b>é"`,
			`{"text": "5"}`:                        `"body":5`,
			`{"base64": "AP8="}`:                   `"base64":"AP8="`,
			`{}`:                                   `"body_size":0,"effect_time"`,
			``:                                     `"body_size":0,"effect_time"`,
			`{"at": "2036-01-02T03:04:05.678+02:00"}`:           `"due":"2036-01-02T01:04:05.678Z"`,
			`{"in":"1h","max_attempts":3,"metadata":{"k":"v"}}`: `"attempts":0,"max_attempts":3,"metadata":{"k":"v"}`,
		} {
			var out struct{ ID string }
			got := s.want(201, &out, "POST", "/v1/topics/t/events", body)
			if location := got.header.Get("Location"); location != "events/"+out.ID || out.ID == "" {
				t.Errorf("id %q at %q", out.ID, location)
			}
			if got := s.want(200, nil, "GET", "/v1/topics/t/events/"+out.ID, ""); !strings.Contains(got.body, want) {
				t.Errorf("%s: %s, want %s", body, got.body, want)
			}
		}
	})
}

func TestPublishWithID(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		s := newService(t, env)
		for _, id := range []string{"a", "a/b", "..", "ü ?#%", `"<b>`, "deliveries"} {
			path := "/v1/topics/t%2Fu/events/" + strings.ReplaceAll(url.PathEscape(id), ".", "%2E")
			publish := func(body, policy string) string {
				return fmt.Sprintf(`{"id": %q, "body": %s, "in": "1h"%s}`, id, body, policy)
			}
			s.want(201, nil, "POST", "/v1/topics/t%2Fu/events", publish("1", ""))
			s.refused(409, "duplicate-id", "POST", "/v1/topics/t%2Fu/events", publish("2", ""))
			s.refused(409, "duplicate-id", "POST", "/v1/topics/t%2Fu/events", publish("2", `, "on_duplicate": "reject"`))
			s.want(201, nil, "POST", "/v1/topics/t%2Fu/events", publish("3", `, "on_duplicate": "keep"`))
			var e event
			if s.want(200, &e, "GET", path, ""); e.ID != id || string(e.Body) != "1" {
				t.Errorf("id %q: %+v", id, e)
			}
			s.want(201, nil, "POST", "/v1/topics/t%2Fu/events", publish("4", `, "on_duplicate": "replace"`))
			if s.want(200, &e, "GET", path, ""); string(e.Body) != "4" {
				t.Errorf("id %q: %+v", id, e)
			}
			s.want(204, nil, "DELETE", path, "")
			s.refused(404, "no-event", "GET", path, "")
			s.refused(404, "no-event", "DELETE", path, "")
		}
	})
}

func TestPublishRaw(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	raw := "\x00\xff not JSON {"
	s.want(201, nil, "POST", "/v1/topics/t/raw?id=a%2Fb&in=90m&max_attempts=2&on_duplicate=keep", raw, "Content-Type", "image/png")
	var e event
	s.want(200, &e, "GET", "/v1/topics/t/events/a%2Fb", "")
	due, err := time.Parse(time.RFC3339, e.Due)
	if string(e.Base64) != raw || e.MaxAttempts != 2 || err != nil || time.Until(due) < time.Hour {
		t.Errorf("%+v, %v", e, err)
	}
	s.want(201, nil, "POST", "/v1/topics/t/raw?id=j", `{"a": 1}`)
	if s.want(200, &e, "GET", "/v1/topics/t/events/j?bodies=base64", ""); string(e.Base64) != `{"a": 1}` {
		t.Errorf("%+v", e)
	}
	s.refused(413, "too-large", "POST", "/v1/topics/t/raw", strings.Repeat("x", maxBody+1))
	s.want(201, nil, "POST", "/v1/topics/t/raw", strings.Repeat("x", maxBody))
}

func TestBodySizes(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	full := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", maxBody)))
	s.want(201, nil, "POST", "/v1/topics/t/events", `{"base64": "`+full+`"}`)
	s.want(201, nil, "POST", "/v1/topics/t/events", `{"text": "`+strings.Repeat(`\n`, maxBody)+`"}`)
	s.refused(413, "too-large", "POST", "/v1/topics/t/events", `{"text": "`+strings.Repeat("x", maxBody+1)+`"}`)
	s.refused(413, "too-large", "POST", "/v1/topics/t/events", `{"text": "`+strings.Repeat("x", 100_000)+`"}`)
}
