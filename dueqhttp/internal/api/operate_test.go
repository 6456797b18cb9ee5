package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// page is a page of a list.
type page struct {
	Events []event
	Next   string
}

func TestList(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		s := newService(t, env)
		for i := range 25 {
			s.want(201, nil, "POST", "/v1/topics/t/events", fmt.Sprintf(`{"id": "e%02d", "text": "déjà %d", "in": "%dm"}`, i, i, i+10))
		}
		var seen []string
		for cursor := ""; ; {
			var p page
			s.want(200, &p, "GET", "/v1/topics/t/events?state=scheduled&limit=10&preview=3&cursor="+cursor, "")
			for _, e := range p.Events {
				seen = append(seen, e.ID)
				if e.State != "scheduled" || e.Text == nil || *e.Text != "dé" || e.BodySize < 8 {
					t.Errorf("%+v", e)
				}
			}
			if cursor = p.Next; cursor == "" {
				break
			}
		}
		if len(seen) != 25 {
			t.Errorf("%d events: %q", len(seen), seen)
		}
		var p page
		if s.want(200, &p, "GET", "/v1/topics/t/events?state=scheduled&id_prefix=e1", ""); len(p.Events) != 10 || p.Events[0].Text != nil {
			t.Errorf("%+v", p)
		}
		since := time.Now().Add(29*time.Minute + 30*time.Second).UTC().Format(time.RFC3339)
		if s.want(200, &p, "GET", "/v1/topics/t/events?state=scheduled&limit=500&since="+since, ""); len(p.Events) != 5 {
			t.Errorf("%d events", len(p.Events))
		}
		if got := s.want(200, nil, "GET", "/v1/topics/t/events?state=dead", ""); got.body != "{\"events\":[]}\n" {
			t.Errorf("%q", got.body)
		}
		s.refused(422, "invalid", "GET", "/v1/topics/t/events?state=scheduled&cursor=nonsense", "")
		var ahead struct{ Due []struct{ Count int } }
		if s.want(200, &ahead, "GET", "/v1/topics/t/forecast?within=15m30s,1h", ""); len(ahead.Due) != 2 || ahead.Due[0].Count != 6 || ahead.Due[1].Count != 19 {
			t.Errorf("%+v", ahead)
		}
	})
}

func TestRequeue(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		s := newService(t, env)
		for i := range 5 {
			s.want(201, nil, "POST", "/v1/topics/t/events", fmt.Sprintf(`{"id": "e%d"}`, i))
		}
		for dead := 0; dead < 5; {
			for _, e := range s.claim(`{"max": 5}`) {
				s.want(204, nil, "POST", "/v1/deliveries/"+e.Receipt+"/fail", `{"error": "<b>`+e.ID+`</b>"}`)
				dead++
			}
		}
		var p page
		if s.want(200, &p, "GET", "/v1/topics/t/events?state=dead&error=e3", ""); len(p.Events) != 1 || p.Events[0].LastError != "<b>e3</b>" {
			t.Errorf("%+v", p)
		}
		for body, want := range map[string]int{
			`{"id_prefix": "e3", "in": "1h"}`:                                 1,
			`{"error": "e4", "in": "1h"}`:                                     1,
			`{"until": "2020-01-01T00:00:00Z"}`:                               0,
			`{"id_prefix": "e1", "since": "2020-01-01T00:00:00Z", "in":"1h"}`: 1,
		} {
			var count struct{ Count int }
			if s.want(200, &count, "POST", "/v1/topics/t/requeue", body); count.Count != want {
				t.Errorf("%s: %d, want %d", body, count.Count, want)
			}
		}
		var count struct{ Count int }
		if s.want(200, &count, "POST", "/v1/topics/t/purge", `{"states": ["scheduled"]}`); count.Count != 3 {
			t.Errorf("purged %d", count.Count)
		}
		if s.want(200, &count, "POST", "/v1/topics/t/requeue", `{"all": true, "at": "2036-01-01T00:00:00Z"}`); count.Count != 2 {
			t.Errorf("requeued %d", count.Count)
		}
		if got := s.stats(); got.Scheduled != 2 || got.Dead != 0 {
			t.Errorf("stats %+v", got)
		}
		for _, body := range []string{`{"states": []}`, `{"states": null}`, `{"states": ["leased"]}`, `{"states": ["lost"]}`} {
			s.refused(422, "invalid", "POST", "/v1/topics/t/purge", body)
		}
		// The zero time of some languages is no time, not one before which all is.
		s.refused(422, "invalid", "POST", "/v1/topics/t/requeue", `{"until": "0001-01-01T00:00:00Z"}`)
		if s.want(200, &count, "POST", "/v1/topics/t/purge", ""); count.Count != 2 {
			t.Errorf("purged %d", count.Count)
		}
	})
}

func TestReschedule(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	s.want(201, nil, "POST", "/v1/topics/t/events", `{"id": "e", "in": "1h"}`)
	var out struct {
		EffectTime string `json:"effect_time"`
	}
	s.want(200, &out, "POST", "/v1/topics/t/events/e/reschedule", `{"at": "2036-01-02T03:04:05.0001Z"}`)
	var e event
	if s.want(200, &e, "GET", "/v1/topics/t/events/e", ""); out.EffectTime != "2036-01-02T03:04:05.001Z" || e.Due != out.EffectTime {
		t.Errorf("%+v, %+v", out, e)
	}
	s.want(200, nil, "POST", "/v1/topics/t/events/e/reschedule", `{"in": "0s"}`)
	if got := s.claim(`{"wait": "20s"}`); len(got) != 1 || got[0].ID != "e" {
		t.Errorf("claimed %+v", got)
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		s := newService(t, env)
		s.want(204, nil, "POST", "/v1/topics/t/pause", "")
		if !s.stats().Paused {
			t.Error("not paused")
		}
		s.want(201, nil, "POST", "/v1/topics/t/events", `{}`)
		if got := s.claim(`{"wait": "0s"}`); len(got) != 0 {
			t.Errorf("claimed %+v from a paused topic", got)
		}
		s.want(204, nil, "POST", "/v1/topics/t/resume", "{}")
		if got := s.claim(`{"wait": "20s"}`); len(got) != 1 || s.stats().Paused {
			t.Errorf("claimed %+v", got)
		}
	})
}

func TestSessions(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	if got := s.want(200, nil, "GET", "/v1/sessions", ""); got.body != "{\"sessions\":[]}\n" {
		t.Errorf("%q", got.body)
	}
	q, err := dueq.New(s.env.NewClient(), dueq.Options{Namespace: s.env.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.ShutDown(t.Context()) }) // the context has ended: at once
	if _, err := q.Consume("t"); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "a session", func() bool {
		return strings.Contains(s.want(200, nil, "GET", "/v1/sessions", "").body, `"topics":["t"]`)
	})
}
