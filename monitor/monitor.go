// Package monitor exports the state of an engine to monitoring systems: metrics for
// Prometheus, a collector for OpenTelemetry, and health checks for systems that restart
// processes and route requests. It is for programs that embed Perdure; perdure serve
// includes all of it.
//
//	m, err := monitor.New(eng, nil)
//	mux.Handle("GET /metrics", m.Metrics())
//	mux.Handle("GET /livez", m.Live())
//	mux.Handle("GET /readyz", m.Ready())
//
// The handlers require no credentials. Metrics contain the names of kinds of work, queues
// and routes, but no ids and no payloads.
package monitor

import (
	"context"
	"math"
	"net/http"
	"runtime/debug"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/health"
	"github.com/perdure/perdure/internal/histogram"
	"github.com/perdure/perdure/internal/telemetry"
)

// Options configure a Monitor. The zero value of every field is its default.
type Options struct {
	// Version is the version of the program, for the metric perdure_build_info. Default:
	// the version of the main module.
	Version string
	// Checks are readiness conditions in addition to the database. Default: none.
	Checks []Check
}

// Check is a readiness condition.
type Check struct {
	// Name is shown to callers that request details.
	Name string
	// Run returns an error if the condition does not hold. The error is logged, but not
	// shown to callers.
	Run func(context.Context) error
}

// Monitor exports the state of one engine. It is safe for concurrent use. It queries the
// database at most once per second for health and at most once every five seconds for
// metrics, regardless of the number of requests. The cost of its statements does not grow
// with the tables.
type Monitor struct {
	exporter *telemetry.Exporter
	health   *health.Health
	mux      *http.ServeMux
}

// New returns a Monitor for an engine.
func New(eng *perdure.Engine, options *Options) (*Monitor, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "must not be nil")
	}
	var o Options
	if options != nil {
		o = *options
	}
	build := telemetry.Build{Version: o.Version}
	if info, ok := debug.ReadBuildInfo(); ok && o.Version == "" {
		build.Version = info.Main.Version
	}
	var checks []health.Check
	for _, c := range o.Checks {
		if c.Name == "" || c.Run == nil {
			return nil, fault.Invalidf("Options.Checks", "has a check without a name or a function")
		}
		checks = append(checks, health.Check{Name: c.Name, Run: c.Run})
	}
	m := &Monitor{exporter: telemetry.New(eng, build), health: health.New(eng, nil, checks...), mux: http.NewServeMux()}
	m.health.Mount(m.mux)
	return m, nil
}

// Metrics returns the handler that serves all metrics in the text format of Prometheus.
func (m *Monitor) Metrics() http.Handler { return m.exporter }

// Live returns the handler that responds with 200 while the process runs. It does not
// query the database: otherwise an unreachable database would cause restarts of all
// processes.
func (m *Monitor) Live() http.Handler { return m.at("/livez") }

// Ready returns the handler that responds with 200 if the database responds, has all
// migrations and accepts writes, all checks hold, and the process is not draining. Otherwise it responds
// with 503. With the query ?verbose, the response names the condition that does not hold.
func (m *Monitor) Ready() http.Handler { return m.at("/readyz") }

// at returns a handler that serves a path of the health handler, regardless of the path
// of the request.
func (m *Monitor) at(path string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := r.Clone(r.Context())
		to.URL.Path, to.URL.RawPath, to.Pattern = path, "", ""
		m.mux.ServeHTTP(w, to)
	})
}

// Drain makes Ready respond with 503 from now on, so that no new requests are routed to a
// process that is about to stop.
func (m *Monitor) Drain() { m.health.Drain() }

// CheckReady returns the conditions of Ready that do not hold, as one error, or nil.
func (m *Monitor) CheckReady(ctx context.Context) error { return m.health.Ready(ctx) }

// Type is the type of a metric.
type Type string

// The types of metrics.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Sample is a value of a metric.
type Sample struct {
	Name string
	Type Type
	Help string
	// Labels are the names of the labels, Values their values in the same order.
	Labels, Values []string
	// Value is the value of a counter or a gauge.
	Value float64
	// Buckets are the buckets of a histogram: the number of observations up to each
	// bound, in seconds, from the smallest bound to +Inf. Sum is the sum of all
	// observations.
	Buckets []Bucket
	Sum     float64
}

// Bucket is the number of observations up to a bound.
type Bucket struct {
	UpTo  float64
	Count uint64
}

// Collect returns the values of all metrics, for collectors of other systems. The samples
// of one metric are adjacent.
func (m *Monitor) Collect(ctx context.Context) []Sample {
	stored := m.exporter.Collect(ctx)
	all := make([]Sample, len(stored))
	for i, s := range stored {
		all[i] = Sample{Name: s.Name, Type: Type(s.Type), Help: s.Help, Labels: s.Labels, Values: s.Values, Value: s.Value}
		if s.Type == telemetry.Histogram {
			all[i].Sum, all[i].Buckets = s.Counts.Sum.Seconds(), buckets(s.Counts)
		}
	}
	return all
}

func buckets(c histogram.Counts) []Bucket {
	all := make([]Bucket, len(c.Buckets))
	var total uint64
	for i, n := range c.Buckets {
		total += uint64(n)
		all[i] = Bucket{UpTo: math.Inf(1), Count: total}
		if i < len(histogram.Bounds) {
			all[i].UpTo = histogram.Bounds[i].Seconds()
		}
	}
	return all
}
