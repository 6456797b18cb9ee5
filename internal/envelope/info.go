package envelope

import (
	"time"
	"unicode/utf8"

	"github.com/dueq-io/dueq"
)

// Info is an event as it lies in Redis.
type Info struct {
	ID       string     `json:"id"`
	Topic    string     `json:"topic"`
	State    dueq.State `json:"state"`
	BodySize int        `json:"body_size"`
	Body
	EffectTime  string            `json:"effect_time,omitempty"`
	Due         string            `json:"due,omitempty"`
	DiedAt      string            `json:"died_at,omitempty"`
	Attempts    int               `json:"attempts"`
	MaxAttempts int               `json:"max_attempts,omitempty"`
	LastError   string            `json:"last_error,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// NewInfo is the event with its body, or so much of it as there is; exact has it
// in base64 whatever it is.
func NewInfo(e *dueq.EventInfo, exact bool) Info {
	info := Info{
		ID: e.ID, Topic: e.Topic, State: e.State, BodySize: e.BodySize,
		EffectTime: Stamp(e.EffectTime), Due: Stamp(e.Due), DiedAt: Stamp(e.DiedAt),
		Attempts: e.Attempts, MaxAttempts: e.MaxAttempts, LastError: e.LastError, Metadata: e.Metadata,
	}
	switch {
	case exact:
		info.Base64 = e.Body
	case len(e.Body) == e.BodySize:
		info.Body = NewBody(e.Body)
	case len(e.Body) > 0:
		info.Body = newPreview(e.Body)
	}
	return info
}

// newPreview is the beginning of a body: it is never taken for JSON, and a
// character that was cut through is left out.
func newPreview(data []byte) Body {
	whole := Whole(data)
	if len(whole) == 0 || !utf8.Valid(whole) {
		return Body{Base64: data}
	}
	text := string(whole)
	return Body{Text: &text}
}

// Whole is the beginning of a text without a character at its end that was cut
// through.
func Whole(data []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(data); i++ {
		if last := data[len(data)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return data[:len(data)-i]
			}
			break
		}
	}
	return data
}

// Stamp is a time in UTC and milliseconds; "" for none.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// Session is a process that takes events.
type Session struct {
	ID         string   `json:"id"`
	Host       string   `json:"host"`
	PID        int      `json:"pid"`
	Started    string   `json:"started,omitempty"`
	LastSeen   string   `json:"last_seen,omitempty"`
	Topics     []string `json:"topics"`
	MoreTopics int      `json:"more_topics,omitempty"`
	Held       int      `json:"held"`
}

// NewSession is the session in JSON.
func NewSession(s dueq.Session) Session {
	return Session{
		ID: s.ID, Host: s.Host, PID: s.PID, Started: Stamp(s.Started), LastSeen: Stamp(s.LastSeen),
		Topics: append([]string{}, s.Topics...), MoreTopics: s.MoreTopics, Held: s.Held,
	}
}
