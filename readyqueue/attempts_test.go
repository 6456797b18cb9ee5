package readyqueue_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dueq-io/dueq/readyqueue"
)

func TestAttempts(t *testing.T) {
	t.Parallel()
	for text, a := range map[string]readyqueue.Attempts{
		"0||":                     {},
		"3||boom":                 {Count: 3, Cause: "boom"},
		"1|5|a|b\n|":              {Count: 1, Done: 5, Cause: "a|b\n|"},
		"2|ffffffffffffffff|\xff": {Count: 2, Done: 1<<64 - 1, Cause: "\xff"},
	} {
		if got := a.String(); got != text {
			t.Errorf("%+v is %q, want %q", a, got, text)
		}
		if got := readyqueue.ParseAttempts(text); got != a {
			t.Errorf("%q is %+v, want %+v", text, got, a)
		}
	}
	for text, want := range map[string]readyqueue.Attempts{
		"":      {},
		"x":     {},
		"7":     {Count: 7},
		"7|zz":  {Count: 7},
		"x|1|c": {Done: 1, Cause: "c"},
	} {
		if got := readyqueue.ParseAttempts(text); got != want {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
}

func TestOutcomeString(t *testing.T) {
	t.Parallel()
	for o, want := range map[readyqueue.Outcome]string{
		readyqueue.Ack: "ack", readyqueue.Retry: "retry", readyqueue.Bury: "bury", readyqueue.Release: "release",
		-1: "Outcome(-1)", 4: "Outcome(4)",
	} {
		if got := o.String(); got != want {
			t.Errorf("%d is %q, want %q", int(o), got, want)
		}
	}
}

func FuzzAttempts(f *testing.F) {
	f.Add(0, uint64(0), "")
	f.Add(3, uint64(5), "a|b")
	f.Add(1<<20, uint64(1)<<63, strings.Repeat("ä", 4000))
	f.Add(1, uint64(1), strings.Repeat("\xff", 5000))
	f.Fuzz(func(t *testing.T, count int, done uint64, cause string) {
		a := readyqueue.Attempts{Count: count, Done: done, Cause: cause}
		got := readyqueue.ParseAttempts(a.String())
		if got.Count != count || got.Done != done {
			t.Errorf("%d, %d came back as %d, %d", count, done, got.Count, got.Done)
		}
		switch {
		case len(cause) <= 4096:
			if got.Cause != cause {
				t.Errorf("cause %q came back as %q", cause, got.Cause)
			}
		case len(got.Cause) > 4096 || !strings.HasSuffix(got.Cause, "…"):
			t.Errorf("a cause of %d bytes came back with %d", len(cause), len(got.Cause))
		case utf8.ValidString(cause):
			if text := strings.TrimSuffix(got.Cause, "…"); !strings.HasPrefix(cause, text) || len(text) < 4089 || !utf8.ValidString(text) {
				t.Errorf("cause came back as %q", got.Cause)
			}
		}
	})
}
