package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxField is how many bytes of an unknown field's name an error quotes.
const maxField = 80

// FormError says what is wrong with something that somebody wrote.
type FormError struct {
	Field string // which is wrong; "": none by itself
	Text  string // names the field and the rule
}

// Error is the text.
func (e *FormError) Error() string { return e.Text }

// wrong says that a field breaks a rule.
func wrong(field, format string, args ...any) error {
	return &FormError{field, field + " " + fmt.Sprintf(format, args...)}
}

// Object decodes one JSON object into a struct, and nothing else: no unknown field,
// no null, nothing behind it. Its error is a [FormError].
//
// It is encoding/json: what is decoded goes to Redis, which costs many times as
// much, and the standard library's errors name the field.
func Object(text []byte, into any) error { return decode(text, '{', "object", into) }

// Array decodes one JSON array into a slice, likewise.
func Array(text []byte, into any) error { return decode(text, '[', "array", into) }

func decode(text []byte, first byte, kind string, into any) error {
	text = bytes.TrimLeft(text, " \t\r\n")
	switch {
	case len(text) == 0:
		return &FormError{Text: "there is no JSON"}
	case !utf8.Valid(text):
		return &FormError{Text: "the JSON is not UTF-8"}
	case text[0] != first:
		return &FormError{Text: "it is not a JSON " + kind}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return formError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &FormError{Text: "something follows the JSON " + kind}
	}
	return nil
}

// formError says what package json found wrong.
func formError(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind) && kind.Field == "":
		return &FormError{Text: fmt.Sprintf("there is a JSON %s where none may be", kind.Value)}
	case errors.As(err, &kind):
		return &FormError{kind.Field, fmt.Sprintf("field %.80q cannot be a JSON %s", kind.Field, kind.Value)}
	case errors.As(err, &syntax):
		return &FormError{Text: fmt.Sprintf("it is not JSON: %v, at byte %d", syntax, syntax.Offset)}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &FormError{Text: "the JSON ends too early"}
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	quoted, unknown := strings.CutPrefix(text, "unknown field ")
	if field, err := strconv.Unquote(quoted); unknown && err == nil {
		if len(field) > maxField {
			field = strings.ToValidUTF8(field[:maxField], "") + "…"
		}
		return &FormError{field, fmt.Sprintf("unknown field %q", field)}
	}
	return &FormError{Text: text}
}
