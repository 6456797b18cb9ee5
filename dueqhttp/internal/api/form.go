package api

import (
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
	"github.com/dueq-io/dueq/internal/envelope"
)

// event is an event to publish, as it was sent. It is not larger than the API takes.
func (a *API) event(in *envelope.New) (dueq.NewEvent, error) {
	e, err := in.Event(time.Now())
	if err != nil {
		return e, formProblem(problem.Invalid, err)
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
