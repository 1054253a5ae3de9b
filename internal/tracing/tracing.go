// Package tracing carries traces through the rows of durable work: the span in
// which something was asked for is stored with its row, and the span in which it
// is done, maybe days later and in another process, leads back to it.
//
// It knows only the interface of OpenTelemetry; programs bring an
// implementation. Without one, and for rows without a trace, nothing here
// allocates.
package tracing

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	scope = "github.com/perdure/perdure"
	// maxState is the longest tracestate that is stored; a longer one is left
	// out, as its specification allows.
	maxState = 512
	// near is how soon after it was asked for work is a part of the same trace.
	// Later work begins a trace of its own that has a link to the first: nobody
	// wants to look at a trace of days.
	near = 10 * time.Second
)

// Tracer makes spans. A nil Tracer is that of the provider which the program
// has set for all, if it has.
type Tracer struct{ provider trace.TracerProvider }

// New returns the tracer of a provider; nil means that of the program.
func New(provider trace.TracerProvider) *Tracer { return &Tracer{provider} }

// unset is the provider of programs that have set none.
var unset = otel.GetTracerProvider()

// active returns the provider, or nil if nobody looks at spans.
func (t *Tracer) active() trace.TracerProvider {
	if t != nil && t.provider != nil {
		return t.provider
	}
	if p := otel.GetTracerProvider(); p != unset {
		return p
	}
	return nil
}

// Of returns the span of a context in the form that rows keep: the traceparent
// of W3C and, after a semicolon, the tracestate. It is nil if there is none that
// somebody will look at.
func Of(ctx context.Context) *string {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsSampled() {
		return nil
	}
	text := "00-" + span.TraceID().String() + "-" + span.SpanID().String() + "-" + span.TraceFlags().String()
	if state := span.TraceState().String(); state != "" && len(state) <= maxState {
		text += ";" + state
	}
	return &text
}

// parse returns the span that a row has kept. Text that is none gives a span
// that is not valid.
func parse(stored string) trace.SpanContext {
	parent, state, _ := strings.Cut(stored, ";")
	carrier := propagation.MapCarrier{"traceparent": parent, "tracestate": state}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// Work is durable work that is about to be run.
type Work struct {
	// Kind is the kind of work, Name what it is one of, ID itself.
	Kind, Name, ID string
	// Attempt counts the runs from 1.
	Attempt int
	// Trace is what its row has kept, and Created when the row was written.
	Trace   *string
	Created time.Time
}

// Span is the run of durable work. The zero Span is of nobody's interest.
type Span struct{ span trace.Span }

// Process begins the span of a run and returns the context for it. The span is a
// part of the trace that the work was asked for in if that was a moment ago, and
// has a link to it in any case. All attempts lead back to the same span.
func (t *Tracer) Process(ctx context.Context, now time.Time, w Work) (context.Context, Span) {
	provider := t.active()
	if provider == nil && w.Trace == nil {
		return ctx, Span{}
	}
	var origin trace.SpanContext
	if w.Trace != nil {
		origin = parse(*w.Trace)
	}
	if provider == nil { // what the work asks for leads back all the same
		return trace.ContextWithRemoteSpanContext(ctx, origin), Span{}
	}
	return begin(ctx, provider, origin, now.Sub(w.Created) <= near, w)
}

func begin(ctx context.Context, provider trace.TracerProvider, origin trace.SpanContext, soon bool, w Work) (context.Context, Span) {
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(
			attribute.String("messaging.system", "perdure"),
			attribute.String("messaging.operation.name", "process"),
			attribute.String("messaging.operation.type", "process"),
			attribute.String("messaging.destination.name", w.Name),
			attribute.String("messaging.message.id", w.ID),
			attribute.String("perdure.kind", w.Kind),
			attribute.Int("perdure.attempt", w.Attempt),
		),
	}
	switch {
	case origin.IsValid() && soon:
		ctx = trace.ContextWithRemoteSpanContext(ctx, origin)
	default:
		options = append(options, trace.WithNewRoot())
	}
	if origin.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: origin}))
	}
	ctx, span := provider.Tracer(scope).Start(ctx, "process "+w.Name, options...)
	return ctx, Span{span}
}

// End ends the span with what came of the run. The text of an error stays in
// the database: it may have quoted anything.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		s.span.SetStatus(codes.Error, "")
		s.span.SetAttributes(attribute.String("error.type", fmt.Sprintf("%T", err)))
	}
	s.span.End()
}
