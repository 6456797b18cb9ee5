// Package pool says what an event record is and where its body lies.
//
// A record is a small JSON header, a newline, then the raw body:
//
//	{"v":1,"at":1732184357123}
//	any bytes
//
// It is binary-safe, and readable in redis-cli.
package pool

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	jsoniter "github.com/json-iterator/go"
)

// Version is the record format that [Record.Encode] writes.
const Version = 1

// ErrRecord is what every record that cannot be read wraps.
var ErrRecord = errors.New("pool: unreadable record")

// Record is an event as it lies in the pool.
type Record struct {
	EffectTime  int64             // milliseconds since 1970
	MaxAttempts int               // 0: what the delivering queue is set to
	Metadata    map[string]string // nil: none
	TraceParent string            // W3C trace context of the publish; "": none
	TraceState  string
	Body        []byte
}

// header is a record's first line. Scripts rewrite "at", so it stays second. A field
// that a reader does not know it passes over.
type header struct {
	V      int               `json:"v"`
	At     int64             `json:"at"`
	Max    int               `json:"max,omitempty"`
	Meta   map[string]string `json:"meta,omitempty"`
	Parent string            `json:"traceparent,omitempty"`
	State  string            `json:"tracestate,omitempty"`
}

// Encode returns the record as it lies in the pool hash.
func (r *Record) Encode() (string, error) {
	var b strings.Builder
	if r.MaxAttempts == 0 && len(r.Metadata) == 0 && r.TraceParent == "" {
		var at [20]byte
		b.Grow(len(`{"v":1,"at":}`) + 1 + len(at) + len(r.Body))
		b.WriteString(`{"v":1,"at":`)
		b.Write(strconv.AppendInt(at[:0], r.EffectTime, 10))
		b.WriteByte('}')
	} else {
		h, err := jsoniter.ConfigCompatibleWithStandardLibrary.MarshalToString(header{
			V: Version, At: r.EffectTime, Max: r.MaxAttempts, Meta: r.Metadata, Parent: r.TraceParent, State: r.TraceState,
		})
		if err != nil {
			return "", fmt.Errorf("pool: encode header: %w", err)
		}
		b.Grow(len(h) + 1 + len(r.Body))
		b.WriteString(h)
	}
	b.WriteByte('\n')
	b.Write(r.Body)
	return b.String(), nil
}

// Decode reads a record. Its errors wrap [ErrRecord].
func Decode(record string) (Record, error) {
	r, body, err := Split(record)
	if err != nil {
		return Record{}, err
	}
	r.Body = []byte(body)
	return r, nil
}

// Split reads a record without copying its body, which it returns beside it.
func Split(record string) (r Record, body string, err error) {
	line, body, ok := strings.Cut(record, "\n")
	if !ok {
		return Record{}, "", fmt.Errorf("%w: no newline after the header in %d bytes", ErrRecord, len(record))
	}
	var h header
	if err := jsoniter.ConfigCompatibleWithStandardLibrary.UnmarshalFromString(line, &h); err != nil {
		return Record{}, "", fmt.Errorf("%w: header %.80q: %w", ErrRecord, line, err)
	}
	if h.V != Version {
		return Record{}, "", fmt.Errorf("%w: format version %d, this is version %d", ErrRecord, h.V, Version)
	}
	return Record{
		EffectTime: h.At, MaxAttempts: h.Max, Metadata: h.Meta, TraceParent: h.Parent, TraceState: h.State,
	}, body, nil
}
