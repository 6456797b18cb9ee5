package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// printable is text as it is if a terminal can show it, else quoted: other hands
// may have put anything into Redis.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return strconv.Quote(text)
	}
	return text
}

// cell is the beginning of a text, fit for one cell of a table.
func cell(text string, most int) string {
	line, _, more := strings.Cut(text, "\n")
	if utf8.RuneCountInString(line) > most {
		n := 0
		for i := range line { // bytes that are no text stay as they are
			if n++; n > most {
				line, more = line[:i], true
				break
			}
		}
	}
	line = printable(line)
	if more {
		line += "…"
	}
	return line
}

// text is a text of several lines as it is if a terminal can show it, else
// quoted.
func text(s string) string {
	if shown(s) {
		return s
	}
	return printable(s)
}

// shown reports whether a terminal shows a text as it is.
func shown(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return hidden(r) || r == unicode.ReplacementChar })
}

// hidden reports whether a character does anything but show.
func hidden(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }

// escaped is JSON in which every character shows.
func escaped(indented string) string {
	if !strings.ContainsFunc(indented, hidden) {
		return indented
	}
	var b strings.Builder
	for _, r := range indented {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
