// Package otlp sends the spans of a process to a collector, by the OpenTelemetry protocol.
// It is configured only by the standard OTEL_ variables, and does nothing unless one of
// them names a collector.
package otlp

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// Enabled reports whether the environment enables traces.
func Enabled(env map[string]string) bool {
	if env["OTEL_SDK_DISABLED"] == "true" || env["OTEL_TRACES_EXPORTER"] == "none" {
		return false
	}
	return env["OTEL_EXPORTER_OTLP_ENDPOINT"] != "" || env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] != ""
}

// Start enables tracing, if the environment asks for it. It returns a function that sends
// the last spans at the end of the program.
func Start(ctx context.Context, env map[string]string, version string) (stop func(context.Context) error, err error) {
	if !Enabled(env) {
		return func(context.Context) error { return nil }, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("export traces: %w", err)
	}
	about, err := describe(ctx, version)
	if err != nil {
		return nil, fmt.Errorf("describe the process for traces: %w", err)
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about))
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	return provider.Shutdown, nil
}

// describe returns the resource that sends the spans. The environment has precedence.
func describe(ctx context.Context, version string) (*resource.Resource, error) {
	return resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "perdure"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
}
