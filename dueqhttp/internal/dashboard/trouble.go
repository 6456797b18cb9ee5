package dashboard

import (
	"context"
	"errors"
	"net/http"

	"github.com/dueq-io/dueq"
)

var (
	errNoToken  = errors.New("you are not logged in, or your token is no longer valid")
	errReadOnly = errors.New("your token only allows reading")
	errNowhere  = errors.New("there is no such page")
)

type troubleData struct {
	Status int
	What   string // has gone wrong
	Advice string
	Back   string
	Label  string // of the link back
}

// trouble is a page about an error, and the status that goes with it.
func trouble(r *http.Request, err error) (*page, int) {
	data := troubleData{What: err.Error(), Back: "./", Label: "All topics"}
	if topic := r.FormValue("topic"); topic != "" && !errors.Is(err, dueq.ErrTopicInvalid) {
		data.Back, data.Label = with("topic", "topic", topic), "Topic "+topic
	}
	title := "That did not work"
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, errNowhere):
		title, data.Status, data.Advice = "Nothing here", http.StatusNotFound, "The address may be mistyped."
	case errors.Is(err, errNoToken):
		title, data.Status, data.Advice = "Not logged in", http.StatusUnauthorized, "Log in, and try again."
		data.Back, data.Label = "login", "Log in"
	case errors.Is(err, errReadOnly):
		title, data.Status, data.Advice = "Not allowed", http.StatusForbidden, "Nothing was changed. Log in with a token that allows everything."
	case errors.Is(err, errChecking):
		title, data.Status, data.Advice = "One at a time", http.StatusConflict, "Nothing was changed. Try again when it has ended."
		data.Back, data.Label = "check", "Check"
	case errors.Is(err, dueq.ErrNotFound):
		title, data.Status = "No such event", http.StatusNotFound
		data.Advice = "An event is gone once it was handled or cancelled. Ids are case-sensitive."
	case errors.Is(err, dueq.ErrLeased):
		title, data.Status = "A handler has it", http.StatusConflict
		data.Advice = "Nothing was changed. Try again when the handler has returned."
	case errors.Is(err, dueq.ErrNotDead):
		title, data.Status = "It is not dead any more", http.StatusConflict
		data.Advice = "Nothing was changed. Somebody else may have requeued it."
	case isInput(err):
		data.Status, data.Advice = http.StatusBadRequest, "Nothing was changed. Go back, and correct the input."
	case errors.As(err, &tooLarge):
		data.Status, data.Advice = http.StatusRequestEntityTooLarge, "Nothing was changed."
	case errors.Is(err, dueq.ErrOutcomeUnknown):
		data.Status, data.Advice = http.StatusBadGateway, "It may have taken effect all the same: look before you try again."
	case errors.Is(err, dueq.ErrShutDown):
		title, data.Status, data.Advice = "Shutting down", http.StatusServiceUnavailable, "Try again in a moment."
	case errors.Is(err, context.DeadlineExceeded):
		title, data.Status, data.Advice = "Redis takes too long", http.StatusGatewayTimeout, "Try again in a moment."
	default:
		data.Status, data.Advice = http.StatusBadGateway, "Is Redis up? Its last word is above."
	}
	return &page{name: "trouble", Title: title, Data: data}, data.Status
}

// isInput reports whether an error is about what somebody typed.
func isInput(err error) bool {
	for _, is := range []error{errInput, dueq.ErrTopicInvalid, dueq.ErrIDInvalid, dueq.ErrEventInvalid, dueq.ErrQueryInvalid} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}
