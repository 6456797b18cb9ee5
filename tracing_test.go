package dueq_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// tracing is a provider whose spans a test reads.
type tracing struct {
	t        *testing.T
	exporter *tracetest.InMemoryExporter
	provider *sdktrace.TracerProvider
}

func newTracing(t *testing.T) *tracing {
	exporter := tracetest.NewInMemoryExporter()
	return &tracing{t, exporter, sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))}
}

// await waits until n spans of a name have ended, and returns them in the order in
// which they did.
func (tr *tracing) await(name string, n int) (spans tracetest.SpanStubs) {
	tr.t.Helper()
	eventually(tr.t, "the spans have ended", func() bool {
		spans = tr.exporter.GetSpans()
		spans = slices.DeleteFunc(spans, func(s tracetest.SpanStub) bool { return s.Name != name })
		return len(spans) >= n
	})
	if len(spans) != n {
		tr.t.Errorf("%d spans %q, want %d", len(spans), name, n)
	}
	return spans
}

// attributes are a span's, as text.
func attributes(s tracetest.SpanStub) string {
	set := attribute.NewSet(s.Attributes...)
	return set.Encoded(attribute.DefaultEncoder())
}

// caller is a ctx with the trace context of a caller elsewhere.
func caller(t *testing.T) context.Context {
	t.Helper()
	state, err := trace.ParseTraceState("vendor=value")
	if err != nil {
		t.Fatal(err)
	}
	return trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state,
	}))
}

func TestTracing(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		tr := newTracing(t)
		q := newQueue(t, env, dueq.Options{TracerProvider: tr.provider, Backoff: func(int, error) time.Duration { return 0 }})
		inHandler := make(chan trace.SpanContext, 2)
		subscribe(t, q, "a", dueq.HandlerFunc(func(ctx context.Context, e *dueq.Event) error {
			inHandler <- trace.SpanContextFromContext(ctx)
			if len(e.Metadata) != 1 || len(e.Metadata["k"]) != 16<<10-1 {
				t.Errorf("%d metadata", len(e.Metadata))
			}
			if e.Attempt == 1 {
				return errors.New("broken\nin two lines")
			}
			return nil
		}))
		metadata := map[string]string{"k": strings.Repeat("v", 16<<10-1)} // the most there may be
		id, err := q.PublishEvent(caller(t), "a", []byte("body"), time.Now(), dueq.WithMetadata(metadata))
		if err != nil {
			t.Fatal(err)
		}
		published := tr.await("publish a", 1)[0]
		if published.SpanKind != trace.SpanKindProducer || published.Parent.SpanID() != (trace.SpanID{2}) || published.Status.Code != codes.Unset {
			t.Errorf("span of the publish: %+v", published)
		}
		want := "messaging.destination.name=a,messaging.message.body.size=4,messaging.message.id=" + id +
			",messaging.operation.name=publish,messaging.operation.type=send,messaging.system=dueq"
		if got := attributes(published); got != want {
			t.Errorf("attributes of the publish: %s, want %s", got, want)
		}
		delivered := tr.await("process a", 2)
		for i, s := range delivered {
			if s.SpanKind != trace.SpanKindConsumer || s.Parent.IsValid() || len(s.Links) != 1 {
				t.Errorf("span of delivery %d: %+v", i+1, s)
				continue
			}
			if link := s.Links[0].SpanContext; !link.Equal(published.SpanContext.WithRemote(true)) || link.TraceState().Get("vendor") != "value" {
				t.Errorf("delivery %d is linked to %+v, want %+v", i+1, link, published.SpanContext)
			}
			if in := receive(t, inHandler); !in.Equal(s.SpanContext) {
				t.Errorf("the handler's span is %+v, want %+v", in, s.SpanContext)
			}
		}
		want = "dueq.attempt=1,error.type=*errors.errorString,messaging.destination.name=a,messaging.message.body.size=4,messaging.message.id=" + id +
			",messaging.operation.name=process,messaging.operation.type=process,messaging.system=dueq"
		if got := attributes(delivered[0]); got != want {
			t.Errorf("attributes of the delivery: %s, want %s", got, want)
		}
		if s := delivered[0].Status; s.Code != codes.Error || s.Description != "broken" || len(delivered[0].Events) != 1 {
			t.Errorf("status of what failed: %+v", s)
		}
		if s := delivered[1]; s.Status.Code != codes.Unset || !strings.HasPrefix(attributes(s), "dueq.attempt=2,messaging.") {
			t.Errorf("what succeeded: %+v, %s", s.Status, attributes(s))
		}
	})
}

