package access_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dueq-io/dueq/dueqhttp/internal/access"
)

const (
	full  = "full-token-0123456789"
	other = "other-token-0123456789=="
	read  = "read-token-0123456789"
)

func request(header, cookie string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if header != "" {
		r.Header.Set("Authorization", header)
	}
	if cookie != "" {
		r.AddCookie(&http.Cookie{Name: access.Cookie, Value: cookie})
	}
	return r
}

func TestLevel(t *testing.T) {
	t.Parallel()
	tokens, err := access.New([]string{full, other}, []string{read})
	if err != nil || tokens.Open() {
		t.Fatal(err, tokens.Open())
	}
	for _, c := range []struct {
		header, cookie string
		want           access.Level
	}{
		{"", "", access.None},
		{"Bearer " + full, "", access.Full},
		{"bearer  " + full, "", access.Full},
		{"Bearer " + other, "", access.Full},
		{"Bearer " + read, "", access.Read},
		{"Bearer " + full + "x", "", access.None},
		{"Bearer " + full[1:], "", access.None},
		{"Bearer", "", access.None},
		{"Basic " + full, "", access.None},
		{full, "", access.None},
		{"", full, access.Full},
		{"", other, access.Full},
		{"", read, access.Read},
		{"", "wrong", access.None},
		{"Bearer " + read, full, access.Read},
		{"Bearer wrong", full, access.None},
	} {
		if got := tokens.Level(request(c.header, c.cookie)); got != c.want {
			t.Errorf("header %q, cookie %q: %v, want %v", c.header, c.cookie, got, c.want)
		}
	}
	twice := request("Bearer "+full, "")
	twice.Header.Add("Authorization", "Bearer "+full)
	if got := tokens.Level(twice); got != access.None {
		t.Errorf("two headers: %v, want none", got)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	tokens, err := access.New(nil, nil)
	if err != nil || !tokens.Open() {
		t.Fatal(err, tokens.Open())
	}
	if got := tokens.Level(request("Bearer whatever", "")); got != access.Full {
		t.Errorf("without tokens: %v, want full", got)
	}
	// A service that may only be looked at is not open to all.
	tokens, err = access.New(nil, []string{read})
	if err != nil || tokens.Open() || tokens.Level(request("", "")) != access.None || tokens.Of(read) != access.Read {
		t.Errorf("a read-only token alone: %v, open %v", err, tokens.Open())
	}
}

func TestBadTokens(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		full, read []string
		want       string
	}{
		"empty":    {[]string{""}, nil, "full token 1: it has 0 characters, not from 16 to 1024"},
		"short":    {nil, []string{read, "hunter2"}, "read-only token 2: it has 7 characters"},
		"long":     {[]string{strings.Repeat("x", 1025)}, nil, "1025 characters"},
		"newline":  {[]string{full + "\n"}, nil, "characters other than"},
		"=":        {[]string{"a=" + full}, nil, "characters other than"},
		"both":     {[]string{full}, []string{full}, "read-only token 1: it is given twice"},
		"not ours": {[]string{"ключ-0123456789-0123"}, nil, "characters other than"},
	} {
		_, err := access.New(c.full, c.read)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
