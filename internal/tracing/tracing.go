// Package tracing makes the OpenTelemetry spans of publishes and deliveries, by the
// semantic conventions for messaging.
package tracing

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/dueq-io/dueq/internal/key"
)

const (
	scope    = "github.com/dueq-io/dueq"
	attempt  = attribute.Key("dueq.attempt")
	maxError = 1 << 10 // bytes of an error in a span's status
)

var system = semconv.MessagingSystemKey.String("dueq")

// Tracer makes spans. A nil one makes none.
type Tracer struct{ tracer trace.Tracer }

// New returns a tracer, nil without a provider.
func New(provider trace.TracerProvider) *Tracer {
	if provider == nil {
		return nil
	}
	return &Tracer{provider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))}
}

// Origin is the W3C trace context with which an event was published; "" if there
// was none.
type Origin struct{ Parent, State string }

// Span is a span that is under way. A nil one does nothing.
type Span struct {
	span trace.Span
	ctx  context.Context
}

// Publish begins the span of a publish of n events. An invalid topic makes none.
func (t *Tracer) Publish(ctx context.Context, topic string, n int) *Span {
	if t == nil || key.CheckTopic(topic) != nil {
		return nil
	}
	ctx, span := t.tracer.Start(ctx, "publish "+topic, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		system, semconv.MessagingDestinationName(topic),
		semconv.MessagingOperationName("publish"), semconv.MessagingOperationTypeSend,
	))
	if n != 1 {
		span.SetAttributes(semconv.MessagingBatchMessageCount(n))
	}
	return &Span{span: span, ctx: ctx}
}

// Message is what a span tells of an event that is delivered.
type Message struct {
	ID, Topic string
	Size      int // of its body in bytes
	Attempt   int
	Origin    Origin
}

// Deliver begins the span of a delivery, linked to that of the publish.
func (t *Tracer) Deliver(ctx context.Context, m Message) *Span {
	if t == nil {
		return nil
	}
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		system, semconv.MessagingDestinationName(m.Topic),
		semconv.MessagingOperationName("process"), semconv.MessagingOperationTypeProcess,
		semconv.MessagingMessageID(m.ID), semconv.MessagingMessageBodySize(m.Size), attempt.Int(m.Attempt),
	)}
	if origin := m.Origin.spanContext(); origin.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: origin}))
	}
	ctx, span := t.tracer.Start(ctx, "process "+m.Topic, opts...)
	return &Span{span: span, ctx: ctx}
}

// spanContext reads the trace context; one that cannot be read is none.
func (o Origin) spanContext() trace.SpanContext {
	if o.Parent == "" {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": o.Parent, "tracestate": o.State}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// Origin is the span's trace context, to travel with an event.
func (s *Span) Origin() Origin {
	if s == nil {
		return Origin{}
	}
	carrier := make(propagation.MapCarrier, 2)
	propagation.TraceContext{}.Inject(s.ctx, carrier)
	return Origin{Parent: carrier["traceparent"], State: carrier["tracestate"]}
}

// Context is ctx with the span in it.
func (s *Span) Context(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.span)
}

// Stored notes what was published.
func (s *Span) Stored(id string, size int) {
	if s != nil {
		s.span.SetAttributes(semconv.MessagingMessageID(id), semconv.MessagingMessageBodySize(size))
	}
}

// End ends the span, with an error status if there is an error.
func (s *Span) End(err error) {
	if s == nil {
		return
	}
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n") // what follows is a panic's stack, or more errors
		if len(text) > maxError {
			text = strings.ToValidUTF8(text[:maxError], "") + "…"
		}
		s.span.SetStatus(codes.Error, text)
		s.span.SetAttributes(semconv.ErrorType(err))
		s.span.RecordError(err)
	}
	s.span.End()
}
