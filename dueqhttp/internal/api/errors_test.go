package api_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/api"
	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
)

// Each error of the queue has its kind of problem, and none tells of addresses.
func TestProblems(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6379}, Err: errors.New("refused")}
	for _, c := range []struct {
		err  error
		want problem.Kind
	}{
		{dueq.ErrTopicInvalid, problem.Invalid},
		{dueq.ErrIDInvalid, problem.Invalid},
		{dueq.ErrEventInvalid, problem.Invalid},
		{dueq.ErrQueryInvalid, problem.Invalid},
		{dueq.ErrClaimInvalid, problem.Invalid},
		{dueq.ErrBodyTooLarge, problem.TooLarge},
		{dueq.ErrDuplicateID, problem.DuplicateID},
		{dueq.ErrLeased, problem.Leased},
		{dueq.ErrNotFound, problem.NoEvent},
		{dueq.ErrSubscription, problem.SubscribedHere},
		{dueq.ErrLeaseLost, problem.ReceiptEnded},
		{dueq.ErrShutDown, problem.ShuttingDown},
		{fmt.Errorf("%w: %w", dueq.ErrOutcomeUnknown, dueq.ErrStopping), problem.ShuttingDown},
		{fmt.Errorf("%w: %w", dueq.ErrOutcomeUnknown, context.DeadlineExceeded), problem.OutcomeUnknown},
		{fmt.Errorf("%w: %w", dueq.ErrOutcomeUnknown, dial), problem.OutcomeUnknown},
		{dueq.ErrNotReplicated, problem.NotReplicated},
		{context.DeadlineExceeded, problem.RedisDown},
		{dial, problem.RedisDown},
		{problem.Leased.New("x"), problem.Leased},
	} {
		got := api.ProblemOf(fmt.Errorf("dueq: do it: %w", c.err))
		if got.Kind != c.want || strings.HasPrefix(got.Detail, "dueq") || strings.Contains(got.Detail, "10.0.0.1") || got.Detail == "" {
			t.Errorf("%v: %s, %q, want %s", c.err, got.Name, got.Detail, c.want.Name)
		}
		if (got.RetryAfter > 0) != (got.Status == 503) {
			t.Errorf("%v: Retry-After %v with status %d", c.err, got.RetryAfter, got.Status)
		}
	}
}

func TestTooManyClaims(t *testing.T) {
	t.Parallel()
	a, _ := newAPI(t, dueq.Options{})
	a.FillWaiting()
	w := httptest.NewRecorder()
	post(a, w, "/v1/topics/t/claim", `{"wait": "1m"}`)
	if w.Code != 429 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "#too-many") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}
