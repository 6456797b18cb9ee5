package dueq

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/internal/key"
	"github.com/dueq-io/dueq/internal/tracing"
	"github.com/dueq-io/dueq/pool"
	"github.com/dueq-io/dueq/subscriber"
)

type (
	// Event is one delivery of an event to a [Handler].
	Event = subscriber.Event
	// Handler handles events: nil acks, an error or a panic retries.
	Handler = subscriber.Handler
	// HandlerFunc is a function that is a [Handler].
	HandlerFunc = subscriber.HandlerFunc
	// PersistFn takes an event that has failed for good, with the error of its
	// last attempt. nil means "I have stored it: forget it"; with an error it
	// stays among the dead.
	PersistFn = subscriber.PersistFn
	// KeyPolicy says what a publish does when an event with its id exists.
	KeyPolicy = bucket.Policy
)

const (
	// KeyReject refuses the publish with [ErrDuplicateID]. It is the default.
	KeyReject = bucket.Reject
	// KeyKeep leaves the event that is scheduled as it is; the publish
	// succeeds. If the event is being handled at that moment it runs again
	// afterwards, at the new effect time; if it lies in dead it is published
	// anew.
	KeyKeep = bucket.Keep
	// KeyReplace puts the new body and effect time in the place of the old. If
	// the event is being handled at that moment, the new one runs afterwards.
	KeyReplace = bucket.Replace
)

const (
	maxAhead    = 100 * 365 * 24 * time.Hour
	maxAttempts = 1 << 20
	maxMetadata = 16 << 10 // bytes of names and values
)

// NewEvent is one event to publish.
type NewEvent struct {
	Body        []byte            // may be empty; at most Options.MaxBody bytes
	EffectTime  time.Time         // when it is due, rounded up to the millisecond; past is now
	ID          string            // Defaults to "": a random one.
	KeyPolicy   KeyPolicy         // if ID is given. Defaults to KeyReject.
	MaxAttempts int               // Defaults to 0: Options.MaxAttempts of who handles it.
	Metadata    map[string]string // handed to the handler; at most 16 KiB. Defaults to nil.
}

// PublishOption changes how one event is published.
type PublishOption func(*publishOptions)

type publishOptions struct {
	NewEvent
	hasID bool
}

// with applies options.
func (e NewEvent) with(opts []PublishOption) (NewEvent, error) {
	o := publishOptions{NewEvent: e}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	if o.hasID && o.ID == "" {
		return e, fmt.Errorf("%w: it is empty", ErrIDInvalid)
	}
	return o.NewEvent, nil
}

// WithID gives the event an id of the caller's. What a second publish with the
// same id does says [WithKeyPolicy]. The id is free again the moment its event
// is gone.
func WithID(id string) PublishOption {
	return func(o *publishOptions) { o.ID, o.hasID = id, true }
}

// WithKeyPolicy says what the publish does when an event with the id given by
// [WithID] exists. Defaults to [KeyReject].
func WithKeyPolicy(p KeyPolicy) PublishOption {
	return func(o *publishOptions) { o.KeyPolicy = p }
}

// WithMaxAttempts gives the event its own number of attempts, at least 1.
func WithMaxAttempts(n int) PublishOption {
	return func(o *publishOptions) {
		o.MaxAttempts = n
		if n == 0 {
			o.MaxAttempts = -1 // refused, as any number below 1
		}
	}
}

// WithMetadata hands names and values on to the handler.
func WithMetadata(m map[string]string) PublishOption {
	return func(o *publishOptions) { o.Metadata = m }
}

// RetryAfter is what a handler returns to be called again after d instead of
// after the backoff. The attempt counts.
func RetryAfter(d time.Duration, cause error) error { return subscriber.RetryAfter(d, cause) }

// SkipRetry is what a handler returns when more attempts would not help: the
// event has failed for good.
func SkipRetry(cause error) error { return subscriber.SkipRetry(cause) }

// prepare checks an event and makes it ready for its bucket.
func (q *Queue) prepare(e *NewEvent, now time.Time, origin tracing.Origin) (b bucket.Event, err error) {
	keyed := e.ID != ""
	if keyed {
		if err := key.CheckID(e.ID); err != nil {
			return b, fmt.Errorf("%w: %w", ErrIDInvalid, err)
		}
	}
	if len(e.Body) > q.opts.MaxBody {
		return b, fmt.Errorf("%w: %d bytes, MaxBody is %d", ErrBodyTooLarge, len(e.Body), q.opts.MaxBody)
	}
	if err := checkEvent(e, now); err != nil {
		return b, fmt.Errorf("%w: %w", ErrEventInvalid, err)
	}
	due := millis(e.EffectTime)
	record := pool.Record{
		EffectTime: due, MaxAttempts: e.MaxAttempts, Metadata: e.Metadata, Body: e.Body,
		TraceParent: origin.Parent, TraceState: origin.State,
	}
	text, err := record.Encode()
	if err != nil {
		return b, fmt.Errorf("%w: %w", ErrEventInvalid, err)
	}
	id := e.ID
	if !keyed {
		id = bucket.NewID(q.opts.Buckets, now)
	}
	return bucket.Event{ID: id, Record: text, Due: due, Keyed: keyed, Policy: e.KeyPolicy}, nil
}

func checkEvent(e *NewEvent, now time.Time) error {
	size := 0
	for name, value := range e.Metadata {
		size += len(name) + len(value)
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return fmt.Errorf("metadata %.80q is not UTF-8", name)
		}
	}
	switch {
	case e.MaxAttempts < 0 || e.MaxAttempts > maxAttempts:
		return fmt.Errorf("MaxAttempts is %d, not from 1 to %d", e.MaxAttempts, maxAttempts)
	case e.KeyPolicy < KeyReject || e.KeyPolicy > KeyReplace:
		return fmt.Errorf("unknown key policy %d", int(e.KeyPolicy))
	case e.KeyPolicy != KeyReject && e.ID == "":
		return fmt.Errorf("key policy %v without an id", e.KeyPolicy)
	case size > maxMetadata:
		return fmt.Errorf("metadata of %d bytes, more than %d", size, maxMetadata)
	}
	return checkTime(e.EffectTime, now)
}

func checkTime(t, now time.Time) error {
	switch {
	case t.IsZero():
		return errors.New("no effect time")
	case t.After(now.Add(maxAhead)):
		return fmt.Errorf("effect time %v is more than 100 years ahead", t)
	}
	return nil
}

// millis is t in milliseconds since 1970, rounded up: never early. All times
// before are 1, for 0 means "none" elsewhere.
func millis(t time.Time) int64 {
	if t.Unix() < 0 {
		return 1
	}
	ms := t.UnixMilli()
	if t.Sub(time.UnixMilli(ms)) > 0 {
		ms++
	}
	return max(ms, 1)
}
