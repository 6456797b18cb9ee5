// Package access says what the sender of a request may do: nothing, read, or
// everything.
package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Cookie is the name of the cookie in which a browser may bring a token. Whoever
// sets it makes it HttpOnly and SameSite=Strict.
const Cookie = "dueq_token"

const (
	minToken = 16
	maxToken = 1024
)

// Level is what the sender of a request may do.
type Level int

// The levels, in order.
const (
	None Level = iota // nothing
	Read              // look at everything
	Full              // everything
)

// String is "none", "read" or "full".
func (l Level) String() string {
	switch l {
	case Full:
		return "full"
	case Read:
		return "read"
	}
	return "none"
}

// Tokens are the secrets that give access. They are kept as digests, so that
// comparing them takes the same time however much of one was guessed.
type Tokens struct {
	full, read [][sha256.Size]byte
}

// New takes the tokens that give full access, and those with which one may only
// look. Without any, everyone has full access. Its error quotes no token.
func New(full, read []string) (*Tokens, error) {
	t := &Tokens{}
	seen := make(map[string]bool)
	add := func(kind string, tokens []string, to *[][sha256.Size]byte) error {
		for i, token := range tokens {
			if err := check(token); err != nil {
				return fmt.Errorf("access: %s token %d: %w", kind, i+1, err)
			}
			if seen[token] {
				return fmt.Errorf("access: %s token %d: it is given twice", kind, i+1)
			}
			seen[token] = true
			*to = append(*to, sha256.Sum256([]byte(token)))
		}
		return nil
	}
	if err := add("full", full, &t.full); err != nil {
		return nil, err
	}
	return t, add("read-only", read, &t.read)
}

// check says whether a token may be sent in a header and in a cookie (RFC 6750,
// section 2.1), and is too long to be guessed.
func check(token string) error {
	if len(token) < minToken || len(token) > maxToken {
		return fmt.Errorf("it has %d characters, not from %d to %d", len(token), minToken, maxToken)
	}
	for _, c := range []byte(strings.TrimRight(token, "=")) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune("-._~+/", rune(c)) {
			return errors.New("it has characters other than letters, digits, - . _ ~ + / and a = at the end")
		}
	}
	return nil
}

// Open reports whether there are no tokens, so that everyone has full access.
func (t *Tokens) Open() bool { return len(t.full)+len(t.read) == 0 }

// Of is what a token gives.
func (t *Tokens) Of(token string) Level {
	if t.Open() {
		return Full
	}
	digest := sha256.Sum256([]byte(token))
	level := None
	for i := range t.read {
		if subtle.ConstantTimeCompare(digest[:], t.read[i][:]) == 1 {
			level = Read
		}
	}
	for i := range t.full {
		if subtle.ConstantTimeCompare(digest[:], t.full[i][:]) == 1 {
			level = Full
		}
	}
	return level
}

// Level is what the sender of r may do, by the header Authorization, or where
// there is none, by the cookie.
func (t *Tokens) Level(r *http.Request) Level {
	if t.Open() {
		return Full
	}
	if header := r.Header.Values("Authorization"); len(header) > 0 {
		scheme, token, _ := strings.Cut(header[0], " ")
		if len(header) > 1 || !strings.EqualFold(scheme, "Bearer") {
			return None
		}
		return t.Of(strings.TrimSpace(token))
	}
	if cookie, err := r.Cookie(Cookie); err == nil {
		return t.Of(cookie.Value)
	}
	return None
}
