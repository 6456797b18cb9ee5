// Package webhook delivers webhooks with retries. The guide is
// docs/webhook-retry.md.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/dueq-io/dueq"
)

// Hook is one call to make: the body of an event.
type Hook struct {
	URL     string          `json:"url"`
	Payload json.RawMessage `json:"payload"`
}

// Options are good for webhooks: 23 attempts within three days.
func Options(keep dueq.PersistFn) dueq.Options {
	return dueq.Options{
		MaxAttempts:    23,
		HandlerTimeout: 30 * time.Second,
		Backoff: func(attempt int, _ error) time.Duration { // 10 s, 20 s, 40 s, … 6 h, less up to a quarter
			d := min(10*time.Second<<min(attempt-1, 20), 6*time.Hour)
			return d - rand.N(d/4)
		},
		PersistFn: keep,
	}
}

// Send has a hook called, now or as soon as its receiver can take it. name is
// the caller's for it: a second Send of the same name does nothing while the first is
// under way, or lies among the dead.
func Send(ctx context.Context, queue *dueq.Queue, name string, hook Hook) error {
	body, err := json.Marshal(hook)
	if err != nil {
		return fmt.Errorf("send webhook %s: %w", name, err)
	}
	_, err = queue.PublishEvent(ctx, "webhook", body, time.Now(), dueq.WithID(name))
	if errors.Is(err, dueq.ErrDuplicateID) {
		return nil
	}
	return err
}

// client takes a redirect for an answer: a POST that is redirected becomes a GET.
var client = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Deliver calls a hook once.
func Deliver(ctx context.Context, e *dueq.Event) error {
	var hook Hook
	if err := json.Unmarshal(e.Body, &hook); err != nil {
		return dueq.SkipRetry(fmt.Errorf("decode webhook: %w", err))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(hook.Payload))
	if err != nil {
		return dueq.SkipRetry(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", strconv.Quote(e.ID)) // the same at each attempt
	resp, err := client.Do(req)
	if err != nil {
		return err // no answer: again after the backoff
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	return verdict(resp)
}

// verdict is what a response means for the event.
func verdict(resp *http.Response) error {
	err := fmt.Errorf("receiver answered %s", resp.Status)
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		if wait, ok := retryAfter(resp.Header.Get("Retry-After"), time.Now()); ok {
			return dueq.RetryAfter(min(wait, 24*time.Hour), err) // as the receiver says, within reason
		}
		return err
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly:
		return err
	case code < 500: // it understood, and does not want it
		return dueq.SkipRetry(err)
	default:
		return err
	}
}

// retryAfter reads a Retry-After header: seconds, or a date.
func retryAfter(header string, now time.Time) (time.Duration, bool) {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

// Again has all hooks called anew that have failed for good and whose names begin
// so, and returns how many.
func Again(ctx context.Context, queue *dueq.Queue, prefix string) (int, error) {
	return queue.Requeue(ctx, "webhook", dueq.Filter{IDPrefix: prefix}, time.Now())
}
