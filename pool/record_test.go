package pool_test

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dueq-io/dueq/pool"
)

func equal(a, b pool.Record) bool {
	return a.EffectTime == b.EffectTime && a.MaxAttempts == b.MaxAttempts &&
		maps.Equal(a.Metadata, b.Metadata) && a.TraceParent == b.TraceParent && a.TraceState == b.TraceState && bytes.Equal(a.Body, b.Body)
}

func TestEncode(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]pool.Record{
		"{\"v\":1,\"at\":1732184357123}\nbody":                              {EffectTime: 1732184357123, Body: []byte("body")},
		"{\"v\":1,\"at\":0}\n":                                              {},
		"{\"v\":1,\"at\":-5}\n\n\x00":                                       {EffectTime: -5, Body: []byte("\n\x00")},
		"{\"v\":1,\"at\":1,\"max\":3}\n":                                    {EffectTime: 1, MaxAttempts: 3},
		"{\"v\":1,\"at\":1,\"meta\":{\"a\":\"1\",\"b\":\"\\n\\\"\"}}\nx":    {EffectTime: 1, Metadata: map[string]string{"b": "\n\"", "a": "1"}, Body: []byte("x")},
		"{\"v\":1,\"at\":1,\"max\":3,\"meta\":{\"\":\"\\u003c\\u0026\"}}\n": {EffectTime: 1, MaxAttempts: 3, Metadata: map[string]string{"": "<&"}},
		"{\"v\":1,\"at\":1,\"traceparent\":\"p\",\"tracestate\":\"s\"}\nx":  {EffectTime: 1, TraceParent: "p", TraceState: "s", Body: []byte("x")},
	} {
		got, err := r.Encode()
		if err != nil || got != want {
			t.Errorf("%+v is %q, %v; want %q", r, got, err, want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := pool.Record{
			EffectTime:  rapid.Int64().Draw(t, "at"),
			MaxAttempts: rapid.IntRange(0, 1<<20).Draw(t, "max"),
			Metadata:    rapid.MapOfN(rapid.String(), rapid.String(), -1, 5).Draw(t, "meta"),
			TraceParent: rapid.String().Draw(t, "trace parent"),
			Body:        rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
		}
		text, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := pool.Decode(text)
		if err != nil || !equal(got, want) {
			t.Errorf("%+v came back as %+v, %v", want, got, err)
		}
		split, body, err := pool.Split(text)
		if err != nil || split.Body != nil || body != string(want.Body) || split.EffectTime != want.EffectTime {
			t.Errorf("%+v was split into %+v, %q, %v", want, split, body, err)
		}
	})
}

// The body of a decoded record is the caller's own.
func TestDecodedBodyIsACopy(t *testing.T) {
	t.Parallel()
	text := "{\"v\":1,\"at\":1}\nbody"
	first, err := pool.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	copy(first.Body, "????")
	second, err := pool.Decode(text)
	if err != nil || string(second.Body) != "body" {
		t.Errorf("body %q, %v", second.Body, err)
	}
}

// Records of later versions of this program, within the format version, may
// have more in their headers.
func TestDecodeUnknownFields(t *testing.T) {
	t.Parallel()
	r, err := pool.Decode("{\"v\":1,\"at\":7,\"trace\":{\"a\":[1]},\"max\":2}\nbody")
	if err != nil || r.EffectTime != 7 || r.MaxAttempts != 2 || string(r.Body) != "body" {
		t.Errorf("%+v, %v", r, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		"", "\n", "{}\n", "null\n", "[]\n", "{\"v\":1,\"at\":1}", "{\"v\":2,\"at\":1}\n", "{\"v\":1,\"at\":1}\n\n\x00\xff",
		"{\"v\":1,\"at\":1,\"max\":-1,\"meta\":{\"a\":\"\\ud800\"}}\n", "{\"v\":1,\"at\":1e3}\n", "{\"v\":1,\"at\":99999999999999999999}\n",
		strings.Repeat("[", 1000) + "\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := pool.Decode(text)
		if err != nil {
			if !errors.Is(err, pool.ErrRecord) || len(err.Error()) > 1000 {
				t.Errorf("error %q", err)
			}
			return
		}
		for name, value := range r.Metadata {
			if !utf8.ValidString(name + value) {
				return // nobody publishes that
			}
		}
		again, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := pool.Decode(again); err != nil || !equal(r, back) {
			t.Errorf("%q is %+v, and that is %q, which is %+v, %v", text, r, again, back, err)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	for name, r := range map[string]pool.Record{
		"plain":    {EffectTime: 1732184357123, Body: make([]byte, 128)},
		"metadata": {EffectTime: 1732184357123, MaxAttempts: 3, Metadata: map[string]string{"trace": "17"}, Body: make([]byte, 128)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Encode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, r := range map[string]pool.Record{
		"plain":    {EffectTime: 1732184357123, Body: make([]byte, 128)},
		"metadata": {EffectTime: 1732184357123, MaxAttempts: 3, Metadata: map[string]string{"trace": "17"}, Body: make([]byte, 128)},
	} {
		text, err := r.Encode()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := pool.Decode(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
