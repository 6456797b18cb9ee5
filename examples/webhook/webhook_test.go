package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/examples/internal/scratch"
	"github.com/dueq-io/dueq/examples/webhook"
)

func Example() {
	attempt := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attempt++
		fmt.Println("attempt", attempt, "of", r.Header.Get("Idempotency-Key"))
		switch attempt {
		case 1:
			http.Error(w, "broken", http.StatusInternalServerError)
		case 2:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "busy", http.StatusTooManyRequests)
		case 3:
			http.Error(w, "nobody wants this any more", http.StatusGone)
		}
	}))
	defer receiver.Close()

	done := make(chan struct{})
	opts := webhook.Options(func(_ context.Context, e *dueq.Event, cause error) error {
		fmt.Printf("store %s: %v\n", e.ID, cause)
		close(done)
		return nil // stored: forget it
	})
	opts.Backoff = func(int, error) time.Duration { return 0 } // this example is in a hurry
	queue, _, closeAll, err := scratch.Open(opts)
	if err != nil {
		panic(err)
	}
	defer func() { _ = closeAll() }()

	if err := queue.Subscribe("webhook", dueq.HandlerFunc(webhook.Deliver)); err != nil {
		panic(err)
	}
	hook := webhook.Hook{URL: receiver.URL, Payload: json.RawMessage(`{"order":17}`)}
	if err := webhook.Send(context.Background(), queue, "order 17 paid", hook); err != nil {
		panic(err)
	}
	<-done
	// Output:
	// attempt 1 of "order 17 paid"
	// attempt 2 of "order 17 paid"
	// attempt 3 of "order 17 paid"
	// store order 17 paid: no more attempts: receiver answered 410 Gone
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for _, test := range []struct {
		code       int
		retryAfter string
		want       string
	}{
		{200, "", ""},
		{204, "", ""},
		{301, "", "no more attempts: receiver answered 301 Moved Permanently"},
		{400, "", "no more attempts: receiver answered 400 Bad Request"},
		{408, "", "receiver answered 408 Request Timeout"},
		{425, "", "receiver answered 425 Too Early"},
		{429, "", "receiver answered 429 Too Many Requests"},
		{429, "later", "receiver answered 429 Too Many Requests"},
		{429, "-1", "receiver answered 429 Too Many Requests"},
		{429, "5", "retry after 5s: receiver answered 429 Too Many Requests"},
		{503, "999999999", "retry after 24h0m0s: receiver answered 503 Service Unavailable"},
		{500, "5", "receiver answered 500 Internal Server Error"},
	} {
		err := webhook.Verdict(answer(test.code, test.retryAfter))
		if got := text(err); got != test.want {
			t.Errorf("%d with %q: %q, want %q", test.code, test.retryAfter, got, test.want)
		}
	}
	if d, ok := webhook.RetryAfter(soon, time.Now()); !ok || d > time.Hour || d < 50*time.Minute {
		t.Errorf("%s: %v, %v", soon, d, ok)
	}
	if d, ok := webhook.RetryAfter("Mon, 02 Jan 2006 15:04:05 GMT", time.Now()); !ok || d != 0 {
		t.Errorf("a date that has passed: %v, %v", d, ok)
	}
}

func answer(code int, retryAfter string) *http.Response {
	return &http.Response{
		StatusCode: code, Status: fmt.Sprint(code, " ", http.StatusText(code)),
		Header: http.Header{"Retry-After": {retryAfter}},
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestBadHooksFailForGood(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"{", `{"url":"http://%zz"}`} {
		err := webhook.Deliver(t.Context(), &dueq.Event{ID: "bad", Body: []byte(body)})
		if !strings.HasPrefix(text(err), "no more attempts: ") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestBackoffTakesDays(t *testing.T) {
	t.Parallel()
	opts := webhook.Options(nil)
	sum := time.Duration(0)
	for attempt := 1; attempt < opts.MaxAttempts; attempt++ {
		sum += opts.Backoff(attempt, nil)
	}
	if sum < 50*time.Hour || sum > 72*time.Hour {
		t.Errorf("%d attempts within %v", opts.MaxAttempts, sum)
	}
}

func TestAgain(t *testing.T) {
	t.Parallel()
	queue, _, closeAll, err := scratch.Open(webhook.Options(nil)) // nobody keeps what has failed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closeAll() })
	attempts := make(chan string)
	err = queue.Subscribe("webhook", dueq.HandlerFunc(func(_ context.Context, e *dueq.Event) error {
		attempts <- e.ID
		return dueq.SkipRetry(errors.New("gone"))
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"acme: order 1", "other: order 2"} {
		if err := webhook.Send(t.Context(), queue, name, webhook.Hook{}); err != nil {
			t.Fatal(err)
		}
		<-attempts
	}
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for dead := 0; dead < 2; {
		<-poll.C
		stats, err := queue.Stats(t.Context(), "webhook")
		if err != nil {
			t.Fatal(err)
		}
		dead = stats.Dead
	}
	if n, err := webhook.Again(t.Context(), queue, "acme: "); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if name := <-attempts; name != "acme: order 1" {
		t.Errorf("%s came again", name)
	}
}
