package tracing

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

const sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// answer sends a request with a trace through a handler that notes what it stores.
func answer(t *testing.T, tracer *Tracer, status int) (stored *string) {
	t.Helper()
	h := tracer.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stored = Of(r.Context())
		w.WriteHeader(status)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error("a stream cannot be sent:", err)
		}
	}))
	r := httptest.NewRequest(http.MethodPost, "/v1/hooks", nil)
	r.Header.Set("Traceparent", sent)
	h.ServeHTTP(httptest.NewRecorder(), r)
	return stored
}

func TestARequestIsAPartOfItsSendersTrace(t *testing.T) {
	t.Parallel()
	exporter, provider := recorder()
	stored := answer(t, New(provider), http.StatusInternalServerError)
	spans := exporter.GetSpans()
	if len(spans) != 1 || spans[0].SpanKind != trace.SpanKindServer || spans[0].Status.Code != codes.Error {
		t.Fatalf("got %+v", spans)
	}
	if spans[0].Parent.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" || spans[0].Parent.SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("the parent is %v", spans[0].Parent)
	}
	if stored == nil || *stored == sent {
		t.Errorf("work would lead back to %v", stored)
	}
}

func TestATraceGoesThroughAServerThatTracesNothing(t *testing.T) {
	t.Parallel()
	if stored := answer(t, nil, http.StatusOK); stored == nil || *stored != sent {
		t.Errorf("work would lead back to %v", stored)
	}
}
