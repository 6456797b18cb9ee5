// Package subscriber runs the goroutines that listen for due events, run
// handlers and settle the outcome.
package subscriber

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dueq-io/dueq/readyqueue"
)

// Event is one delivery of an event to a handler.
type Event struct {
	ID          string
	Topic       string
	Body        []byte            // the handler's own: it may change it
	EffectTime  time.Time         // when it was due, to the millisecond
	Attempt     int               // 1 at first delivery
	MaxAttempts int               // after this many failed attempts the event has failed for good
	Metadata    map[string]string // as published; nil: none
}

// Handler handles events. Returning nil acks the event, an error or a panic
// makes it come again after a pause. ctx ends when HandlerTimeout has passed,
// when the lease is lost, and when ShutDown's deadline passes; its cause says
// which ([context.Cause]).
type Handler interface {
	HandleEvent(ctx context.Context, e *Event) error
}

// HandlerFunc is a function that is a [Handler].
type HandlerFunc func(ctx context.Context, e *Event) error

// HandleEvent calls f.
func (f HandlerFunc) HandleEvent(ctx context.Context, e *Event) error { return f(ctx, e) }

// PersistFn takes an event that has failed for good, with the error of its last
// attempt. nil means that it is stored elsewhere: dueq forgets it. With an
// error it stays among the dead.
type PersistFn func(ctx context.Context, e *Event, cause error) error

var (
	// ErrLeaseLost is the cause with which a handler's ctx ends when its lease
	// is no longer valid: the event may be with another process by now.
	ErrLeaseLost = readyqueue.ErrLost
	// ErrStopping is the cause with which a handler's ctx ends when ShutDown's
	// deadline has passed: the event goes back unhandled.
	ErrStopping = errors.New("shutting down")
	// ErrHandlerTimeout is the cause with which a handler's ctx ends when
	// HandlerTimeout has passed.
	ErrHandlerTimeout = errors.New("handler timed out")
)

type retryAfterError struct {
	delay time.Duration
	cause error
}

func (e *retryAfterError) Error() string { return fmt.Sprintf("retry after %v: %v", e.delay, e.cause) }
func (e *retryAfterError) Unwrap() error { return e.cause }

// RetryAfter is what a handler returns to be called again after d instead of
// after the backoff. The attempt counts. A d below zero counts as zero.
func RetryAfter(d time.Duration, cause error) error {
	return &retryAfterError{delay: max(d, 0), cause: cause}
}

type skipRetryError struct{ cause error }

func (e *skipRetryError) Error() string { return fmt.Sprintf("no more attempts: %v", e.cause) }
func (e *skipRetryError) Unwrap() error { return e.cause }

// SkipRetry is what a handler returns when more attempts would not help: the
// event has failed for good.
func SkipRetry(cause error) error { return &skipRetryError{cause: cause} }
