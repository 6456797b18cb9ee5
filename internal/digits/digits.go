// Package digits writes whole numbers for people.
package digits

import "strconv"

// Group writes n with commas between its thousands, as 1,234,567.
func Group(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
