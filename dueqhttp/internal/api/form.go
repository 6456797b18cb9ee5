package api

import (
	"time"
	"unicode/utf8"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
	"github.com/dueq-io/dueq/internal/envelope"
)

// event is an event to publish, as it was sent. It is not larger than the API takes.
func (a *API) event(in *envelope.New) (dueq.NewEvent, error) {
	e, err := in.Event(time.Now())
	if err != nil {
		return e, problem.Invalid.New("%v", err)
	}
	return e, a.checkSize(e.Body)
}

// checkSize refuses a body that is larger than the API takes.
func (a *API) checkSize(body []byte) error {
	if len(body) > a.opts.MaxBody {
		return problem.TooLarge.New("the event's body has %d bytes, more than %d", len(body), a.opts.MaxBody)
	}
	return nil
}

// newBody is an event's body as it goes out.
func newBody(data []byte, base64 bool) envelope.Body {
	if base64 {
		return envelope.Body{Base64: data}
	}
	return envelope.NewBody(data)
}

// exact says whether bodies are to go out as base64 whatever is in them.
func exact(form string) (bool, error) {
	switch form {
	case "", "auto":
		return false, nil
	case "base64":
		return true, nil
	}
	return false, invalid("bodies", "is %q, not auto or base64", cut(form))
}

// eventInfo is an event as it lies in Redis.
type eventInfo struct {
	ID       string     `json:"id"`
	Topic    string     `json:"topic"`
	State    dueq.State `json:"state"`
	BodySize int        `json:"body_size"`
	envelope.Body
	EffectTime  string            `json:"effect_time,omitempty"`
	Due         string            `json:"due,omitempty"`
	DiedAt      string            `json:"died_at,omitempty"`
	Attempts    int               `json:"attempts"`
	MaxAttempts int               `json:"max_attempts,omitempty"`
	LastError   string            `json:"last_error,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// newEventInfo is the event with its body, or so much of it as there is.
func newEventInfo(e *dueq.EventInfo, base64 bool) eventInfo {
	info := eventInfo{
		ID: e.ID, Topic: e.Topic, State: e.State, BodySize: e.BodySize,
		EffectTime: stamp(e.EffectTime), Due: stamp(e.Due), DiedAt: stamp(e.DiedAt),
		Attempts: e.Attempts, MaxAttempts: e.MaxAttempts, LastError: e.LastError, Metadata: e.Metadata,
	}
	switch {
	case len(e.Body) == e.BodySize:
		info.Body = newBody(e.Body, base64)
	case len(e.Body) > 0:
		info.Body = newPreview(e.Body, base64)
	}
	return info
}

// newPreview is the beginning of a body: it is never taken for JSON, and a
// character that was cut through is left out.
func newPreview(data []byte, base64 bool) envelope.Body {
	whole := data
	for i := 0; i < utf8.UTFMax && !utf8.Valid(whole) && len(whole) > 0; i++ {
		whole = whole[:len(whole)-1]
	}
	if base64 || !utf8.Valid(whole) || len(whole) == 0 {
		return envelope.Body{Base64: data}
	}
	text := string(whole)
	return envelope.Body{Text: &text}
}

// stamp is a time as it goes out, in UTC and milliseconds; "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
