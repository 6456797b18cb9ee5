package problem

import "net/http"

// The kinds of problems. docs/http.md describes each.
var (
	BadRequest     = Kind{"bad-request", "The request cannot be read", http.StatusBadRequest}
	Unauthorized   = Kind{"unauthorized", "A valid token is needed", http.StatusUnauthorized}
	ReadOnly       = Kind{"read-only", "The token is for reading only", http.StatusForbidden}
	CrossOrigin    = Kind{"cross-origin", "The request comes from another site's page", http.StatusForbidden}
	WrongHost      = Kind{"wrong-host", "The service does not go by this name", http.StatusForbidden}
	NoRoute        = Kind{"no-route", "There is nothing at this path", http.StatusNotFound}
	NoEvent        = Kind{"no-event", "There is no such event", http.StatusNotFound}
	NoMethod       = Kind{"no-method", "The path does not take this method", http.StatusMethodNotAllowed}
	Timeout        = Kind{"timeout", "The request took too long to arrive", http.StatusRequestTimeout}
	DuplicateID    = Kind{"duplicate-id", "An event with this id exists", http.StatusConflict}
	Leased         = Kind{"leased", "A process has the event", http.StatusConflict}
	NotDead        = Kind{"not-dead", "The event is not dead", http.StatusConflict}
	SubscribedHere = Kind{"subscribed-here", "This process handles the topic itself", http.StatusConflict}
	ReceiptEnded   = Kind{"receipt-ended", "The delivery has ended", http.StatusGone}
	ReceiptForeign = Kind{"receipt-foreign", "The receipt is not of this process", http.StatusGone}
	TooLarge       = Kind{"too-large", "The request is too large", http.StatusRequestEntityTooLarge}
	MediaType      = Kind{"media-type", "The content type is not the one that the path takes", http.StatusUnsupportedMediaType}
	Invalid        = Kind{"invalid", "A value is out of its range", http.StatusUnprocessableEntity}
	TooMany        = Kind{"too-many", "Too much is going on already", http.StatusTooManyRequests}
	Internal       = Kind{"internal", "The service has a fault", http.StatusInternalServerError}
	ShuttingDown   = Kind{"shutting-down", "The service is shutting down", http.StatusServiceUnavailable}
	RedisDown      = Kind{"redis-down", "Redis cannot be reached, or refuses", http.StatusServiceUnavailable}
	OutcomeUnknown = Kind{"outcome-unknown", "It is unknown whether the call took effect", http.StatusServiceUnavailable}
	NotReplicated  = Kind{"not-replicated", "The event is stored on too few replicas", http.StatusServiceUnavailable}
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{
		BadRequest, Unauthorized, ReadOnly, CrossOrigin, WrongHost, NoRoute, NoEvent, NoMethod, Timeout,
		DuplicateID, Leased, NotDead, SubscribedHere, ReceiptEnded, ReceiptForeign, TooLarge, MediaType,
		Invalid, TooMany, Internal, ShuttingDown, RedisDown, OutcomeUnknown, NotReplicated,
	}
}
