package dueqhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/propagation"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/envelope"
)

const (
	maxForwardTimeout = 24 * time.Hour
	// maxRetryAfter is the longest pause that a receiver may ask for.
	maxRetryAfter = 24 * time.Hour
	// quotedAnswer is how many bytes of a receiver's answer an error quotes.
	quotedAnswer = 512
	// drainedAnswer is how many bytes are read so that the connection can serve
	// again.
	drainedAnswer = 64 << 10
	// idleForwards is how many connections to a receiver are kept open.
	idleForwards = 64
)

// ForwardOptions say how [Forward] posts events. The zero value is good.
type ForwardOptions struct {
	// Timeout is how long the receiver may take for its answer, from a millisecond
	// to 24 hours.
	// Defaults to 30s.
	Timeout time.Duration

	// Secret signs requests, so that the receiver can tell who sent them; [Verify]
	// says how. At least 16 bytes; if it begins with "whsec_", the key is what
	// follows, decoded from base64.
	// Defaults to "": requests are not signed.
	Secret string

	// Transport sends requests: for certificates of your own, proxies, further
	// headers.
	// Defaults to nil: one like http.DefaultTransport.
	Transport http.RoundTripper
}

// Forward returns a handler that posts each event's body to an http or https URL.
// A status from 200 to 299 acks the event. Of the others those from 400 to 499
// end its attempts, but for 408, 425 and 429; after the rest, and after an error,
// it is retried: when the header Retry-After says, in seconds or as a date, but
// no later than in 24 hours, or else after Options.Backoff. Redirects are not
// followed. Errors name the receiver's host and quote the beginning of its answer.
//
// Each request has these headers; in their values, all but visible ASCII is
// percent-encoded, as is the percent sign itself:
//
//	Content-Type      the metadata "content-type" if there is one, else by the looks of the body
//	Dueq-Id           the event's id
//	Dueq-Topic        its topic
//	Dueq-Attempt      1 at first delivery
//	Dueq-Effect-Time  when it was due, as 2006-01-02T15:04:05.000Z
//	Dueq-Meta-Name    the metadata Name, whose case does not count here
//	Traceparent       with Options.TracerProvider: the W3C trace context of the delivery, Tracestate too
//
// The error of Forward says what is wrong with the URL or the options.
func Forward(to string, opts ForwardOptions) (dueq.Handler, error) {
	u, err := forwardURL(to)
	if err != nil {
		return nil, fmt.Errorf("dueqhttp: forward URL: %w", err)
	}
	if opts.Timeout == 0 {
		opts.Timeout = 30 * time.Second
	}
	if opts.Timeout < time.Millisecond || opts.Timeout > maxForwardTimeout {
		return nil, fmt.Errorf("dueqhttp: option Timeout is %v, not from %v to %v", opts.Timeout, time.Millisecond, maxForwardTimeout)
	}
	f := &forward{url: u, timeout: opts.Timeout}
	if opts.Secret != "" {
		if f.key, err = signingKey(opts.Secret); err != nil {
			return nil, fmt.Errorf("dueqhttp: option Secret: %w", err)
		}
	}
	if opts.Transport == nil {
		opts.Transport = forwardTransport()
	}
	f.client = &http.Client{
		Transport:     opts.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return f, nil
}

// forwardURL reads a URL. Its error quotes none of it but the scheme: other parts
// may be secret.
func forwardURL(to string) (*url.URL, error) {
	u, err := url.Parse(to)
	var parse *url.Error
	switch {
	case errors.As(err, &parse):
		return nil, errors.New("not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %.20q is not http or https", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("it names no host")
	}
	u.Fragment = ""
	return u, nil
}

func forwardTransport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // the program has put another in its place
		return http.DefaultTransport
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = idleForwards
	return t
}

// forward is a handler that posts events.
type forward struct {
	url     *url.URL
	timeout time.Duration
	key     []byte // nil: nothing is signed
	client  *http.Client
}

// HandleEvent posts the event.
func (f *forward) HandleEvent(ctx context.Context, e *dueq.Event) error {
	timed, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("no answer within %v", f.timeout))
	defer cancel()
	answer, err := f.post(timed, e)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the URL, which may be secret
		}
		if timed.Err() != nil {
			err = context.Cause(timed)
		}
		return fmt.Errorf("forward to %s: %w", f.url.Host, err)
	}
	defer func() { _ = answer.Body.Close() }() // all that matters has been read
	quoted := quote(answer.Body)
	if answer.StatusCode/100 == 2 {
		return nil
	}
	err = fmt.Errorf("forward to %s: status %d%s", f.url.Host, answer.StatusCode, quoted)
	switch answer.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
	default:
		if answer.StatusCode/100 == 4 {
			return dueq.SkipRetry(err)
		}
	}
	if pause := retryAfter(answer.Header, time.Now()); pause > 0 {
		return dueq.RetryAfter(pause, err)
	}
	return err
}

func (f *forward) post(ctx context.Context, e *dueq.Event) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url.String(), bytes.NewReader(e.Body))
	if err != nil {
		return nil, err
	}
	h := request.Header
	for name, value := range e.Metadata {
		h.Add("Dueq-Meta-"+escape(name, isToken), escape(value, isVisible))
	}
	h.Set("User-Agent", "dueq")
	h.Set("Content-Type", contentType(e))
	h.Set("Dueq-Id", escape(e.ID, isVisible))
	h.Set("Dueq-Topic", escape(e.Topic, isVisible))
	h.Set("Dueq-Attempt", strconv.Itoa(e.Attempt))
	h.Set("Dueq-Effect-Time", envelope.Stamp(e.EffectTime))
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
	if f.key != nil {
		sign(f.key, h, e, time.Now())
	}
	return f.client.Do(request)
}

// contentType is the media type of an event's body.
func contentType(e *dueq.Event) string {
	for name, value := range e.Metadata {
		if _, _, err := mime.ParseMediaType(value); err == nil && strings.EqualFold(name, "content-type") && escape(value, isText) == value {
			return value
		}
	}
	switch {
	case json.Valid(e.Body):
		return "application/json"
	case utf8.Valid(e.Body):
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// escape percent-encodes the bytes that are not allowed in a header, and percent
// signs.
func escape(s string, allowed func(byte) bool) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; allowed(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

func isText(c byte) bool    { return ' ' <= c && c <= '~' }
func isVisible(c byte) bool { return ' ' < c && c <= '~' && c != '%' }

// isToken reports whether a byte may stand in a header's name.
func isToken(c byte) bool {
	return isVisible(c) && !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, rune(c))
}

// quote reads an answer and returns its beginning for an error.
func quote(body io.Reader) string {
	begin, err := io.ReadAll(io.LimitReader(body, quotedAnswer+1))
	if err == nil {
		_, _ = io.CopyN(io.Discard, body, drainedAnswer) // what is left unread costs a connection, no more
	}
	begin = bytes.TrimSpace(begin)
	switch {
	case len(begin) == 0:
		return ""
	case len(begin) > quotedAnswer:
		return fmt.Sprintf(": %q…", begin[:quotedAnswer])
	}
	return fmt.Sprintf(": %q", begin)
}

// retryAfter is the pause that the receiver asks for, at most maxRetryAfter; 0 if it
// asks for none. Of a date its own clock decides, if it tells that.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if theirs, err := http.ParseTime(h.Get("Date")); err == nil {
		now = theirs
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
