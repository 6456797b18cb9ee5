package dueqhttp_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp"
	"github.com/dueq-io/dueq/internal/redistest"
)

const secret = "a secret of some length"

func forward(t *testing.T, to string, opts dueqhttp.ForwardOptions) dueq.Handler {
	t.Helper()
	h, err := dueqhttp.Forward(to, opts)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// receiver is a server that answers by a function.
func receiver(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s.URL
}

func TestForwardRequest(t *testing.T) {
	t.Parallel()
	type request struct {
		*http.Request
		body []byte
	}
	got := make(chan request, 1)
	to := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- request{r, body}
		w.WriteHeader(http.StatusAccepted)
	})
	event := &dueq.Event{
		ID: "order 17.é%", Topic: "order.close", Body: []byte(`{"order":17}`), Attempt: 2,
		EffectTime: time.UnixMilli(1732184357123),
		Metadata:   map[string]string{"User": "Ädä\n1", "a b": "x y", "": "nameless"},
	}
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}))
	if err := forward(t, to+"/hook?a=b#frag", dueqhttp.ForwardOptions{Secret: secret}).HandleEvent(ctx, event); err != nil {
		t.Fatal(err)
	}
	r := <-got
	if r.Method != http.MethodPost || r.URL.RequestURI() != "/hook?a=b" || string(r.body) != `{"order":17}` {
		t.Errorf("%s %s %q", r.Method, r.URL, r.body)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "dueq", "Dueq-Id": "order%2017.%C3%A9%25", "Dueq-Topic": "order.close",
		"Dueq-Attempt": "2", "Dueq-Effect-Time": "2024-11-21T10:19:17.123Z", "Dueq-Meta-User": "%C3%84d%C3%A4%0A1",
		"Dueq-Meta-a%20b": "x%20y", "Dueq-Meta-": "nameless", "Webhook-Id": "order%2017%2E%C3%A9%25@1732184357123",
		"Traceparent": "00-01000000000000000000000000000000-0200000000000000-00",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if err := dueqhttp.Verify(secret, r.Header, r.body, time.Minute); err != nil {
		t.Errorf("Verify: %v", err)
	}

	for _, c := range []struct {
		body, given, want string
	}{
		{"", "", "text/plain; charset=utf-8"},
		{"hello", "", "text/plain; charset=utf-8"},
		{"\xff", "", "application/octet-stream"},
		{"hello", "text/csv", "text/csv"},
		{"5", "a\nb", "application/json"},
		{"5", "no type", "application/json"},
	} {
		event := &dueq.Event{ID: "a", Topic: "a", Body: []byte(c.body)}
		if c.given != "" {
			event.Metadata = map[string]string{"Content-Type": c.given}
		}
		if err := forward(t, to, dueqhttp.ForwardOptions{}).HandleEvent(t.Context(), event); err != nil {
			t.Fatal(err)
		}
		r := <-got
		if typ := r.Header.Get("Content-Type"); typ != c.want || r.Header.Get("Webhook-Signature") != "" || string(r.body) != c.body {
			t.Errorf("body %q, content-type %q: sent as %q, %v", c.body, c.given, typ, r.Header)
		}
	}
}

