package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/histogram"
)

// Options configure a Worker.
type Options struct {
	// Queue names the part of its kind of work that the worker takes.
	Queue string
	// Workers learn of the worker. nil: nobody does.
	Workers *Workers
	// Names returns the names of the work that the worker claims. nil: all of its
	// queue.
	Names func() []string
	// Concurrency is how many pieces of work run at once.
	Concurrency int
	// Lease is how long a claim is ours without a heartbeat.
	Lease time.Duration
	// SweepEvery is the least time between two sweeps.
	SweepEvery time.Duration
	// Clock tells the time of this process.
	Clock clock.Clock
	// OnError receives errors that have no caller to go to.
	OnError func(error)
	// Outage is the record that workers share. nil: the worker has its own.
	Outage *Outage
}

const (
	// dbTimeout bounds each call of a Kind's functions, except Begin.
	dbTimeout = 15 * time.Second
	// graceLook is the interval at which a worker looks while it leaves expired claims
	// to their processes.
	graceLook = 100 * time.Millisecond
)

// Worker runs one kind of work in this process.
type Worker struct {
	kind    Kind
	options Options
	pool    pool
	outage  *Outage

	claiming sync.Mutex // one claim at a time: slots are counted before it

	mu       sync.Mutex
	running  map[*Claim]*batch
	settled  *sync.Cond // signalled when a run ends
	hungry   bool       // there may be more to claim than there were slots
	stopping bool
	looked   bool               // it has claimed, or tried to
	rest     context.CancelFunc // called when nothing runs any more
	swept    time.Time
	free     map[*func()]struct{} // told when a hungry worker has slots again

	claimed, done, failures, lost, failed atomic.Int64
	took, waited                          histogram.Histogram
}

// NewWorker returns a worker that has not claimed anything yet.
func NewWorker(kind Kind, options Options) *Worker {
	w := &Worker{kind: kind, options: options, running: map[*Claim]*batch{}, free: map[*func()]struct{}{}}
	w.settled = sync.NewCond(&w.mu)
	if w.outage = options.Outage; w.outage == nil {
		w.outage = &Outage{}
	}
	options.Workers.Add(w)
	return w
}

// MayReap reports whether expired claims of other processes may be reaped: there was
// no outage of the database in which they could not renew their leases.
func (w *Worker) MayReap() bool { return w.outage.Over(w.options.Clock.Now(), w.options.Lease) }

func (w *Worker) note(err error) { w.outage.Note(err, w.options.Clock.Now(), w.options.Lease) }

// OnFree calls fn, until cancel, when the worker could claim more than it had
// slots for and has slots again.
func (w *Worker) OnFree(fn func()) (cancel func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free[&fn] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.free, &fn)
	}
}

// Next returns how long it is until there is something to claim. While all
// slots are taken that is not before the next heartbeat, however much is due:
// OnFree tells when a slot is free. While expired claims are left to their processes,
// what is due may be one of them. A worker that stops claims nothing.
func (w *Worker) Next(ctx context.Context) (time.Duration, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, dbTimeout)
	defer cancel()
	wait, ok, err := w.kind.Next(ctx)
	if err != nil { // a success would say nothing: it only reads
		w.note(err)
	}
	if !w.MayReap() {
		wait = max(wait, graceLook)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping {
		return 0, false, err
	}
	if len(w.running) >= w.options.Concurrency {
		w.hungry = true
		wait = max(wait, w.options.Lease/beats)
	}
	return wait, ok, err
}

// Start claims what is due, as far as there are slots, and begins to run it.
// It returns how many were begun, without waiting for them.
func (w *Worker) Start(ctx context.Context) (int, error) {
	begun, _, err := w.start(ctx, &batch{})
	return begun, err
}

// batch counts the runs of one caller that have not ended; the worker's lock
// guards it.
type batch struct{ left int }

// Process claims what is due and runs it, and returns how many pieces were run
// when nothing more was due and all of them have ended. Work that is slow does
// not keep its slot's neighbours from being used again.
func (w *Worker) Process(ctx context.Context) (int, error) {
	total := 0
	mine := &batch{}
	for {
		begun, full, err := w.start(ctx, mine)
		total += begun
		if err = errors.Join(err, ctx.Err()); err != nil {
			w.await(mine, false)
			return total, err
		}
		if !w.await(mine, full) && begun == 0 {
			return total, nil
		}
	}
}

// await waits until the batch has ended or, if room is enough and the worker
// does not stop, until a slot is free. It reports whether there was anything to
// wait for.
func (w *Worker) await(mine *batch, room bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	waited := mine.left > 0
	for mine.left > 0 && (!room || w.stopping || len(w.running) >= w.options.Concurrency) {
		w.settled.Wait()
	}
	return waited
}

// start claims in batches until nothing is due or all slots are taken; full
// tells which. A short batch does not mean that nothing is left: others hold
// locks for a moment.
func (w *Worker) start(ctx context.Context, mine *batch) (total int, full bool, err error) {
	w.claiming.Lock()
	defer w.claiming.Unlock()
	for ctx.Err() == nil {
		slots := w.slots()
		if w.kind.Settling != nil && slots > 0 && slots < w.options.Concurrency/2 {
			w.kind.Settling(ctx)
			slots = w.slots()
		}
		if slots == 0 {
			return total, true, nil
		}
		begun, err := w.claim(ctx, slots, mine)
		total += begun
		if err != nil || begun == 0 {
			return total, false, err
		}
	}
	return total, false, nil
}

