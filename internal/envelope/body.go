package envelope

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Body is an event's body in JSON: in exactly one of three forms, or none if it is
// empty.
type Body struct {
	JSON   json.RawMessage `json:"body,omitempty"`   // any JSON value: the body is its text
	Text   *string         `json:"text,omitempty"`   // the body as it is
	Base64 []byte          `json:"base64,omitempty"` // the body in base64
}

// NewBody is a body for others to read: as JSON if it is that, without white
// space, else as text if it is UTF-8.
func NewBody(raw []byte) Body {
	var compact bytes.Buffer
	switch {
	case len(raw) == 0:
		return Body{}
	case json.Compact(&compact, raw) == nil && utf8.Valid(raw):
		return Body{JSON: compact.Bytes()}
	case utf8.Valid(raw):
		text := string(raw)
		return Body{Text: &text}
	}
	return Body{Base64: raw}
}

// Bytes is the body that somebody wrote, or an error if it has several forms.
func (b Body) Bytes() ([]byte, error) {
	forms := 0
	var raw []byte
	if b.JSON != nil {
		forms, raw = forms+1, b.JSON
	}
	if b.Text != nil {
		forms, raw = forms+1, []byte(*b.Text)
	}
	if b.Base64 != nil {
		forms, raw = forms+1, b.Base64
	}
	if forms > 1 {
		return nil, &FormError{"body", "body, text and base64 exclude each other"}
	}
	return raw, nil
}
