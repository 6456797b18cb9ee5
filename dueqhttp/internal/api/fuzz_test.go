package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Whatever is sent, the service neither panics nor has a fault, its answer is one
// that the document describes, and errors are problems.
func FuzzHTTP(f *testing.F) {
	const ndjson = "Content-Type: application/x-ndjson\r\n"
	for _, seed := range [][4]string{ // method, target, header, body
		{"GET", "/v1", "", ""},
		{"GET", "/v1/openapi.json", "", ""},
		{"GET", "/v1/topics", "", ""},
		{"GET", "/v1/stats", "X-Request-Id: a b\r\n", ""},
		{"GET", "/v1/sessions", "Authorization: Bearer x\r\n", ""},
		{"GET", "/v1/push?x=1", "", ""},
		{"POST", "/v1/topics/t/events", "", `{"id":"e","body":[1,"x"],"in":"1h","on_duplicate":"replace","max_attempts":2,"metadata":{"a":"b"}}`},
		{"POST", "/v1/topics/t/events", "", `{"base64":"AP8=","at":"2030-01-01T00:00:00.5+01:00"}`},
		{"POST", "/v1/topics/a%2Fb/raw?in=1h&id=x&max_attempts=3", "", "\x00\xff"},
		{"POST", "/v1/topics/t/batch", ndjson, "{\"id\":\"f\"}\n\nx\n{\"body\":null}"},
		{"POST", "/v1/topics/t/batch?results=failed", ndjson, `{"id":"f"}`},
		{"GET", "/v1/topics/t/events?state=scheduled&limit=5&preview=3&id_prefix=e&since=2020-01-01T00:00:00Z", "", ""},
		{"GET", "/v1/topics/t/events?state=dead&cursor=eyJ9&error=x&bodies=base64", "", ""},
		{"GET", "/v1/topics/t/events/e?bodies=base64", "", ""},
		{"DELETE", "/v1/topics/t/events/%2e%2e", "", ""},
		{"POST", "/v1/topics/t/events/e/reschedule", "", `{"in":"0s"}`},
		{"POST", "/v1/topics/t/events/e/requeue", "", ""},
		{"GET", "/v1/topics/t/stats", "", ""},
		{"GET", "/v1/topics/t/forecast?within=1ms,1h", "", ""},
		{"POST", "/v1/topics/t/pause", "", ""},
		{"POST", "/v1/topics/t/resume", "", "{}"},
		{"POST", "/v1/topics/t/requeue", "", `{"all":true,"at":"2030-01-01T00:00:00Z"}`},
		{"POST", "/v1/topics/t/purge", "", `{"states":["dead"]}`},
		{"POST", "/v1/topics/t/check", "", `{"repair":true}`},
		{"POST", "/v1/topics/t/claim", "", `{"max":3,"wait":"0s","visibility":"100ms","bodies":"base64"}`},
		{"POST", "/v1/deliveries/AAAAAAAA-AAAAAAAAAAAAAAAAAAAAAAAAAA/retry", "", `{"after":"1s","error":"x"}`},
		{"POST", "/v1/deliveries/ack", "", `{"receipts":["x","y"]}`},
		{"OPTIONS", "*", "", ""},
		{"CONNECT", "/v1", "", ""},
		{"POST", "/v1/topics//purge", "Origin: http://evil.test\r\n", ""},
		{"GET", "/healthz", "Host: x\r\n", ""},
	} {
		if seed[2] == "" {
			seed[2] = "Content-Type: application/json\r\n"
		}
		f.Add(fmt.Sprintf("%s %s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s", seed[0], seed[1], seed[2], len(seed[3]), seed[3]))
	}
	s := newService(f, nil)
	document, err := theDocument()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
		if err != nil {
			return // the server itself refuses that
		}
		if r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer "+fullToken)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // claims wait
		defer cancel()
		w := httptest.NewRecorder()
		s.h.ServeHTTP(w, r.WithContext(ctx))
		if ctx.Err() != nil {
			return // nobody was there any more
		}
		res := w.Result()
		got, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode >= 500 || res.Header.Get("X-Request-Id") == "" {
			t.Errorf("%q: %d %v %.500q", raw, res.StatusCode, res.Header, got)
		}
		if res.StatusCode >= 400 && res.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%q: %d as %q", raw, res.StatusCode, res.Header.Get("Content-Type"))
		}
		if res.StatusCode < 400 && !strings.HasPrefix(r.URL.Path, "/v1") || r.Method == http.MethodHead {
			return
		}
		if err := document.check(r, nil, res, got); err != nil {
			t.Errorf("%q: %d %.500q: %v", raw, res.StatusCode, got, err)
		}
	})
}
