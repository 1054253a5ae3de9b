package monitor

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/perdure/perdure/internal/telemetry"
)

// Register registers all metrics with an OpenTelemetry meter. Their names have dots
// instead of the underscores of the Prometheus names: perdure.work.claimed. OpenTelemetry
// cannot observe histograms that were aggregated elsewhere, so a histogram becomes two
// counters, with the suffixes .count and .sum. unregister removes the registration.
func (m *Monitor) Register(meter metric.Meter) (unregister func() error, err error) {
	instruments := map[string]metric.Float64Observable{}
	var all []metric.Observable
	add := func(name, help string, t Type) error {
		var i metric.Float64Observable
		var err error
		if t == Gauge {
			i, err = meter.Float64ObservableGauge(name, metric.WithDescription(help))
		} else {
			i, err = meter.Float64ObservableCounter(name, metric.WithDescription(help))
		}
		instruments[name] = i
		all = append(all, i)
		return err
	}
	for _, described := range telemetry.Metrics {
		name := dotted(described.Name)
		if described.Type != telemetry.Histogram {
			err = add(name, described.Help, Type(described.Type))
		} else if err = add(name+".count", described.Help, Counter); err == nil {
			err = add(name+".sum", described.Help, Counter)
		}
		if err != nil {
			return nil, err
		}
	}
	registration, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		for _, s := range m.Collect(ctx) {
			s.observe(o, instruments)
		}
		return nil
	}, all...)
	if err != nil {
		return nil, err
	}
	return registration.Unregister, nil
}

// observe reports a sample.
func (s Sample) observe(o metric.Observer, instruments map[string]metric.Float64Observable) {
	labels := make([]attribute.KeyValue, len(s.Labels))
	for i, name := range s.Labels {
		labels[i] = attribute.String(name, s.Values[i])
	}
	with, name := metric.WithAttributes(labels...), dotted(s.Name)
	if s.Type != Histogram {
		o.ObserveFloat64(instruments[name], s.Value, with)
		return
	}
	o.ObserveFloat64(instruments[name+".count"], float64(s.Buckets[len(s.Buckets)-1].Count), with)
	o.ObserveFloat64(instruments[name+".sum"], s.Sum, with)
}

// dotted returns the OpenTelemetry name of a metric. It omits the suffix of counters,
// which exporters add.
func dotted(name string) string {
	return strings.ReplaceAll(strings.TrimSuffix(name, "_total"), "_", ".")
}