// What the receiver answers decides what becomes of the event.
func TestForwardOutcomes(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		q, err := dueq.New(env.Client, dueq.Options{
			Namespace: env.Namespace, Backoff: func(int, error) time.Duration { return 3 * time.Hour },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = q.ShutDown(context.Background()) }()
		date := time.Now().Add(-24 * time.Hour).UTC().Truncate(time.Second) // the receiver's clock is slow
		for i, c := range []struct {
			status  int
			headers map[string]string
			body    string
			state   dueq.State
			pause   time.Duration // about
			err     string
		}{
			{status: 200, body: "fine"},
			{status: 204, headers: map[string]string{"Retry-After": "5"}},
			{status: 400, body: "no such order\n", state: dueq.StateDead, err: `no more attempts: forward to HOST: status 400: "no such order"`},
			{status: 404, headers: map[string]string{"Retry-After": "5"}, state: dueq.StateDead, err: "no more attempts: forward to HOST: status 404"},
			{status: 410, body: strings.Repeat("x", 1000), state: dueq.StateDead, err: `status 410: "` + strings.Repeat("x", 512) + `"…`},
			{status: 408, state: dueq.StateScheduled, pause: 3 * time.Hour, err: "forward to HOST: status 408"},
			{status: 425, state: dueq.StateScheduled, pause: 3 * time.Hour, err: "forward to HOST: status 425"},
			{status: 429, headers: map[string]string{"Retry-After": "7200"}, state: dueq.StateScheduled, pause: 2 * time.Hour, err: "status 429"},
			{status: 503, headers: map[string]string{"Retry-After": "99999999999999999999"}, state: dueq.StateScheduled, pause: 24 * time.Hour, err: "status 503"},
			{
				status: 503, state: dueq.StateScheduled, pause: time.Hour, err: "status 503",
				headers: map[string]string{"Date": date.Format(http.TimeFormat), "Retry-After": date.Add(time.Hour).Format(http.TimeFormat)},
			},
			{status: 503, headers: map[string]string{"Retry-After": "0"}, state: dueq.StateScheduled, pause: 3 * time.Hour, err: "status 503"},
			{status: 503, headers: map[string]string{"Retry-After": "soon"}, state: dueq.StateScheduled, pause: 3 * time.Hour, err: "status 503"},
			{status: 500, body: "\xff\n<b>", state: dueq.StateScheduled, pause: 3 * time.Hour, err: `status 500: "\xff\n<b>"`},
			{status: 302, headers: map[string]string{"Location": "/elsewhere"}, state: dueq.StateScheduled, pause: 3 * time.Hour, err: "status 302"},
		} {
			asked := make(chan string, 10)
			to := receiver(t, func(w http.ResponseWriter, r *http.Request) {
				asked <- r.URL.Path
				for name, value := range c.headers {
					w.Header().Set(name, value)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			topic := fmt.Sprint("topic", i)
			if err := q.Subscribe(topic, forward(t, to+"/here", dueqhttp.ForwardOptions{})); err != nil {
				t.Fatal(err)
			}
			id, err := q.PublishEvent(t.Context(), topic, []byte("x"), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if path := <-asked; path != "/here" {
				t.Errorf("asked for %s", path)
			}
			info := settled(t, q, topic, id)
			if info == nil {
				if c.state != "" {
					t.Errorf("status %d acked the event", c.status)
				}
				continue
			}
			pause := time.Until(info.Due).Round(10 * time.Minute)
			err = errors.New(info.LastError)
			if want := strings.ReplaceAll(c.err, "HOST", strings.TrimPrefix(to, "http://")); info.State != c.state || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("status %d: %s with %q, want %s with %q", c.status, info.State, err, c.state, want)
			}
			if c.state == dueq.StateScheduled && pause != c.pause {
				t.Errorf("status %d, %v: comes again in %v, want %v", c.status, c.headers, pause, c.pause)
			}
			if len(asked) > 0 {
				t.Errorf("status %d: asked once more, for %s", c.status, <-asked)
			}
		}
	})
}

// settled waits until a delivery has ended, and returns what there is of the event.
func settled(t *testing.T, q *dueq.Queue, topic, id string) *dueq.EventInfo {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); ; {
		info, err := q.Get(t.Context(), topic, id)
		if errors.Is(err, dueq.ErrNotFound) {
			return nil
		}
		if err == nil && info.Attempts == 1 && info.State != dueq.StateLeased {
			return info
		}
		select {
		case <-end:
			t.Fatalf("never settled: %+v, %v", info, err)
		case <-tick.C:
		}
	}
}

// A receiver that does not answer, or is not there, costs no more than the timeout;
// the error does not tell the URL.
func TestForwardFailures(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	to := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-over:
		}
	})
	defer close(over)
	event := &dueq.Event{ID: "a", Topic: "a"}
	err := forward(t, to+"/S3cret", dueqhttp.ForwardOptions{Timeout: 20 * time.Millisecond}).HandleEvent(t.Context(), event)
	host := strings.TrimPrefix(to, "http://")
	if want := "forward to " + host + ": no answer within 20ms"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(dueq.ErrStopping)
	if err = forward(t, to, dueqhttp.ForwardOptions{}).HandleEvent(ctx, event); !errors.Is(err, dueq.ErrStopping) {
		t.Errorf("error %v, want ErrStopping", err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	err = forward(t, strings.Replace(gone.URL, "://", "://ann:S3cret@", 1)+"/S3cret?S3cret", dueqhttp.ForwardOptions{}).HandleEvent(t.Context(), event)
	if err == nil || strings.Contains(err.Error(), "S3cret") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("error %v", err)
	}
}

