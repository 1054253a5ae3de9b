package telemetry

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
)

// Build identifies the running program.
type Build struct{ Version, Revision string }

// Exporter exports the metrics of an engine and of the requests that this process serves.
type Exporter struct {
	eng      *perdure.Engine
	rt       *host.Runtime
	build    Build
	started  time.Time
	requests requestCounts
	stored   stored
}

// New returns the exporter of an engine.
func New(eng *perdure.Engine, build Build) *Exporter {
	rt := host.Of(eng)
	return &Exporter{eng: eng, rt: rt, build: build, started: rt.Clock.Now(), stored: stored{eng: eng, rt: rt}}
}

// ServeHTTP responds with the metrics.
func (e *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", contentType)
	_ = e.Write(r.Context(), w) // the client may have disconnected
}

// Write writes all metrics.
func (e *Exporter) Write(ctx context.Context, w io.Writer) error { return e.gather(ctx).write(w) }

// Collect returns the values of all metrics, in the order of Metrics.
func (e *Exporter) Collect(ctx context.Context) []Sample { return e.gather(ctx).all() }

func (e *Exporter) gather(ctx context.Context) samples {
	s := samples{}
	e.process(s)
	e.work(s)
	e.database(s)
	e.requests.collect(s)
	e.stored.collect(ctx, s)
	return s
}

func (e *Exporter) process(s samples) {
	s.add(buildInfo, 1, e.build.Version, e.build.Revision, runtime.Version())
	s.add(startTime, float64(e.started.UnixMilli())/1000)
	s.add(routines, float64(runtime.NumGoroutine()))
	s.add(memory, heldMemory())
}

// heldMemory returns the memory that the process has obtained from the system, less the
// memory that it has returned.
func heldMemory() float64 {
	read := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(read)
	return float64(read[0].Value.Uint64() - read[1].Value.Uint64())
}

// work adds the counters of the workers.
func (e *Exporter) work(s samples) {
	for _, w := range byQueue(e.rt.Workers.All()) {
		kind, queue, stats := w.kind, w.queue, w.stats
		s.add(workClaimed, float64(stats.Claimed), kind, queue)
		for _, o := range []struct {
			outcome string
			n       int64
		}{{"done", stats.Committed - stats.Failed}, {"failed", stats.Failed}, {"lost", stats.Lost}, {"error", stats.Errors}} {
			s.add(workFinished, float64(o.n), kind, queue, o.outcome)
		}
		s.add(workRunning, float64(stats.Running), kind, queue)
		s.addHistogram(workTook, stats.Took, kind, queue)
		s.addHistogram(workWaited, stats.Waited, kind, queue)
	}
}

// queueStats are the statistics of all workers of one queue.
type queueStats struct {
	kind, queue string
	stats       core.Stats
	worker      core.Watched // one of them
}

// byQueue sums the statistics of the workers of each queue. A program may have several
// workers for one queue.
func byQueue(workers []core.Watched) []*queueStats {
	var all []*queueStats
	for _, w := range workers {
		i := slices.IndexFunc(all, func(q *queueStats) bool { return q.kind == w.Kind() && q.queue == w.Queue() })
		if i < 0 {
			all = append(all, &queueStats{kind: w.Kind(), queue: w.Queue(), stats: w.Stats(), worker: w})
			continue
		}
		all[i].stats = all[i].stats.Plus(w.Stats())
	}
	return all
}

// database adds the counters of the committer and the drivers.
func (e *Exporter) database(s samples) {
	c := e.rt.Committer.Stats()
	s.add(unitsCommitted, float64(c.Units))
	s.addHistogram(txTook, c.Transactions)
	s.add(txBusy, float64(c.Busy))
	if counted, ok := e.rt.DB.(sqldb.Counted); ok {
		s.add(statementsRun, float64(counted.Ran().Statements))
	}
	pooled, ok := e.rt.DB.(sqldb.Pooled)
	if !ok {
		return
	}
	for _, p := range pooled.Pools() {
		s.add(connections, float64(p.InUse), p.Name, "in_use")
		s.add(connections, float64(p.Open-p.InUse), p.Name, "idle")
		s.add(connectionsMax, float64(p.Max), p.Name)
		s.add(poolWaits, float64(p.Waits), p.Name)
		s.add(poolWaited, p.Waited.Seconds(), p.Name)
	}
}
