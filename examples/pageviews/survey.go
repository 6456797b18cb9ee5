package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
)

// survey is the direct count of a log, without Redis or a database: what the
// replay must arrive at.
type survey struct {
	fingerprint string // of the log's contents: tells its run from those of other logs
	requests    int
	others      int // lines that are no requests
	counts      map[string]int
}

// readSurvey counts a log directly.
func readSurvey(log io.Reader) (survey, error) {
	s := survey{counts: make(map[string]int)}
	sum := sha256.New()
	err := eachLine(io.TeeReader(log, sum), func(_ int, path string, ok bool) error {
		if ok {
			s.requests++
			s.counts[path]++
		} else {
			s.others++
		}
		return nil
	})
	s.fingerprint = fmt.Sprintf("%x", sum.Sum(nil)[:8])
	return s, err
}

// upToNow reads a file as far as it reaches now: a server may go on to write it.
func upToNow(file *os.File) (*io.SectionReader, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(file, 0, info.Size()), nil
}
