package monitor_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/monitor"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// ran is an engine that has run a hook.
func ran(t *testing.T) *perdure.Engine {
	t.Helper()
	eng := enginetest.New(t, enginetest.SQLite).Open(t, nil)
	hooks, err := hook.New(eng, "shop", nil)
	enginetest.NoError(t, err)
	receipt, err := hook.Define(hooks, "receipt", func(context.Context, string) error { return nil }, nil)
	enginetest.NoError(t, err)
	enginetest.NoError(t, eng.Update(t.Context(), func(tx *perdure.Tx) error {
		_, err := receipt.TriggerIn(tx, "x", nil)
		return err
	}))
	n, err := hooks.Process(t.Context())
	enginetest.NoError(t, err)
	if n != 1 {
		t.Fatalf("%d hooks were run", n)
	}
	return eng
}

func newMonitor(t *testing.T, eng *perdure.Engine, o *monitor.Options) *monitor.Monitor {
	t.Helper()
	m, err := monitor.New(eng, o)
	enginetest.NoError(t, err)
	return m
}

func get(t *testing.T, h http.Handler, target string) (int, string) {
	t.Helper()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
	return answer.Code, answer.Body.String()
}

func TestAProgramServesTheMetricsOfItsEngine(t *testing.T) {
	t.Parallel()
	m := newMonitor(t, ran(t), &monitor.Options{Version: "v7"})
	status, text := get(t, m.Metrics(), "/any/path")
	if status != http.StatusOK {
		t.Fatalf("status is %d", status)
	}
	for _, line := range []string{
		`perdure_build_info{version="v7",`,
		`perdure_work_claimed_total{kind="hook",queue="shop"} 1`,
		`perdure_work_duration_seconds_bucket{kind="hook",queue="shop",le="+Inf"} 1`,
		`perdure_work_duration_seconds_count{kind="hook",queue="shop"} 1`,
		`perdure_queue_depth{kind="hook",state="ready"} 0`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
}

func TestHealthIsServedUnderAnyPath(t *testing.T) {
	t.Parallel()
	broken := errors.New("no queue")
	var failing error
	m := newMonitor(t, ran(t), &monitor.Options{Checks: []monitor.Check{{Name: "queue", Run: func(context.Context) error { return failing }}}})
	if status, _ := get(t, m.Live(), "/internal/alive"); status != http.StatusOK {
		t.Errorf("live is %d", status)
	}
	if status, text := get(t, m.Ready(), "/internal/ready?verbose"); status != http.StatusOK || !strings.Contains(text, "queue: ok") {
		t.Errorf("ready is %d: %s", status, text)
	}
	enginetest.NoError(t, m.CheckReady(t.Context()))

	failing = broken
	other := newMonitor(t, ran(t), &monitor.Options{Checks: []monitor.Check{{Name: "queue", Run: func(context.Context) error { return failing }}}})
	if status, text := get(t, other.Ready(), "/"); status != http.StatusServiceUnavailable || strings.Contains(text, broken.Error()) {
		t.Errorf("ready is %d: %s", status, text)
	}
	enginetest.Is(t, other.CheckReady(t.Context()), broken)
}

func TestADrainingProcessIsAliveAndNotReady(t *testing.T) {
	t.Parallel()
	m := newMonitor(t, ran(t), nil)
	m.Drain()
	if status, _ := get(t, m.Live(), "/"); status != http.StatusOK {
		t.Errorf("live is %d", status)
	}
	if status, _ := get(t, m.Ready(), "/"); status != http.StatusServiceUnavailable {
		t.Errorf("ready is %d", status)
	}
}

func TestSamplesHaveWhatPrometheusReads(t *testing.T) {
	t.Parallel()
	m := newMonitor(t, ran(t), nil)
	samples := m.Collect(t.Context())
	find := func(name string) monitor.Sample {
		t.Helper()
		i := slices.IndexFunc(samples, func(s monitor.Sample) bool { return s.Name == name && slices.Contains(s.Values, "hook") })
		if i < 0 {
			t.Fatalf("there is no %s", name)
		}
		return samples[i]
	}
	claimed := find("perdure_work_claimed_total")
	if claimed.Type != monitor.Counter || claimed.Value != 1 || !slices.Equal(claimed.Labels, []string{"kind", "queue"}) || !slices.Equal(claimed.Values, []string{"hook", "shop"}) || claimed.Help == "" {
		t.Errorf("claimed is %+v", claimed)
	}
	took := find("perdure_work_duration_seconds")
	last := took.Buckets[len(took.Buckets)-1]
	if took.Type != monitor.Histogram || !math.IsInf(last.UpTo, 1) || last.Count != 1 || took.Sum <= 0 {
		t.Errorf("took is %+v", took)
	}
	if !slices.IsSortedFunc(took.Buckets, func(a, b monitor.Bucket) int { return int(a.Count) - int(b.Count) }) {
		t.Errorf("buckets are not cumulative: %+v", took.Buckets)
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	_, err := monitor.New(nil, nil)
	enginetest.As[*fault.Invalid](t, err)
	_, err = monitor.New(ran(t), &monitor.Options{Checks: []monitor.Check{{Name: "queue"}}})
	enginetest.As[*fault.Invalid](t, err)
}

// meter notes what is observed.
type meter struct {
	noop.Meter
	names    map[metric.Observable]string
	callback metric.Callback
}

type counter struct {
	embedded.Float64ObservableCounter
	metric.Float64Observable
	name string
}

func (m *meter) Float64ObservableCounter(name string, _ ...metric.Float64ObservableCounterOption) (metric.Float64ObservableCounter, error) {
	c := &counter{name: name}
	m.names[c] = name
	return c, nil
}

func (m *meter) RegisterCallback(f metric.Callback, _ ...metric.Observable) (metric.Registration, error) {
	m.callback = f
	return noop.Registration{}, nil
}

type observer struct {
	embedded.Observer
	of   *meter
	seen map[string]float64
}

func (o *observer) ObserveFloat64(i metric.Float64Observable, v float64, _ ...metric.ObserveOption) {
	if name, ok := o.of.names[i]; ok {
		o.seen[name] += v
	}
}

func (o *observer) ObserveInt64(metric.Int64Observable, int64, ...metric.ObserveOption) {}

func TestAMeterOfOpenTelemetryObservesTheMetrics(t *testing.T) {
	t.Parallel()
	m := newMonitor(t, ran(t), nil)
	into := &meter{names: map[metric.Observable]string{}}
	unregister, err := m.Register(into)
	enginetest.NoError(t, err)
	o := &observer{of: into, seen: map[string]float64{}}
	enginetest.NoError(t, into.callback(t.Context(), o))
	if o.seen["perdure.work.claimed"] != 1 || o.seen["perdure.work.duration.seconds.count"] != 1 || o.seen["perdure.work.duration.seconds.sum"] <= 0 {
		t.Errorf("observed were %v", o.seen)
	}
	enginetest.NoError(t, unregister())
}
