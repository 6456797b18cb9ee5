// Package problem is how errors look over HTTP: problem details by RFC 9457.
package problem

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// contentType is the media type of a problem.
const contentType = "application/problem+json"

// base heads the address of each kind, where it is described.
const base = "https://github.com/dueq-io/dueq/blob/main/docs/http.md#"

// Kind is a kind of problem.
type Kind struct {
	Name   string // the last part of its type
	Title  string // the same for all problems of the kind
	Status int
}

// Type is the URI of the kind.
func (k Kind) Type() string { return base + k.Name }

// New is a problem of the kind. The detail is for people.
func (k Kind) New(format string, args ...any) *Problem {
	return &Problem{Kind: k, Detail: fmt.Sprintf(format, args...)}
}

// Problem is an error for the caller of the service.
type Problem struct {
	Kind
	Detail     string
	Field      string        // of the request's body or query that is wrong. Defaults to "": none, or several.
	ID         string        // of the event that exists all the same. Defaults to "": none.
	RetryAfter time.Duration // when it may be worth another try. Defaults to 0: not said.
	Allow      string        // methods that the path takes. Defaults to "": not said.
}

// Error is the title with the detail.
func (p *Problem) Error() string { return p.Title + ": " + p.Detail }

// Body is a problem as it is sent.
type Body struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail,omitempty"`
	Field     string `json:"field,omitempty"`
	ID        string `json:"id,omitempty"`
	RequestID string `json:"request_id,omitempty"`
}

// Body is the problem as it is sent in answer to the request with that id.
func (p *Problem) Body(requestID string) Body {
	return Body{
		Type: p.Type(), Title: p.Title, Status: p.Status, Detail: p.Detail,
		Field: p.Field, ID: p.ID, RequestID: requestID,
	}
}

// Write answers a request with the problem. The request's id is the one in w's
// header X-Request-Id.
func (p *Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	if p.Allow != "" {
		h.Set("Allow", p.Allow)
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="dueq"`)
	}
	body, _ := json.Marshal(p.Body(h.Get("X-Request-Id"))) // of strings and a number: it cannot fail
	body = append(body, '\n')
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // an error is the client's going
}
