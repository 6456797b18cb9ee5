package tracing_test

import (
	"errors"
	"testing"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/dueq-io/dueq/internal/tracing"
)

// Not parallel: testing.AllocsPerRun counts what the whole process allocates.
func TestOffAllocatesNothing(t *testing.T) {
	tracer := tracing.New(nil)
	ctx, broken := t.Context(), errors.New("broken")
	allocs := testing.AllocsPerRun(100, func() {
		span := tracer.Publish(ctx, "a", 1)
		if span.Origin() != (tracing.Origin{}) {
			t.Error("there is a trace context")
		}
		span.Stored("id", 3)
		span.End(broken)
		span = tracer.Deliver(ctx, tracing.Message{ID: "id", Topic: "a", Origin: tracing.Origin{Parent: "x"}})
		if span.Context(ctx) != ctx {
			t.Error("another ctx")
		}
		span.End(nil)
	})
	if allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// Whatever lies in a record can be made a span of.
func FuzzOrigin(f *testing.F) {
	for _, parent := range []string{
		"", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-00000000000000000000000000000000-0000000000000000-00",
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf9", "\x00",
	} {
		f.Add(parent, "vendor=value")
		f.Add(parent, "=,,")
	}
	tracer := tracing.New(noop.NewTracerProvider())
	f.Fuzz(func(t *testing.T, parent, state string) {
		tracer.Deliver(t.Context(), tracing.Message{Origin: tracing.Origin{Parent: parent, State: state}}).End(nil)
	})
}
