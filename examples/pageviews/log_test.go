package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// accessLog is a log and what must come out of it.
type accessLog struct {
	name, file string
	requests   int
	others     int // lines that are no requests
	counts     map[string]int
}

// accessLogs are a synthetic log, and a real one where there is one.
func accessLogs(t *testing.T) []accessLog {
	logs := []accessLog{syntheticLog(t)}
	file := filepath.FromSlash("../../../shared/data/access.log")
	if _, err := os.Stat(file); err == nil {
		logs = append(logs, realLog(t, file))
	}
	return logs
}

// realLog counts a log as awk '{ n[$7]++ }' would.
func realLog(t *testing.T, file string) accessLog {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	l := accessLog{name: "real", file: file, counts: make(map[string]int)}
	for line := range strings.Lines(string(text)) {
		l.counts[strings.Fields(line)[6]]++
		l.requests++
	}
	return l
}

// syntheticLog writes a log in which many paths are no ids, and not all lines are
// requests.
func syntheticLog(t *testing.T) accessLog {
	long := "/" + strings.Repeat("long", 1000)
	paths := []string{
		"/", "*", "/?q={}", "/?q=%7B%7D", "/%", "/é", "/\xe9", "/\xe9\x00\xff", "/tab\tbed", `/\"quoted\"`, `/\\`,
		long, long + "/", long + "{}", "sha256", "/'+pageviews+'",
	}
	for i := range 30 {
		paths = append(paths, fmt.Sprintf("/page/%d", i))
	}
	junk := []string{"", "-", "\x16\x03\x01", `h - - [t] "-" 408 -`, strings.Repeat("x", 100_000)}

	l := accessLog{name: "synthetic", file: filepath.Join(t.TempDir(), "access.log"), counts: make(map[string]int)}
	var text strings.Builder
	for l.requests < 2000 {
		if rand.IntN(50) == 0 {
			text.WriteString(junk[rand.IntN(len(junk))] + "\n")
			l.others++
			continue
		}
		path := paths[rand.IntN(1+rand.IntN(len(paths)))] // the first ones most often
		fmt.Fprintf(&text, `192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET %s HTTP/1.1" 200 5`, path)
		if rand.IntN(2) == 0 { // combined
			text.WriteString(` "https://example.org/" "Agent \"x\""`)
		}
		text.WriteByte('\n')
		l.counts[path]++
		l.requests++
	}
	if err := os.WriteFile(l.file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}
