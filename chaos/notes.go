package main

import (
	"fmt"

	"go.uber.org/zap/zapcore"

	"github.com/dueq-io/dueq/chaos/history"
)

// notes is a log that goes into the history, for whoever reads it.
type notes struct{ to *history.Writer }

// Enabled is zapcore.Core's, as are the others.
func (n notes) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

// With drops the fields: the queue's logger has none of its own.
func (n notes) With([]zapcore.Field) zapcore.Core { return n }

// Check adds the core to an entry that is to be written.
func (n notes) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if n.Enabled(e.Level) {
		return c.AddCore(e, n)
	}
	return c
}

// Write writes a record.
func (n notes) Write(e zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(values)
	}
	topic, _ := values.Fields["topic"].(string)
	id, _ := values.Fields["id"].(string)
	delete(values.Fields, "topic")
	delete(values.Fields, "id")
	n.to.Write(history.Record{Kind: history.Noted, Topic: topic, ID: id, Text: fmt.Sprint(e.Message, " ", values.Fields)})
	return nil
}

// Sync does nothing: each record is written at once.
func (n notes) Sync() error { return nil }
