package dashboard

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"regexp"

	"github.com/dueq-io/dueq/internal/envelope"
)

const (
	maxJSON      = 256 << 10 // bytes of a body that is indented
	maxShownText = 64 << 10
	maxShownHex  = 8 << 10
)

// bodyView is a body as a page shows it.
type bodyView struct {
	Kind   string   // "json", "text" or "hex"
	Kinds  []string // that are possible
	Tokens []token  // if json
	Text   string   // otherwise
	Cut    bool     // it is only the beginning
	Shown  int      // bytes of the body, if cut
	Size   int
}

// token is a piece of JSON.
type token struct {
	Class string // "key", "string", "number", "word" or ""
	Text  string
}

// newBodyView shows a body in the kind that is wished, or else in the one that
// shows most.
func newBodyView(body []byte, wish string) bodyView {
	v := bodyView{Size: len(body), Kinds: []string{"hex"}, Kind: wish}
	if isText(body) {
		v.Kinds = []string{"text", "hex"}
		if first := bytes.TrimLeft(body, " \t\r\n"); len(body) <= maxJSON && len(first) > 0 && json.Valid(body) {
			v.Kinds = []string{"json", "text", "hex"}
		}
	}
	possible := false
	for _, kind := range v.Kinds {
		possible = possible || kind == wish
	}
	if !possible {
		v.Kind = v.Kinds[0]
	}
	switch v.Kind {
	case "json":
		var indented bytes.Buffer
		_ = json.Indent(&indented, bytes.TrimSpace(body), "", "  ") // it is valid
		text := indented.Bytes()
		v.Tokens = tokens(v.cut(text, maxShownText))
		v.Shown = 0 // of what is indented, that would mean nothing
	case "text":
		v.Text = string(v.cut(body, maxShownText))
	default:
		v.Text = hex.Dump(body[:min(len(body), maxShownHex)])
		v.Cut, v.Shown = len(body) > maxShownHex, maxShownHex
	}
	return v
}

// cut is at most limit bytes of a text.
func (v *bodyView) cut(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	v.Cut, v.Shown = true, limit
	return envelope.Whole(text[:limit])
}

// jsonToken matches a string with what makes it a key, a number, or a word.
var jsonToken = regexp.MustCompile(`("(?:[^"\\]|\\.)*"?)(\s*:)?|-?\d[\d.eE+-]*|true|false|null`)

// tokens takes JSON apart, which may be cut off anywhere.
func tokens(text []byte) []token {
	var all []token
	done := 0
	for _, m := range jsonToken.FindAllSubmatchIndex(text, -1) {
		if m[0] > done {
			all = append(all, token{Text: string(text[done:m[0]])})
		}
		begin, end := m[0], m[1]
		class := "word"
		switch {
		case m[4] >= 0:
			class, end = "key", m[3]
		case text[begin] == '"':
			class = "string"
		case text[begin] == '-' || text[begin] <= '9':
			class = "number"
		}
		all = append(all, token{Class: class, Text: string(text[begin:end])})
		done = end
	}
	return append(all, token{Text: string(text[done:])})
}
