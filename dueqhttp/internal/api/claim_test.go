package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

func TestClaimAndSettle(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		s := newService(t, env)
		for i := range 5 {
			s.want(201, nil, "POST", "/v1/topics/t/events", fmt.Sprintf(`{"id": "e%d", "body": {"n": %d}, "metadata": {"k": "v"}}`, i, i))
		}
		held := make(map[string]event)
		for len(held) < 5 {
			for _, e := range s.claim(`{"max": 3, "wait": "20s", "visibility": "10m"}`) {
				held[e.ID] = e
			}
		}
		e := held["e3"]
		expires, err := time.Parse(time.RFC3339, e.ExpiresAt)
		if string(e.Body) != `{"n":3}` || e.Attempt != 1 || e.MaxAttempts != 10 || e.Topic != "t" || e.Metadata["k"] != "v" || err != nil || time.Until(expires) < time.Minute {
			t.Errorf("claimed %+v, %v", e, err)
		}
		settle := func(id, verb, body string) {
			t.Helper()
			s.want(204, nil, "POST", "/v1/deliveries/"+held[id].Receipt+"/"+verb, body)
		}
		settle("e0", "extend", `{"visibility": "20m"}`)
		settle("e0", "ack", "")
		settle("e1", "retry", `{"after": "1h", "error": "not <now>"}`)
		settle("e2", "fail", `{"error": "never"}`)
		settle("e3", "release", "{}")
		if got := s.stats(); got.Scheduled != 1 || got.Dead != 1 || got.Leased != 1 || got.Ready != 1 || got.Counters["acked"] != 1 {
			t.Errorf("stats %+v", got)
		}
		if s.want(200, &e, "GET", "/v1/topics/t/events/e1", ""); e.State != "scheduled" || e.LastError != "not <now>" || e.Attempts != 1 {
			t.Errorf("retried: %+v", e)
		}
		if s.want(200, &e, "GET", "/v1/topics/t/events/e2", ""); e.State != "dead" || e.LastError != "never" || e.DiedAt == "" {
			t.Errorf("failed: %+v", e)
		}
		s.refused(409, "leased", "DELETE", "/v1/topics/t/events/e4", "")
		s.refused(409, "not-dead", "POST", "/v1/topics/t/events/e1/requeue", "")
		s.want(200, nil, "POST", "/v1/topics/t/events/e2/requeue", `{"in": "1h"}`)
		for _, verb := range []string{"ack", "retry", "fail", "release", "extend"} {
			s.refused(410, "receipt-ended", "POST", "/v1/deliveries/"+held["e0"].Receipt+"/"+verb, "")
		}
		again := s.claim(`{"wait": "20s", "bodies": "base64"}`)
		if len(again) != 1 || again[0].ID != "e3" || again[0].Attempt != 1 || string(again[0].Base64) != `{"n": 3}` || again[0].Receipt == held["e3"].Receipt {
			t.Errorf("released: %+v", again)
		}
	})
}

func TestSettleMany(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	for range 20 {
		s.want(201, nil, "POST", "/v1/topics/t/events", `{}`)
	}
	var receipts []string
	for len(receipts) < 20 {
		for _, e := range s.claim(`{"max": 500}`) {
			receipts = append(receipts, e.Receipt)
		}
	}
	foreign := "AAAAAAAA" + receipts[0][8:]
	settle := func(verb string, receipts []string, more string) (out struct {
		Failed  int
		Results []struct {
			Receipt string
			Error   *refusal
		}
	},
	) {
		t.Helper()
		list, _ := json.Marshal(receipts)
		s.want(200, &out, "POST", "/v1/deliveries/"+verb, `{"receipts": `+string(list)+more+`}`)
		return out
	}
	if out := settle("extend", receipts, `, "visibility": "1h"`); out.Failed != 0 || len(out.Results) != 20 {
		t.Errorf("extend: %+v", out)
	}
	out := settle("ack", append(receipts[:5:5], receipts[0][:9]+"AAAAAAAAAAAAAAAAAAAAAAAAAA", foreign, "nonsense"), "")
	kinds := ""
	for i, r := range out.Results {
		if i < 5 && (r.Error != nil || r.Receipt != receipts[i]) {
			t.Errorf("ack %d: %+v", i, r)
		}
		if r.Error != nil {
			_, kind, _ := strings.Cut(r.Error.Type, "#")
			kinds += kind + " "
		}
	}
	if out.Failed != 3 || kinds != "receipt-ended receipt-foreign invalid " {
		t.Errorf("ack: %d failed: %s", out.Failed, kinds)
	}
	settle("retry", receipts[5:8], `, "after": "1h"`)
	settle("fail", receipts[8:10], `, "error": "x"`)
	settle("release", receipts[10:12], "")
	if got := s.stats(); got.Scheduled != 3 || got.Dead != 2 || got.Ready != 2 || got.Leased != 8 || got.Counters["acked"] != 5 {
		t.Errorf("stats %+v", got)
	}
	if p := s.refused(410, "receipt-foreign", "POST", "/v1/deliveries/"+foreign+"/ack", ""); !strings.Contains(p.Detail, "another process") {
		t.Errorf("%+v", p)
	}
	for _, body := range []string{"", `{}`, `{"receipts": []}`} {
		s.refused(422, "invalid", "POST", "/v1/deliveries/ack", body)
	}
	if p := s.refused(400, "bad-request", "POST", "/v1/deliveries/ack", `{"receipts": ["x"], "after": "1s"}`); p.Field != "after" {
		t.Errorf("%+v", p)
	}
}

