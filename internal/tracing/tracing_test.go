package tracing

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func recorder() (*tracetest.InMemoryExporter, *sdk.TracerProvider) {
	exporter := tracetest.NewInMemoryExporter()
	return exporter, sdk.NewTracerProvider(sdk.WithSyncer(exporter))
}

var created = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestWorkThatRunsSoonBelongsToTheTraceItWasAskedForIn(t *testing.T) {
	t.Parallel()
	exporter, provider := recorder()
	ctx, request := provider.Tracer("test").Start(t.Context(), "request")
	stored := Of(ctx)
	if stored == nil {
		t.Fatal("a span that is recorded was not stored")
	}
	ctx, span := New(provider).Process(t.Context(), created.Add(time.Second), Work{Kind: "hook", Name: "mail", ID: "1", Attempt: 1, Trace: stored, Created: created})
	if again := Of(ctx); again == nil || *again == *stored {
		t.Errorf("what the work asks for leads back to %v", again)
	}
	span.End(errors.New("secret"))
	ended := exporter.GetSpans()
	if len(ended) != 1 {
		t.Fatalf("%d spans", len(ended))
	}
	s := ended[0]
	if s.Parent.SpanID() != request.SpanContext().SpanID() || s.SpanContext.TraceID() != request.SpanContext().TraceID() {
		t.Errorf("the parent is %v", s.Parent)
	}
	if len(s.Links) != 1 || s.Links[0].SpanContext.SpanID() != request.SpanContext().SpanID() {
		t.Errorf("the links are %v", s.Links)
	}
	if s.Name != "process mail" || s.SpanKind != trace.SpanKindConsumer || s.Status.Description != "" || len(s.Events) != 0 {
		t.Errorf("got %+v", s)
	}
}

func TestWorkThatRunsLaterHasATraceOfItsOwnWithALink(t *testing.T) {
	t.Parallel()
	exporter, provider := recorder()
	ctx, request := provider.Tracer("test").Start(t.Context(), "request")
	stored := Of(ctx)
	for attempt := 1; attempt <= 2; attempt++ {
		_, span := New(provider).Process(t.Context(), created.Add(time.Hour), Work{Name: "mail", Attempt: attempt, Trace: stored, Created: created})
		span.End(nil)
	}
	for _, s := range exporter.GetSpans() {
		if s.Parent.IsValid() || s.SpanContext.TraceID() == request.SpanContext().TraceID() {
			t.Errorf("it is a part of the first trace: %v", s.Parent)
		}
		if len(s.Links) != 1 || s.Links[0].SpanContext.SpanID() != request.SpanContext().SpanID() {
			t.Errorf("the links are %v", s.Links)
		}
	}
}

func TestATraceGoesThroughAProcessThatTracesNothing(t *testing.T) {
	t.Parallel()
	stored := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01;vendor=a"
	ctx, span := (*Tracer)(nil).Process(t.Context(), created, Work{Name: "mail", Trace: &stored, Created: created})
	span.End(nil)
	if again := Of(ctx); again == nil || *again != stored {
		t.Errorf("got %v", again)
	}
}

func TestTextThatIsNoTraceIsIgnored(t *testing.T) {
	t.Parallel()
	_, provider := recorder()
	for _, stored := range []string{"", ";", "00-x-y-01", strings.Repeat("f", 4096), "00-00000000000000000000000000000000-0000000000000000-01"} {
		ctx, span := New(provider).Process(t.Context(), created, Work{Name: "mail", Trace: &stored, Created: created})
		if !trace.SpanContextFromContext(ctx).IsValid() {
			t.Errorf("%q: no span", stored)
		}
		span.End(nil)
		if ctx, _ := (*Tracer)(nil).Process(t.Context(), created, Work{Trace: &stored}); Of(ctx) != nil {
			t.Errorf("%q is a trace", stored)
		}
	}
}

func TestALongTracestateIsLeftOut(t *testing.T) {
	t.Parallel()
	state, err := trace.ParseTraceState("a=" + strings.Repeat("x", 250) + ",b=" + strings.Repeat("x", 250) + ",c=" + strings.Repeat("x", 250))
	if err != nil {
		t.Fatal(err)
	}
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state})
	if stored := Of(trace.ContextWithSpanContext(t.Context(), span)); stored == nil || strings.Contains(*stored, ";") {
		t.Errorf("got %v", stored)
	}
}

// Nobody pays for traces that nobody asked for.
func TestNothingIsAllocatedWithoutAProvider(t *testing.T) {
	ctx, tracer := context.WithValue(t.Context(), created, 1), New(nil)
	n := testing.AllocsPerRun(100, func() {
		if Of(ctx) != nil {
			t.Error("there is a span")
		}
		_, span := tracer.Process(ctx, created, Work{Kind: "hook", Name: "mail", ID: "1", Attempt: 1, Created: created})
		span.End(nil)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkWithoutProvider(b *testing.B) {
	ctx, tracer := context.WithValue(b.Context(), created, 1), New(nil)
	b.ReportAllocs()
	for b.Loop() {
		_ = Of(ctx)
		_, span := tracer.Process(ctx, created, Work{Kind: "hook", Name: "mail", ID: "1", Attempt: 1, Created: created})
		span.End(nil)
	}
}
