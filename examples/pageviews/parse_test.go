package main_test

import (
	"bytes"
	"strings"
	"testing"

	pageviews "github.com/dueq-io/dueq/examples/pageviews"
)

func TestParsePath(t *testing.T) {
	t.Parallel()
	const head = `192.0.2.1 - - [17/May/2015:10:05:03 +0000] `
	for _, c := range []struct{ name, line, path string }{
		{"common", head + `"GET /a HTTP/1.1" 200 203023`, "/a"},
		{"combined", head + `"GET /a HTTP/1.1" 200 5 "http://x/?q=\"GET /b HTTP/1.1\"" "Agent (x; y)"`, "/a"},
		{"line end", head + `"GET /a HTTP/1.1" 200 5` + "\r\n", "/a"},
		{"no address", `- - - [17/May/2015:10:05:03 +0000] "HEAD / HTTP/1.0" 304 -`, "/"},
		{"user", `h - ann lee [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 5`, "/a"},
		{"query", head + `"GET /?flav=rss20 HTTP/1.1" 200 5`, "/?flav=rss20"},
		{"no path", head + `"OPTIONS * HTTP/2.0" 200 -`, "*"},
		{"escapes", head + `"GET /%7B\"\\\x16 HTTP/1.1" 404 5`, `/%7B\"\\\x16`},
		{"bytes", head + "\"GET /{\xff\t} HTTP/1.1\" 404 5", "/{\xff\t}"},

		{"empty", "", ""},
		{"blank", "\n", ""},
		{"no request", head + `"-" 408 -`, ""},
		{"other protocol", head + `"\x16\x03\x01" 400 226`, ""},
		{"space in path", head + `"GET /a b HTTP/1.1" 400 226`, ""},
		{"no protocol", head + `"GET /a" 200 5`, ""},
		{"no status", head + `"GET /a HTTP/1.1"`, ""},
		{"cut off", head + `"GET /a HT`, ""},
		{"quote at the end", head + `"GET /a\" HTTP/1.1`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path, ok := pageviews.ParsePath([]byte(c.line))
			if path != c.path || ok != (c.path != "") {
				t.Errorf("ParsePath(%q) = %q, %v, want %q", c.line, path, ok, c.path)
			}
		})
	}
}

func TestEachLineTooLong(t *testing.T) {
	t.Parallel()
	const request = `h - - [t] "GET /a HTTP/1.1" 200 5`
	long := strings.Replace(request, "/a", "/"+strings.Repeat("a", 200_000), 1)
	var paths []string
	err := pageviews.EachLine(strings.NewReader(request+"\n"+long+"\n"+request), func(line int, path string, ok bool) error {
		if paths = append(paths, path); line != len(paths)-1 || ok != (path != "") {
			t.Errorf("line %d, path %q, ok %v after %d lines", line, path, ok, len(paths)-1)
		}
		return nil
	})
	if got := strings.Join(paths, ","); err != nil || got != "/a,,/a" {
		t.Errorf("paths = %q, %v", got, err)
	}
}

// A log of any bytes is read to its end, line by line, and what is found in a
// line is a path.
func FuzzEachLine(f *testing.F) {
	f.Add([]byte(`h - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 5`))
	f.Add([]byte("h - u [t] \"GET /a\\\" HTTP/1.0\" 404 - \"-\" \"agent\"\r\n\nh - - [t] \"-\" 408 -\n"))
	f.Add([]byte("h - - [t] \"GET /\xff{\x00} HTTP/1.1\" 200 5 \"] \"GET /b HTTP/1.1\" 200 5\""))
	f.Fuzz(func(t *testing.T, log []byte) {
		want := bytes.SplitAfter(log, []byte("\n"))
		if len(want[len(want)-1]) == 0 {
			want = want[:len(want)-1]
		}
		n := 0
		err := pageviews.EachLine(bytes.NewReader(log), func(line int, path string, ok bool) error {
			if n++; line != n-1 || n > len(want) {
				t.Fatalf("line %d after %d lines of %d", line, n-1, len(want))
			}
			if ok != (path != "") || strings.ContainsAny(path, " \n") || !bytes.Contains(want[line], []byte(path)) {
				t.Errorf("line %q: path %q, %v", want[line], path, ok)
			}
			return nil
		})
		if err != nil || n != len(want) {
			t.Errorf("%d lines, %v, want %d", n, err, len(want))
		}
	})
}
