// Package envelope is the JSON form of events, for whoever does not write Go.
package envelope

import (
	"time"

	"github.com/dueq-io/dueq"
)

// New is an event to publish. Without in and at it is due at once.
type New struct {
	Body
	In          string            `json:"in,omitempty"` // from now, as "1h30m"
	At          string            `json:"at,omitempty"` // RFC 3339
	ID          *string           `json:"id,omitempty"`
	OnDuplicate string            `json:"on_duplicate,omitempty"` // reject, keep or replace; with an id
	MaxAttempts *int              `json:"max_attempts,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// Decode reads one event in JSON. Its error is a [FormError].
func Decode(text []byte) (New, error) {
	var e New
	err := Object(text, &e)
	return e, err
}

// Event is the event to publish, at times from now. Its error is a [FormError]; what
// else is wrong the publish tells.
func (e New) Event(now time.Time) (dueq.NewEvent, error) {
	out := dueq.NewEvent{Metadata: e.Metadata}
	var err error
	if out.Body, err = e.Bytes(); err != nil {
		return out, err
	}
	if out.EffectTime, err = Time(e.In, e.At, now); err != nil {
		return out, err
	}
	if e.ID != nil {
		if out.ID = *e.ID; out.ID == "" {
			return out, wrong("id", "is empty")
		}
	}
	if e.MaxAttempts != nil {
		if out.MaxAttempts = *e.MaxAttempts; out.MaxAttempts < 1 {
			return out, wrong("max_attempts", "is %d, not at least 1", out.MaxAttempts)
		}
	}
	out.KeyPolicy, err = policy(e.OnDuplicate)
	if err == nil && e.OnDuplicate != "" && e.ID == nil {
		err = wrong("on_duplicate", "without an id")
	}
	return out, err
}

// Time is in from now, or at: to the millisecond, rounded up, as it will be stored.
// If both are empty it is now, rounded down: that has come already.
func Time(in, at string, now time.Time) (time.Time, error) {
	switch {
	case in != "" && at != "":
		return now, wrong("in", "and at exclude each other")
	case in != "":
		d, err := time.ParseDuration(in)
		if err != nil {
			return now, wrong("in", "is %.40q, not a duration as 90s or 1h30m", in)
		}
		now = now.Add(d)
	case at != "":
		t, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			return now, wrong("at", "is %.40q, not a time as 2006-01-02T15:04:05Z (RFC 3339)", at)
		}
		now = t
	default:
		return now.Truncate(time.Millisecond), nil
	}
	return now.Add(time.Millisecond - 1).Truncate(time.Millisecond), nil
}

// policy is the key policy of a name; "" is reject.
func policy(name string) (dueq.KeyPolicy, error) {
	switch name {
	case "", "reject":
		return dueq.KeyReject, nil
	case "keep":
		return dueq.KeyKeep, nil
	case "replace":
		return dueq.KeyReplace, nil
	}
	return dueq.KeyReject, wrong("on_duplicate", "is %.40q, not reject, keep or replace", name)
}
