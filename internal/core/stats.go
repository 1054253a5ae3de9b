package core

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/histogram"
)

// Stats counts what a worker has seen since it started.
type Stats struct {
	// Claimed is how many claims were made, Running how many are running.
	Claimed, Running int64
	// Settled is how many runs ended with their outcome committed, and Failed how
	// many of these were failed attempts.
	Settled, Failed int64
	// Lost is how many runs ended with their claim lost.
	Lost int64
	// Errors is how many others ended without an outcome.
	Errors int64
	// Took is how long runs took, Waited how long after its due time work began.
	Took, Waited histogram.Counts
}

// Plus returns the sum of the statistics of two workers.
func (s Stats) Plus(o Stats) Stats {
	return Stats{
		Claimed: s.Claimed + o.Claimed, Running: s.Running + o.Running, Settled: s.Settled + o.Settled, Failed: s.Failed + o.Failed,
		Lost: s.Lost + o.Lost, Errors: s.Errors + o.Errors, Took: s.Took.Plus(o.Took), Waited: s.Waited.Plus(o.Waited),
	}
}

// Stats returns what the worker has counted.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Stats{
		Claimed: w.claimed.Load(), Running: int64(len(w.running)), Settled: w.done.Load(), Failed: w.failures.Load(),
		Lost: w.lost.Load(), Errors: w.failed.Load(), Took: w.took.Counts(), Waited: w.waited.Counts(),
	}
}

// Kind returns the name of the worker's kind of work, and Queue which part of it
// the worker takes.
func (w *Worker) Kind() string { return w.kind.Name }

// Queue returns which part of its kind of work the worker takes.
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

// Watched does a part of one kind of work in this process.
type Watched interface {
	// Kind is the name of the kind, Queue which part of it.
	Kind() string
	Queue() string
	// Stats returns what it has counted.
	Stats() Stats
	// Takes returns the names of the work that it claims, nil if that is all of its
	// queue; ok is false if it claims nothing: no dispatcher has started it, or it
	// drains.
	Takes(ctx context.Context) (names []string, ok bool)
	// Due returns how long it is until the oldest work is due that nobody runs, less
	// than 0 if it has been due; ok says whether there is any.
	Due(ctx context.Context) (wait time.Duration, ok bool, err error)
}

// Workers are all that work in an engine, for those who watch them. A nil *Workers
// is nobody's.
type Workers struct {
	mu        sync.Mutex
	all       []Watched
	isolation isolation
}

// Add makes one known.
func (ws *Workers) Add(w Watched) {
	if ws == nil {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.all = append(ws.all, w)
}

// All returns those that are known so far.
func (ws *Workers) All() []Watched {
	if ws == nil {
		return nil
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return slices.Clone(ws.all)
}
