package otlp

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel"
)

func TestTracesAreSentOnlyIfTheEnvironmentNamesACollector(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, false},
	} {
		if got := Enabled(c.env); got != c.want {
			t.Errorf("%v: %v", c.env, got)
		}
	}
}

func TestSpansReachTheCollector(t *testing.T) {
	paths := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths <- r.URL.Path
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer collector.Close()
	before := otel.GetTracerProvider()
	defer otel.SetTracerProvider(before)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	stop, err := Start(t.Context(), map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL}, "v1")
	if err != nil {
		t.Fatal(err)
	}
	_, span := otel.Tracer("test").Start(t.Context(), "work")
	span.End()
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if path := <-paths; path != "/v1/traces" {
		t.Errorf("sent to %s", path)
	}
}
