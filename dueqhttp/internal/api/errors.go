package api

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
)

// later is when a service that cannot do its work may be asked again.
const later = time.Second

// problemOf is what the caller is told of an error.
func problemOf(err error) *problem.Problem {
	var p *problem.Problem
	if errors.As(err, &p) {
		return p
	}
	for _, c := range []struct {
		is   error
		kind problem.Kind
	}{
		{dueq.ErrTopicInvalid, problem.Invalid},
		{dueq.ErrIDInvalid, problem.Invalid},
		{dueq.ErrEventInvalid, problem.Invalid},
		{dueq.ErrClaimInvalid, problem.Invalid},
		{dueq.ErrQueryInvalid, problem.Invalid},
		{dueq.ErrBodyTooLarge, problem.TooLarge},
		{dueq.ErrDuplicateID, problem.DuplicateID},
		{dueq.ErrLeased, problem.Leased},
		{dueq.ErrNotDead, problem.NotDead},
		{dueq.ErrNotFound, problem.NoEvent},
		{dueq.ErrSubscription, problem.SubscribedHere},
		{dueq.ErrLeaseLost, problem.ReceiptEnded},
		{dueq.ErrShutDown, problem.ShuttingDown},
		{dueq.ErrStopping, problem.ShuttingDown},
		{dueq.ErrNotReplicated, problem.NotReplicated},
		{dueq.ErrOutcomeUnknown, problem.OutcomeUnknown},
	} {
		if errors.Is(err, c.is) {
			p = c.kind.New("%s", text(err))
			if c.kind == problem.OutcomeUnknown { // what it wraps may have addresses in it
				p.Detail = "Redis was sent the call, and its answer did not come"
			}
			break
		}
	}
	if p == nil {
		p = problem.RedisDown.New("%s", redisText(err))
	}
	if p.Status == http.StatusServiceUnavailable {
		p.RetryAfter = later
	}
	return p
}

// text is an error without the names of packages that it begins with.
func text(err error) string {
	text := err.Error()
	for _, name := range []string{"dueq", "bucket", "subscriber"} {
		text = strings.TrimPrefix(text, name+": ")
	}
	return text
}

// redisText tells what Redis answered. Why it did not answer is for the log: that
// has addresses in it.
func redisText(err error) string {
	var answer redis.Error
	switch {
	case errors.As(err, &answer):
		return "Redis answered: " + answer.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "Redis did not answer in time"
	}
	return "Redis cannot be reached, or failed in the middle; the service's log says why"
}
