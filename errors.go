package dueq

import (
	"errors"

	"github.com/dueq-io/dueq/bucket"
	"github.com/dueq-io/dueq/subscriber"
)

// What can go wrong. Every error of this package wraps one of these, or the
// Redis client's own error; test with [errors.Is].
var (
	// ErrOptionsInvalid says that [New] was given a nil client or an option out of its range.
	ErrOptionsInvalid = errors.New("dueq: invalid options")
	// ErrTopicInvalid says that a topic is not 1 to 255 bytes of UTF-8 without
	// braces and control characters, or ends in '/' and a number.
	ErrTopicInvalid = errors.New("dueq: invalid topic")
	// ErrIDInvalid says that an id is not 1 to 1024 bytes of UTF-8 without
	// braces and control characters.
	ErrIDInvalid = errors.New("dueq: invalid id")
	// ErrEventInvalid says that an event has no effect time, one more than 100
	// years ahead, or an option out of its range.
	ErrEventInvalid = errors.New("dueq: invalid event")
	// ErrBodyTooLarge says that a body is larger than Options.MaxBody.
	ErrBodyTooLarge = errors.New("dueq: body too large")
	// ErrQueryInvalid says that a [Query], [Filter] or [State], or what was given to
	// [Queue.Forecast], is out of its range, or that a cursor is none.
	ErrQueryInvalid = errors.New("dueq: invalid query")
	// ErrSubscription says that Subscribe was called without handlers, with a
	// nil or more than 64 of them, or with a middleware that makes one nil, or
	// Subscribe or Consume a second time for one topic.
	ErrSubscription = errors.New("dueq: invalid subscription")
	// ErrShutDown says that the queue is shut down.
	ErrShutDown = errors.New("dueq: queue is shut down")

	// ErrDuplicateID says that an event with this id exists, and that the policy is KeyReject.
	ErrDuplicateID = bucket.ErrDuplicateID
	// ErrOutcomeUnknown says that a call was sent and its reply did not come:
	// it may have taken effect, or not.
	ErrOutcomeUnknown = bucket.ErrOutcomeUnknown
	// ErrNotReplicated says that an event was stored, but that fewer replicas than
	// Options.Replicas said in time that they have it. The event exists and may be
	// delivered; a failover may lose it. Publish it again with the same id and
	// [KeyKeep] to make sure: that changes nothing about an event that is there.
	ErrNotReplicated = bucket.ErrNotReplicated
	// ErrNotFound says that there is no event with this id.
	ErrNotFound = bucket.ErrNotFound
	// ErrLeased says that a handler has the event, so it cannot be changed now.
	ErrLeased = bucket.ErrLeased
	// ErrNotDead says that the event that was to be requeued is not dead.
	ErrNotDead = bucket.ErrNotDead

	// ErrClaimInvalid says that a limit is not from 1 to 500, or a visibility time
	// not from 100 milliseconds to 24 hours.
	ErrClaimInvalid = subscriber.ErrClaimInvalid
	// ErrLeaseLost is the cause with which a handler's ctx ends when its lease
	// is no longer valid: the event may be with another process by now. It is also
	// what a [Delivery] returns that has ended.
	ErrLeaseLost = subscriber.ErrLeaseLost
	// ErrStopping is the cause with which a handler's ctx ends when ShutDown's
	// deadline has passed: the event goes back, at no cost in attempts. A
	// [Delivery] returns it when that happens while its outcome is on its way.
	ErrStopping = subscriber.ErrStopping
	// ErrHandlerTimeout is the cause with which a handler's ctx ends when
	// Options.HandlerTimeout has passed.
	ErrHandlerTimeout = subscriber.ErrHandlerTimeout
)
