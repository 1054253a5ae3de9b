package tracing

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Serve returns a handler that continues the traces of incoming requests, so that the
// requested work is linked to them. Requests have their own spans if a tracer provider is
// set.
func (t *Tracer) Serve(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		provider := t.active()
		if provider == nil && r.Header.Get("Traceparent") == "" {
			next.ServeHTTP(w, r)
			return
		}
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		if provider == nil {
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		ctx, span := provider.Tracer(scope).Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String("http.request.method", r.Method)))
		defer span.End()
		seen := &statusWriter{ResponseWriter: w}
		r = r.WithContext(ctx)
		next.ServeHTTP(seen, r)
		span.SetAttributes(attribute.Int("http.response.status_code", seen.status()))
		if seen.status() >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
	})
}

// statusWriter records the status of a response.
type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *statusWriter) status() int {
	if w.code == 0 {
		return http.StatusOK
	}
	return w.code
}

// Unwrap gives http.ResponseController access to the inner writer, for streams.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