// slots returns how many runs may begin. Finding none makes the worker hungry.
func (w *Worker) slots() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping {
		return 0
	}
	w.looked = true
	slots := w.options.Concurrency - len(w.running)
	w.hungry = slots <= 0
	return max(slots, 0)
}

func (w *Worker) claim(ctx context.Context, slots int, mine *batch) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, dbTimeout)
	defer cancel()
	from := w.options.Clock.Now() // before the claim: our lease must not outlast the database's
	claims, err := w.kind.Claim(ctx, slots, w.options.Lease)
	if w.note(err); err != nil {
		return 0, fmt.Errorf("claim %s: %w", w.kind.Name, err)
	}
	if len(claims) == 0 {
		return 0, nil
	}
	if err := failpoint.Hit("core.claimed"); err != nil {
		return 0, err
	}
	w.claimed.Add(int64(len(claims)))
	ctx = context.WithoutCancel(ctx) // what was claimed outlives the caller
	if !w.begin(ctx, claims, from.Add(w.options.Lease), mine) {
		return 0, w.release(ctx, claims)
	}
	return len(claims), nil
}

// begin starts the runs, unless the worker was stopped while it claimed.
func (w *Worker) begin(ctx context.Context, claims []*Claim, until time.Time, mine *batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping {
		return false
	}
	if len(w.running) == 0 {
		var busy context.Context
		busy, w.rest = context.WithCancel(context.WithoutCancel(ctx))
		w.beat(busy)
		w.watch(busy)
		if w.kind.Taken != nil {
			w.every(busy, lookEvery, func() { w.look(busy) })
		}
	}
	runs := make([]func(), len(claims))
	for i, c := range claims {
		ctx, cancel := context.WithCancelCause(ctx)
		c.worker, c.until, c.cancel = w, until, cancel
		w.running[c] = mine
		mine.left++
		runs[i] = func() { w.run(ctx, c) }
	}
	w.pool.run(runs...)
	return true
}

func (w *Worker) release(ctx context.Context, claims []*Claim) error {
	ctx, cancel := context.WithTimeout(ctx, dbTimeout)
	defer cancel()
	if err := w.kind.Release(ctx, claims); err != nil {
		return fmt.Errorf("release %s: %w", w.kind.Name, err)
	}
	return nil
}

func (w *Worker) run(ctx context.Context, c *Claim) {
	c.begun = w.options.Clock.Now()
	if !c.Due.IsZero() {
		w.waited.Observe(c.begun.Sub(c.Due))
	}
	w.kind.Begin(ctx, c)
}

// finish counts a run that has ended and frees its slot. A sweep that is due runs
// in the slot first, so that it is waited for like all work.
func (w *Worker) finish(c *Claim, err error) {
	c.cancel(nil)
	w.took.Observe(w.options.Clock.Now().Sub(c.begun))
	switch {
	case err == nil:
		w.done.Add(1)
		if c.Failed {
			w.failures.Add(1)
		}
	case errors.Is(err, ErrLost):
		w.lost.Add(1)
	default:
		w.failed.Add(1)
	}
	if err != nil && !errors.Is(err, ErrTaken) { // the claim was taken away on request
		w.report(fmt.Errorf("run %s %s: %w", w.kind.Name, cmp.Or(c.Public, c.ID), err))
	}
	if !w.sweepDue() {
		w.end(c)
		return
	}
	w.pool.run(func() {
		defer w.end(c)
		w.sweep()
	})
}

// report hands an error to the callback, which is the user's and may panic:
// that must not end the process.
func (w *Worker) report(err error) {
	defer func() { _ = recover() }() // the last resort: nobody is left to tell
	w.options.OnError(err)
}

// end frees the slot and tells whoever waits for one.
func (w *Worker) end(c *Claim) {
	for _, fn := range w.ended(c) {
		fn()
	}
}

// ended frees the slot and returns whom to tell.
func (w *Worker) ended(c *Claim) (free []func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[c].left--
	delete(w.running, c)
	if len(w.running) == 0 {
		w.rest()
	}
	if w.hungry && !w.stopping {
		w.hungry = false
		for fn := range w.free {
			free = append(free, *fn)
		}
	}
	w.settled.Broadcast()
	return free
}

// sweep removes what is kept no longer.
func (w *Worker) sweep() {
	ctx, cancel := context.WithTimeout(context.Background(), dbTimeout)
	defer cancel()
	if err := Call(func() error { return w.kind.Sweep(ctx) }); err != nil {
		w.report(fmt.Errorf("sweep %s: %w", w.kind.Name, err))
	}
}

func (w *Worker) sweepDue() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.options.Clock.Now()
	if w.kind.Sweep == nil || now.Sub(w.swept) < w.options.SweepEvery {
		return false
	}
	w.swept = now
	return true
}
