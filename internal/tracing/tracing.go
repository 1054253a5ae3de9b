// Package tracing carries traces through the rows of durable work. The span in which work
// is requested is stored with its row. The span in which the work runs, perhaps days
// later and in another process, links to it.
//
// It uses only the API of OpenTelemetry; programs provide an implementation. Without an
// implementation, and for rows without a trace, nothing here allocates.
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
	// maxState is the maximum length of a stored tracestate. A longer tracestate is
	// omitted, as its specification allows.
	maxState = 512
	// near is the time after the request within which work is part of the same trace.
	// Later work starts its own trace with a link to the first, because a trace that
	// spans days is not useful.
	near = 10 * time.Second
)

// Tracer creates spans. A nil Tracer uses the global provider of the program, if one is
// set.
type Tracer struct{ provider trace.TracerProvider }

// New returns the tracer of a provider. nil means the global provider of the program.
func New(provider trace.TracerProvider) *Tracer { return &Tracer{provider} }

// unset is the global provider of programs that have not set one.
var unset = otel.GetTracerProvider()

// active returns the provider, or nil if none is set.
func (t *Tracer) active() trace.TracerProvider {
	if t != nil && t.provider != nil {
		return t.provider
	}
	if p := otel.GetTracerProvider(); p != unset {
		return p
	}
	return nil
}

// Of returns the span of a context in the form that rows store: the W3C traceparent and,
// after a semicolon, the tracestate. It returns nil if there is no sampled span.
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

// parse returns the span that a row has stored. For malformed text it returns a span that
// is not valid.
func parse(stored string) trace.SpanContext {
	parent, state, _ := strings.Cut(stored, ";")
	carrier := propagation.MapCarrier{"traceparent": parent, "tracestate": state}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// Work is durable work that is about to be run.
type Work struct {
	// Kind is the kind of work, Name its name or type, and ID the id of the work item.
	Kind, Name, ID string
	// Attempt is the number of the attempt, counted from 1.
	Attempt int
	// Trace is the stored span of the row, and Created the time when the row was written.
	Trace   *string
	Created time.Time
}

// Span is the span of one attempt. The zero Span records nothing.
type Span struct{ span trace.Span }

// Process starts the span of an attempt and returns the context for it. The span always
// has a link to the span in which the work was requested. It is also part of the same
// trace if the work was requested at most near (10 s) ago. All attempts link to the same
// span.
func (t *Tracer) Process(ctx context.Context, now time.Time, w Work) (context.Context, Span) {
	provider := t.active()
	if provider == nil && w.Trace == nil {
		return ctx, Span{}
	}
	var origin trace.SpanContext
	if w.Trace != nil {
		origin = parse(*w.Trace)
	}
	if provider == nil { // work that this work requests is still linked to the origin
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

// End ends the span with the outcome of the attempt. It omits the text of an error, which
// may quote any data; the text is only in the database.
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
