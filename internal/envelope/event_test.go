package envelope_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/envelope"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestEvents(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]dueq.NewEvent{
		`{}`:                             {EffectTime: now},
		`{"body": {"order": 42}}`:        {EffectTime: now, Body: []byte(`{"order": 42}`)},
		`{"body": "x", "in": "30m"}`:     {EffectTime: now.Add(30 * time.Minute), Body: []byte(`"x"`)},
		`{"body": null}`:                 {EffectTime: now, Body: []byte(`null`)},
		`{"text": "x", "in": "-1s"}`:     {EffectTime: now.Add(-time.Second), Body: []byte(`x`)},
		`{"text": ""}`:                   {EffectTime: now},
		`{"base64": "AP8="}`:             {EffectTime: now, Body: []byte{0, 0xff}},
		`{"at": "2026-01-02T03:04:06Z"}`: {EffectTime: now.Add(time.Second)},
		`{"id": "a", "on_duplicate": "keep", "max_attempts": 3}`: {EffectTime: now, ID: "a", KeyPolicy: dueq.KeyKeep, MaxAttempts: 3},
	} {
		e, err := envelope.Decode([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := e.Event(now)
		if err != nil || !bytes.Equal(got.Body, want.Body) || !got.EffectTime.Equal(want.EffectTime) || got.ID != want.ID ||
			got.KeyPolicy != want.KeyPolicy || got.MaxAttempts != want.MaxAttempts {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
}

// What is to be due at once is due by its millisecond; no other time becomes
// earlier.
func TestTimesAreWhole(t *testing.T) {
	t.Parallel()
	odd := now.Add(1)
	for _, c := range []struct {
		in, at string
		want   time.Time
	}{
		{"", "", now},
		{"1s", "", now.Add(time.Second + time.Millisecond)},
		{"0s", "", now.Add(time.Millisecond)},
		{"", "2026-01-02T03:04:05.0000001Z", now.Add(time.Millisecond)},
		{"", "2026-01-02T03:04:05.001Z", now.Add(time.Millisecond)},
	} {
		if got, err := envelope.Time(c.in, c.at, odd); err != nil || !got.Equal(c.want) {
			t.Errorf("in %q, at %q: %v, %v, want %v", c.in, c.at, got, err, c.want)
		}
	}
}

func TestBadEvents(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                "there is no JSON",
		`{`:                               "the JSON ends too early",
		`[]`:                              "not a JSON object",
		`null`:                            "not a JSON object",
		"{\"id\": \"\xff\"}":              "not UTF-8",
		`{} {}`:                           "something follows",
		`{"bodi": 1}`:                     `unknown field "bodi"`,
		`{"in": 5}`:                       `field "in" cannot be a JSON number`,
		`{"in": "5"}`:                     `in is "5", not a duration`,
		`{"at": "tomorrow"}`:              `at is "tomorrow", not a time`,
		`{"in": "1s", "at": "x"}`:         "exclude each other",
		`{"body": 1, "text": "x"}`:        "exclude each other",
		`{"base64": "!"}`:                 "base64",
		`{"id": ""}`:                      "id is empty",
		`{"max_attempts": 0}`:             "max_attempts is 0",
		`{"on_duplicate": "keep"}`:        "without an id",
		`{"id":"a","on_duplicate":"why"}`: `on_duplicate is "why"`,
		`{"metadata": {"a": 1}}`:          "metadata",
	} {
		e, err := envelope.Decode([]byte(text))
		if err == nil {
			_, err = e.Event(now)
		}
		var form *envelope.FormError
		if !errors.As(err, &form) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want a FormError with %q in it", text, err, want)
		}
	}
}

// Whatever is written of a body reads as that body again, but for white space in
// JSON.
func FuzzBody(f *testing.F) {
	for _, raw := range []string{"", "x", `{"a": [1, 2.50, "<>"]}`, "\xff\x00", `"\ud800"`, "1e999", "null", " 1 ", "\"\u2028\""} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		text, err := json.Marshal(envelope.NewBody(raw))
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		e, err := envelope.Decode(text)
		if err != nil {
			t.Fatalf("%q: %s: %v", raw, text, err)
		}
		got, err := e.Bytes()
		if err != nil {
			t.Fatalf("%q: %s: %v", raw, text, err)
		}
		var want any
		if json.Unmarshal(raw, &want) == nil {
			raw, got = compact(raw), compact(got)
		}
		if !bytes.Equal(got, raw) {
			t.Errorf("%q: %s: got %q", raw, text, got)
		}
	})
}

// compact is JSON as it is after a trip.
func compact(raw []byte) []byte {
	var b, escaped bytes.Buffer
	_ = json.Compact(&b, raw)
	json.HTMLEscape(&escaped, b.Bytes())
	return escaped.Bytes()
}

// No text breaks the reading of events.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"id":"a","body":[1],"in":"1s","metadata":{"a":"b"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := envelope.Decode(text)
		if err == nil {
			_, err = e.Event(now)
		}
		if err != nil && err.Error() == "" {
			t.Error("an error without a text")
		}
	})
}

// What of an event is there goes out: the whole body as what it is, a beginning
// never as JSON and without half a character.
func TestInfo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body  string
		size  int
		exact bool
		want  string
	}{
		{`{"a":1}`, 7, false, `"body":{"a":1}`},
		{`{"a":1}`, 8, false, `"text":"{\"a\":1}"`},
		{"ä", 2, false, `"text":"ä"`},
		{"xä€"[:4], 100, false, `"text":"xä"`},
		{"x\xff", 100, false, `"base64":"eP8="`},
		{"\xe2\x82", 3, false, `"base64":"4oI="`},
		{`{"a":1}`, 7, true, `"base64":"eyJhIjoxfQ=="`},
		{"", 9, false, `"body_size":9,"attempts"`},
		{"", 0, true, `"body_size":0,"attempts"`},
	} {
		info := envelope.NewInfo(&dueq.EventInfo{Body: []byte(c.body), BodySize: c.size}, c.exact)
		text, err := json.Marshal(info)
		if err != nil || !strings.Contains(string(text), c.want) {
			t.Errorf("%q of %d bytes: %s, %v, want %s", c.body, c.size, text, err, c.want)
		}
	}
}