func TestForwardInvalid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		to   string
		opts dueqhttp.ForwardOptions
		want string
	}{
		{to: "", want: `forward URL: scheme "" is not http or https`},
		{to: "ftp://h/S3cret", want: `forward URL: scheme "ftp" is not http or https`},
		{to: "http:///S3cret", want: "forward URL: it names no host"},
		{to: "http://:80", want: "forward URL: it names no host"},
		{to: "http://ann:S3cret@h:port", want: "forward URL: not a URL"},
		{to: "http://h", opts: dueqhttp.ForwardOptions{Timeout: -1}, want: "option Timeout is -1ns, not from 1ms to 24h0m0s"},
		{to: "http://h", opts: dueqhttp.ForwardOptions{Timeout: 25 * time.Hour}, want: "option Timeout is 25h0m0s, not from 1ms to 24h0m0s"},
		{to: "http://h", opts: dueqhttp.ForwardOptions{Secret: "S3cret"}, want: "option Secret: 6 bytes, not at least 16"},
		{to: "http://h", opts: dueqhttp.ForwardOptions{Secret: "whsec_S3cret!!"}, want: "option Secret: what follows whsec_ is not base64"},
	} {
		h, err := dueqhttp.Forward(c.to, c.opts)
		if want := "dueqhttp: " + c.want; h != nil || err == nil || err.Error() != want {
			t.Errorf("Forward(%q, %+v) = %v, %v; want %s", c.to, c.opts, h, err, want)
		}
	}
}