// An event that is not settled in time comes again, one attempt used up, and its
// old receipt is worth nothing.
func TestVisibility(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		s := newService(t, env)
		s.want(201, nil, "POST", "/v1/topics/t/events", `{"id": "e"}`)
		first := s.claim(`{"visibility": "100ms", "wait": "20s"}`)
		if len(first) != 1 {
			t.Fatalf("claimed %+v", first)
		}
		second := s.claim(`{"wait": "30s"}`)
		if len(second) != 1 || second[0].Attempt != 2 {
			t.Fatalf("claimed again %+v", second)
		}
		s.refused(410, "receipt-ended", "POST", "/v1/deliveries/"+first[0].Receipt+"/ack", "")
		s.want(204, nil, "POST", "/v1/deliveries/"+second[0].Receipt+"/ack", "")
	})
}

// An event for a caller that went away while it waited goes to the next one, at no
// cost in attempts.
func TestCallerGoesAway(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		s := newService(t, env)
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/topics/t/claim", strings.NewReader(`{"wait": "1m"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.token)
		r.Header.Set("Content-Type", "application/json")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if res, err := http.DefaultClient.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
		}()
		redistest.Eventually(t, "a claim that waits", func() bool { return s.uses("t") })
		cancel()
		<-ended
		redistest.Eventually(t, "the service has noticed", func() bool {
			return s.log.FilterField(zap.Int("status", 499)).Len() == 1
		})
		s.want(201, nil, "POST", "/v1/topics/t/events", `{"id": "e"}`)
		if got := s.claim(`{"wait": "30s"}`); len(got) != 1 || got[0].Attempt != 1 {
			t.Errorf("claimed %+v", got)
		}
	})
}

// A caller that stops sending, and listens, is not told that a call that was given
// up succeeded, nor that Redis is down.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	for path, want := range map[string]string{"claim": "", "events": "HTTP/1.1 201 "} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		body := map[string]string{"claim": `{"wait": "1m"}`, "events": "{}"}[path]
		_, err = fmt.Fprintf(conn, "POST /v1/topics/%s/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
			"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, path, s.token, len(body), body)
		if err == nil {
			err = conn.(*net.TCPConn).CloseWrite()
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		if err != nil || len(got) > 0 && (want == "" || !strings.HasPrefix(string(got), want)) {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

// uses reports whether the topic is registered: somebody uses it.
func (s *service) uses(topic string) bool {
	topics, err := s.q.Topics(s.t.Context())
	return err == nil && slices.Contains(topics, topic)
}

// Draining ends the claims that wait, and lets held events be settled.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	s.want(201, nil, "POST", "/v1/topics/t/events", `{"id": "e"}`)
	held := s.claim(`{"wait": "20s"}`)
	ended := make(chan answer)
	go func() { ended <- s.call("POST", "/v1/topics/u/claim", `{"wait": "1m"}`) }()
	redistest.Eventually(t, "a claim that waits", func() bool { return s.uses("u") })
	s.h.Drain()
	select {
	case got := <-ended:
		if got.status != 200 || !strings.Contains(got.body, `{"events":[]}`) {
			t.Errorf("%+v", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("the claim waits on")
	}
	s.want(204, nil, "POST", "/v1/deliveries/"+held[0].Receipt+"/ack", "")
	if got := s.call("POST", "/v1/topics/t/claim", ""); got.status != 503 || got.header.Get("Retry-After") != "1" {
		t.Errorf("%+v", got)
	}
}

// A topic that the process handles itself cannot be claimed from.
func TestSubscribedHere(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	err := s.q.Subscribe("t", dueq.HandlerFunc(func(context.Context, *dueq.Event) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	s.refused(409, "subscribed-here", "POST", "/v1/topics/t/claim", "")
}

// A claim does not wait when it is told so.
func TestClaimWithoutWaiting(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	if got := s.claim(`{"wait": "0s"}`); len(got) != 0 {
		t.Errorf("claimed %+v", got)
	}
	s.want(201, nil, "POST", "/v1/topics/t/events", `{}`)
	redistest.Eventually(t, "a claim", func() bool { return len(s.claim(`{"wait": "0s"}`)) == 1 })
}
