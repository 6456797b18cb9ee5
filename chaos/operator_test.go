package main

import (
	"testing"
	"time"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/chaos/history"
)

// What a page says of an event is recorded as it is, and a body that is not the
// event's is noticed.
func TestSeen(t *testing.T) {
	t.Parallel()
	const pub, preview = "w0.1/7", 100
	whole := body(pub)
	at := time.UnixMilli(12345)
	page := history.Record{Kind: history.List, Op: 3, Topic: "orders", State: history.Dead}
	e := dueq.EventInfo{ID: "x", Topic: "mails", State: dueq.StateDead, DiedAt: at, Body: whole[:min(preview, len(whole))], BodySize: len(whole)}
	want := history.Record{Kind: history.Seen, Op: 3, Topic: "mails", ID: "x", State: history.Dead, Due: 12345, Pub: pub}
	if got := seenOf(page, &e, preview); got != want {
		t.Errorf("saw %+v, want %+v", got, want)
	}
	for name, change := range map[string]func(*dueq.EventInfo){
		"another size":     func(e *dueq.EventInfo) { e.BodySize++ },
		"another body":     func(e *dueq.EventInfo) { e.Body = append([]byte(nil), body("w0.1/8")...) },
		"less than it may": func(e *dueq.EventInfo) { e.Body = e.Body[:len(e.Body)-1] },
	} {
		bad := e
		change(&bad)
		if got := seenOf(page, &bad, preview); got.Pub == pub {
			t.Errorf("%s: saw %+v", name, got)
		}
	}
}
