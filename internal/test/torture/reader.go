package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/perdure/perdure/outbox"
)

// Reader tails an outbox from its start, throughout a run. At random times it drops its
// stream and starts a new one from its position, like a consumer that restarts.
type Reader struct {
	// Outbox is the outbox to read.
	Outbox *outbox.Outbox
	// Seed determines when it starts over.
	Seed uint64

	mu      sync.Mutex
	entries []outbox.Entry
	streams int
	reached chan struct{} // closed and replaced when entries arrive
	err     error
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Start starts to read.
func (r *Reader) Start(ctx context.Context) {
	ctx, r.cancel = context.WithCancel(ctx)
	r.reached = make(chan struct{})
	choose := rand.New(rand.NewPCG(r.Seed, 0))
	r.running.Go(func() {
		for more := true; more && ctx.Err() == nil; {
			more = r.stream(ctx, 1+choose.IntN(400))
		}
	})
}

// stream reads up to n entries in one stream and reports whether to continue.
func (r *Reader) stream(ctx context.Context, n int) bool {
	r.mu.Lock()
	r.streams++
	r.mu.Unlock()
	options := &outbox.TailOptions{Poll: 5 * time.Millisecond, Batch: 1 + n%50}
	for entry, err := range r.Outbox.Tail(ctx, r.last(), options) {
		if !r.take(entry, err) {
			return false
		}
		if n--; n == 0 {
			return true
		}
	}
	return false
}

func (r *Reader) take(entry outbox.Entry, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.err = err
	} else {
		r.entries = append(r.entries, entry)
	}
	close(r.reached)
	r.reached = make(chan struct{})
	return err == nil
}

func (r *Reader) last() outbox.Stamp {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.entries) == 0 {
		return outbox.Stamp{}
	}
	return r.entries[len(r.entries)-1].Stamp
}

// Finish waits until the reader has reached a stamp, stops it and returns all entries that
// it read.
func (r *Reader) Finish(ctx context.Context, stamp outbox.Stamp) ([]outbox.Entry, error) {
	defer r.running.Wait()
	defer r.cancel()
	for {
		r.mu.Lock()
		reached, err := r.reached, r.err
		r.mu.Unlock()
		if err != nil {
			return nil, fmt.Errorf("tail: %w", err)
		}
		if r.last().Compare(stamp) >= 0 {
			return r.entries, nil
		}
		select {
		case <-reached:
		case <-ctx.Done():
			return nil, fmt.Errorf("tail stands at %s, want %s: %w", r.last(), stamp, ctx.Err())
		}
	}
}

// Streams returns the number of streams that the reader started.
func (r *Reader) Streams() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streams
}

// Watcher repeatedly verifies an outbox throughout a run: rules C1, C2 and C3, on snapshots
// between which writers make changes.
type Watcher struct {
	// Outbox is the outbox to watch.
	Outbox *outbox.Outbox
	// Each is the time for which it looks for late arrivals after each full check.
	Each time.Duration

	mu        sync.Mutex
	findings  Findings
	snapshots int
	checks    int
	err       error
	cancel    context.CancelFunc
	running   sync.WaitGroup
}

// Start starts to watch.
func (w *Watcher) Start(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(ctx)
	w.running.Go(func() {
		for more := true; more && ctx.Err() == nil; {
			more = w.look(ctx)
		}
	})
}

func (w *Watcher) look(ctx context.Context) bool {
	report, err := w.Outbox.Verify(ctx, &outbox.VerifyOptions{Watch: w.Each})
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	w.err = err
	w.checks++
	w.snapshots += 1 + report.Snapshots
	for _, problem := range report.Problems {
		w.findings.add("C1-C3", "%s", problem)
	}
	return err == nil
}

// Stop ends the watch. It returns the findings and the number of snapshots, of which checks
// were compared with the tables.
func (w *Watcher) Stop() (found Findings, snapshots, checks int, err error) {
	w.cancel()
	w.running.Wait()
	return w.findings, w.snapshots, w.checks, w.err
}

// Found returns the findings so far.
func (w *Watcher) Found() Findings {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append(Findings(nil), w.findings...)
}
