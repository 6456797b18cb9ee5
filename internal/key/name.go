// Package key builds the names of every Redis key and channel dueq uses, and
// refuses names that could reach another lane's keys.
package key

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Longest names, in bytes.
const (
	maxNamespace = 64
	maxTopic     = 255
	maxID        = 1024
)

// ErrName is what every refused namespace, topic or id wraps.
var ErrName = errors.New("invalid name")

// CheckNamespace returns an error wrapping [ErrName] unless ns can head a key:
// 1 to 64 bytes of UTF-8 without braces, control characters or ':'.
func CheckNamespace(ns string) error {
	if strings.Contains(ns, ":") {
		return fmt.Errorf("%w: %.80q holds ':', which ends a namespace", ErrName, ns)
	}
	return check(ns, maxNamespace)
}

// CheckTopic returns an error wrapping [ErrName] unless topic can stand in a
// hash tag: 1 to 255 bytes of UTF-8 without braces or control
// characters, and not ending in '/' and a number, which would name a partition.
func CheckTopic(topic string) error {
	if i := strings.LastIndexByte(topic, '/'); i >= 0 && isNumber(topic[i+1:]) {
		return fmt.Errorf("%w: %.80q ends in '/' and a number, which names a partition", ErrName, topic)
	}
	return check(topic, maxTopic)
}

// CheckID returns an error wrapping [ErrName] unless id can name an event: 1 to
// 1024 bytes of UTF-8 without braces or control characters.
func CheckID(id string) error { return check(id, maxID) }

func check(name string, most int) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrName)
	case len(name) > most:
		return fmt.Errorf("%w: %.40q… has %d bytes, more than %d", ErrName, name, len(name), most)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: %.80q is not UTF-8", ErrName, name)
	case strings.ContainsAny(name, "{}"):
		return fmt.Errorf("%w: %.80q holds a brace", ErrName, name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%w: %.80q holds a control character", ErrName, name)
	}
	return nil
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
