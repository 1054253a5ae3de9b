package core

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/histogram"
)

// Stats has the counters of a worker since its start.
type Stats struct {
	// Claimed is the number of claims, Running the number of running work items.
	Claimed, Running int64
	// Committed is the number of runs whose outcome was committed. Failed is the number
	// of these that were failed attempts.
	Committed, Failed int64
	// Lost is the number of runs whose claim was lost.
	Lost int64
	// Errors is the number of other runs without a committed outcome.
	Errors int64
	// Took has the durations of runs. Waited has the times between due time and start.
	Took, Waited histogram.Counts
}

// Plus returns the sum of the statistics of two workers.
func (s Stats) Plus(o Stats) Stats {
	return Stats{
		Claimed: s.Claimed + o.Claimed, Running: s.Running + o.Running, Committed: s.Committed + o.Committed, Failed: s.Failed + o.Failed,
		Lost: s.Lost + o.Lost, Errors: s.Errors + o.Errors, Took: s.Took.Plus(o.Took), Waited: s.Waited.Plus(o.Waited),
	}
}

// Stats returns the counters of the worker.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Stats{
		Claimed: w.claimed.Load(), Running: int64(len(w.running)), Committed: w.done.Load(), Failed: w.failures.Load(),
		Lost: w.lost.Load(), Errors: w.failed.Load(), Took: w.took.Counts(), Waited: w.waited.Counts(),
	}
}

// Kind returns the name of the worker's kind of work.
func (w *Worker) Kind() string { return w.kind.Name }

// Queue returns the part of its kind of work that the worker claims.
func (w *Worker) Queue() string { return w.options.Queue }

// Takes implements Watched.
func (w *Worker) Takes(context.Context) (names []string, ok bool) {
	w.mu.Lock()
	ok = w.looked && !w.stopping
	w.mu.Unlock()
	if ok && w.options.Names != nil {
		names = append([]string{}, w.options.Names()...)
	}
	return names, ok
}

// Due implements Watched.
func (w *Worker) Due(ctx context.Context) (time.Duration, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, dbTimeout)
	defer cancel()
	return w.kind.Next(ctx)
}

// Watched is a worker for a part of one kind of work in this process.
type Watched interface {
	// Kind is the name of the kind, Queue the part of it.
	Kind() string
	Queue() string
	// Stats returns its counters.
	Stats() Stats
	// Takes returns the names of the work that it claims, or nil for its whole queue.
	// ok is false if it claims nothing: no dispatcher has started it, or it drains.
	Takes(ctx context.Context) (names []string, ok bool)
	// Due returns the time until the oldest work that is not running is due, negative
	// if it is overdue. ok is false if there is none.
	Due(ctx context.Context) (wait time.Duration, ok bool, err error)
}

// Workers are the workers of an engine, for monitoring. A nil *Workers has none.
type Workers struct {
	mu        sync.Mutex
	all       []Watched
	isolation isolation
}

// Add adds a worker.
func (ws *Workers) Add(w Watched) {
	if ws == nil {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.all = append(ws.all, w)
}

// All returns the workers that were added so far.
func (ws *Workers) All() []Watched {
	if ws == nil {
		return nil
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return slices.Clone(ws.all)
}
