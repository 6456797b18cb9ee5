package main

import (
	"bufio"
	"errors"
	"io"
	"regexp"
)

// maxLine is the longest line that can be a request, in bytes. Servers refuse
// requests long before that.
const maxLine = 64 << 10

// request is a line of the Common Log Format; what the Combined Log Format adds
// comes after it:
//
//	host ident user [time] "method path protocol" status bytes
//
// A quote within the path is written \". The path has no space.
var request = regexp.MustCompile(
	`^\S+ \S+ .+? \[[^\]]+\] "[^" ]+ ((?:[^"\\ ]|\\.)+) HTTP/[0-9.]+" [0-9]{3} (?:[0-9]+|-)(?: .*)?\r?\n?$`)

// parsePath finds the path that a line of an access log asks for, with its query
// and all escapes as they stand there. ok is false if the line is no request.
func parsePath(line []byte) (path string, ok bool) {
	m := request.FindSubmatch(line)
	if m == nil {
		return "", false
	}
	return string(m[1]), true
}

// eachLine calls do with the number of each line, from 0 on, and its path, or
// with ok false where the line is no request. It ends at do's first error.
func eachLine(log io.Reader, do func(line int, path string, ok bool) error) error {
	lines := bufio.NewReaderSize(log, maxLine)
	for line := 0; ; line++ {
		text, err := lines.ReadSlice('\n')
		if len(text) == 0 && errors.Is(err, io.EOF) {
			return nil
		}
		path, ok := "", false
		if !errors.Is(err, bufio.ErrBufferFull) {
			path, ok = parsePath(text)
		}
		for errors.Is(err, bufio.ErrBufferFull) { // skip the rest of a line that is too long
			_, err = lines.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err := do(line, path, ok); err != nil {
			return err
		}
	}
}
