package api

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dueq-io/dueq/dueqhttp/internal/problem"
	"github.com/dueq-io/dueq/internal/envelope"
)

// smallBody is the most bytes of a request that carries no event.
const smallBody = 64 << 10

// decode reads a request's JSON object into a struct. An empty body is an empty
// object.
func decode(w http.ResponseWriter, r *http.Request, limit int64, into any) error {
	data, err := readBody(w, r, limit)
	if err != nil || len(data) == 0 {
		return err
	}
	if err := checkMediaType(r, "application/json"); err != nil {
		return err
	}
	return decodeObject(data, into)
}

// decodeObject decodes one JSON object, and nothing else.
func decodeObject(data []byte, into any) error {
	if err := envelope.Object(data, into); err != nil {
		return formProblem(problem.BadRequest, err)
	}
	return nil
}

// formProblem is a problem with something that the caller wrote.
func formProblem(kind problem.Kind, err error) error {
	p := kind.New("%v", err)
	if wrong, ok := errors.AsType[*envelope.FormError](err); ok {
		p.Field = wrong.Field
	}
	return p
}

// cut shortens a text of the caller's.
func cut(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:80], "") + "…"
}

// readBody reads all of a request's body.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, readProblem(err)
	}
	return data, nil
}

// readProblem says why a body could not be read.
func readProblem(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return problem.TooLarge.New("the body has more than %d bytes", large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem.Timeout.New("the body did not arrive in time")
	}
	return problem.BadRequest.New("the body ends too early, or is not encoded as HTTP wants it")
}

func checkMediaType(r *http.Request, want string) error {
	got, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; err != nil || got != want || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return problem.MediaType.New("the Content-Type is %.80q, not %s", r.Header.Get("Content-Type"), want)
	}
	return nil
}

// invalid is a problem with one value of the request.
func invalid(field, format string, args ...any) error {
	p := problem.Invalid.New("%s %s", field, fmt.Sprintf(format, args...))
	p.Field = field
	return p
}

// query is a request's query, each parameter given at most once.
type query struct {
	values url.Values
}

// newQuery reads the query. Only the named parameters may be in it.
func newQuery(r *http.Request, names ...string) (query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return query{}, problem.BadRequest.New("the query cannot be read: %v", err)
	}
	for name, all := range values {
		var p *problem.Problem
		switch {
		case !slices.Contains(names, name):
			p = problem.BadRequest.New("unknown query parameter %q", cut(name))
		case len(all) > 1:
			p = problem.BadRequest.New("query parameter %q is given twice", name)
		case !utf8.ValidString(all[0]):
			p = problem.BadRequest.New("query parameter %q is not UTF-8", name)
		default:
			continue
		}
		p.Field = cut(name)
		return query{}, p
	}
	return query{values}, nil
}

// has reports whether a parameter is given.
func (q query) has(name string) bool { return q.values.Has(name) }

// text is a parameter, or "" if it is not given.
func (q query) text(name string) string { return q.values.Get(name) }

// number is a parameter, or nil if it is not given.
func (q query) number(name string) (*int, error) {
	if !q.has(name) {
		return nil, nil
	}
	n, err := strconv.Atoi(q.text(name))
	if err != nil {
		return nil, invalid(name, "is %q, not a number", cut(q.text(name)))
	}
	return &n, nil
}

// lasting is the duration that a field gives, or otherwise if it is not given.
func lasting(field, value string, otherwise, low, high time.Duration) (time.Duration, error) {
	if value == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, invalid(field, `is %q, not a duration such as "1h30m" or "250ms"`, cut(value))
	}
	if d < low || d > high {
		return 0, invalid(field, "is %v, not from %v to %v", d, low, high)
	}
	return d, nil
}

// moment is the time that a field gives, or zero if it is not given.
func moment(field, value string) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil || t.IsZero() { // which would be taken for none
		return t, invalid(field, `is %q, not a time such as "2026-01-31T12:30:00Z"`, cut(value))
	}
	return t, nil
}
