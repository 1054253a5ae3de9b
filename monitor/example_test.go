package monitor_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/monitor"
)

func watch(eng *perdure.Engine, mux *http.ServeMux, meter metric.Meter) error {
	m, err := monitor.New(eng, nil)
	if err != nil {
		return err
	}
	mux.Handle("GET /metrics", m.Metrics())
	mux.Handle("GET /livez", m.Live())
	mux.Handle("GET /readyz", m.Ready())
	_, err = m.Register(meter) // OpenTelemetry, instead of or in addition to /metrics
	return err
}

func Example() {
	eng, err := perdure.Open(context.Background(), "sqlite::memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()

	mux := http.NewServeMux()
	if err := watch(eng, mux, otel.Meter("shop")); err != nil {
		log.Fatal(err)
	}

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz?verbose", nil))
	fmt.Print(answer.Body)
	// Output:
	// not draining: ok
	// database: ok
	// migrations: ok
	// writes: ok
	// ok
}