func TestTracingPublish(t *testing.T) {
	t.Parallel()
	env := redistest.Mini(t)
	tr := newTracing(t)
	q, off := newQueue(t, env, dueq.Options{TracerProvider: tr.provider}), newQueue(t, env, dueq.Options{})
	record := func(id string) string {
		return env.Client.HGet(t.Context(), faultLane(env.Namespace).Pool, id).Val()
	}
	due := time.Now().Add(time.Hour)
	ids, err := q.PublishEvents(caller(t), "a", []dueq.NewEvent{{EffectTime: due}, {EffectTime: due}})
	if err != nil {
		t.Fatal(err)
	}
	batch := tr.await("publish a", 1)[0]
	if got := attributes(batch); !strings.HasPrefix(got, "messaging.batch.message_count=2,messaging.destination.name=a,") {
		t.Errorf("attributes of a batch: %s", got)
	}
	parent := "00-" + batch.SpanContext.TraceID().String() + "-" + batch.SpanContext.SpanID().String() + "-01"
	for _, id := range ids {
		if r := record(id); !strings.Contains(r, `"traceparent":"`+parent+`","tracestate":"vendor=value"}`) {
			t.Errorf("record %q, want the trace parent %s", r, parent)
		}
	}
	if _, err := q.PublishEvent(t.Context(), "a", nil, time.Time{}); err == nil {
		t.Error("an event without an effect time was published")
	}
	if s := tr.await("publish a", 2)[1]; s.Status.Code != codes.Error || !strings.Contains(s.Status.Description, "no effect time") {
		t.Errorf("status of what failed: %+v", s.Status)
	}
	if _, err := q.PublishEvent(t.Context(), "a{", nil, due); !errors.Is(err, dueq.ErrTopicInvalid) {
		t.Errorf("publish to an invalid topic: %v", err)
	}
	id, err := off.PublishEvent(caller(t), "a", nil, due)
	if err != nil {
		t.Fatal(err)
	}
	if r := record(id); strings.Contains(r, "trace") {
		t.Errorf("record without a tracer: %q", r)
	}
	if n := len(tr.exporter.GetSpans()); n != 2 {
		t.Errorf("%d spans, want 2", n)
	}
}

// The span of what was claimed is a child of the claimer's, and ends with the
// delivery.
func TestTracingClaim(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, env *redistest.Env) {
		tr := newTracing(t)
		q := newQueue(t, env, dueq.Options{TracerProvider: tr.provider})
		c := consume(t, q)
		publish(t, q, "a", "x", time.Now())
		for _, want := range []struct {
			status codes.Code
			settle func(*dueq.Delivery) error
		}{
			{codes.Error, func(d *dueq.Delivery) error { return d.Retry(t.Context(), 0, errBroken) }},
			{codes.Unset, func(d *dueq.Delivery) error { return d.Release(t.Context()) }},
			{codes.Error, func(d *dueq.Delivery) error {
				err := d.Extend(100 * time.Millisecond)
				<-d.Done()
				return err
			}},
			{codes.Unset, func(d *dueq.Delivery) error { return d.Ack(t.Context()) }},
		} {
			got, err := c.Claim(caller(t), 1, time.Hour)
			if err != nil || len(got) != 1 {
				t.Fatalf("claimed %v, %v", got, err)
			}
			in := trace.SpanContextFromContext(got[0].WithSpan(t.Context()))
			if n := len(tr.exporter.GetSpans()); n != 1 {
				t.Errorf("%d spans have ended before the delivery", n)
			}
			if err := want.settle(got[0]); err != nil {
				t.Fatal(err)
			}
			s := tr.await("process a", 1)[0]
			if s.Parent.SpanID() != (trace.SpanID{2}) || len(s.Links) != 1 || s.Status.Code != want.status || !in.Equal(s.SpanContext) {
				t.Errorf("span of the delivery, which should have status %v: %+v", want.status, s)
			}
			tr.exporter.Reset()
			publish(t, q, "b", "one span more", time.Now())
		}
	})
}