// The example that https://github.com/standard-webhooks/standard-webhooks publishes.
func TestVerifyPublished(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	h.Set("Webhook-Id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	h.Set("Webhook-Timestamp", "1614265330")
	h.Set("Webhook-Signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	err := dueqhttp.Verify("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", h, []byte(`{"test": 2432232314}`), 1<<62)
	if err != nil {
		t.Error(err)
	}
}

// What was signed passes, and nothing else does.
func TestVerify(t *testing.T) {
	t.Parallel()
	var signed http.Header
	to := receiver(t, func(_ http.ResponseWriter, r *http.Request) { signed = r.Header })
	key := "whsec_" + base64.StdEncoding.EncodeToString([]byte(secret))
	event := &dueq.Event{ID: "a", Topic: "a", Body: []byte("body"), EffectTime: time.UnixMilli(5)}
	if err := forward(t, to, dueqhttp.ForwardOptions{Secret: key}).HandleEvent(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	with := func(name, value string) http.Header {
		h := signed.Clone()
		h.Set(name, value)
		return h
	}
	signature := signed.Get("Webhook-Signature")
	for name, c := range map[string]struct {
		secret    string
		h         http.Header
		body      string
		tolerance time.Duration
		ok        bool
	}{
		"as sent":              {key, signed, "body", time.Minute, true},
		"the key as it is":     {secret, signed, "body", time.Minute, true},
		"one of several":       {key, with("Webhook-Signature", "v1,AAAA v2,x "+signature), "body", time.Minute, true},
		"another secret":       {secret + ".", signed, "body", time.Minute, false},
		"no secret":            {"", signed, "body", time.Minute, false},
		"another body":         {key, signed, "bodi", time.Minute, false},
		"another id":           {key, with("Webhook-Id", "b@5"), "body", time.Minute, false},
		"another time":         {key, with("Webhook-Timestamp", "1732184357"), "body", 100 * 365 * 24 * time.Hour, false},
		"no time":              {key, with("Webhook-Timestamp", "x"), "body", time.Minute, false},
		"no signature":         {key, with("Webhook-Signature", ""), "body", time.Minute, false},
		"another version":      {key, with("Webhook-Signature", "v2"+signature[2:]), "body", time.Minute, false},
		"too long ago":         {key, signed, "body", -1, false},
		"id and time in one":   {key, with("Webhook-Id", "a@5."+signed.Get("Webhook-Timestamp")), "body", time.Minute, false},
		"no headers whatever":  {key, nil, "body", time.Minute, false},
		"a time beyond all":    {key, with("Webhook-Timestamp", "9223372036854775807"), "body", time.Minute, false},
		"a time below nothing": {key, with("Webhook-Timestamp", "-9223372036854775808"), "body", time.Minute, false},
	} {
		err := dueqhttp.Verify(c.secret, c.h, []byte(c.body), c.tolerance)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, dueqhttp.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No answer of a receiver makes an event wait for longer than a day, or breaks
// anything.
func FuzzRetryAfter(f *testing.F) {
	for _, text := range []string{"", "5", "-5", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 21 Nov 2024 10:19:17 GMT", "5.5", "\x00"} {
		f.Add(text, "")
		f.Add(text, "Thu, 21 Nov 2024 10:00:00 GMT")
		f.Add(text, "Mon, 01 Jan 0001 00:00:00 GMT")
	}
	f.Fuzz(func(t *testing.T, text, date string) {
		pause := dueqhttp.RetryAfter(http.Header{"Retry-After": {text}, "Date": {date}}, time.Now())
		if pause < 0 || pause > 24*time.Hour {
			t.Errorf("Retry-After %q, Date %q: %v", text, date, pause)
		}
	})
}

// Nobody without the secret gets a request past Verify.
func FuzzVerify(f *testing.F) {
	f.Add("a@5", "1732184357", "v1,AAAA", []byte("body"))
	f.Add("", "-1", "v1, v1", []byte{})
	f.Add("a.b", "9223372036854775807", "v1,=", []byte("\xff"))
	f.Fuzz(func(t *testing.T, id, timestamp, signature string, body []byte) {
		h := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {timestamp}, "Webhook-Signature": {signature}}
		if err := dueqhttp.Verify(secret, h, body, 1<<62); !errors.Is(err, dueqhttp.ErrSignature) {
			t.Errorf("Verify: %v", err)
		}
	})
}

// Whatever an event holds can be sent, and arrives signed.
func FuzzForward(f *testing.F) {
	f.Add("id", "topic", "Name", "value", []byte("body"))
	f.Add("é.%\x7f", "a b", "", "\xff\r\nX: y", []byte{})
	f.Add(" ", "/", "a:b\n", " ", []byte("{}"))
	var got http.Header
	var body []byte
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		got = r.Header
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err := r.Write(io.Discard); err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	h, err := dueqhttp.Forward("http://h", dueqhttp.ForwardOptions{Secret: secret, Transport: transport})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, topic, name, value string, text []byte) {
		e := &dueq.Event{ID: id, Topic: topic, Body: text, Metadata: map[string]string{name: value}, EffectTime: time.UnixMilli(1)}
		if err := h.HandleEvent(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if err := dueqhttp.Verify(secret, got, body, time.Hour); err != nil {
			t.Error(err)
		}
		for name, values := range got {
			for _, value := range values {
				if strings.ContainsFunc(name+value, func(r rune) bool { return r < ' ' || r > '~' }) {
					t.Errorf("header %q: %q", name, value)
				}
			}
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
