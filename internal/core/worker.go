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
	// Queue names the part of its kind of work that the worker claims.
	Queue string
	// Workers is the list to which the worker is added. Nil: none.
	Workers *Workers
	// Names returns the names of the work that the worker claims. Nil: its whole queue.
	Names func() []string
	// Concurrency is the maximum number of work items that run concurrently.
	Concurrency int
	// Room returns how many more work items may be claimed now, within Concurrency, while running
	// items are running. Freed reports that it has grown. Nil: there is no other limit.
	Room func(running int) int
	// Lease is the time for which a claim is valid without a heartbeat.
	Lease time.Duration
	// SweepEvery is the shortest interval between two sweeps.
	SweepEvery time.Duration
	// Clock is the clock of this process.
	Clock clock.Clock
	// OnError receives background errors.
	OnError func(error)
	// Outage is shared by several workers. Nil: the worker has its own.
	Outage *Outage
}

const (
	// dbTimeout is the time limit for each call of a Kind's functions, except Begin.
	dbTimeout = 15 * time.Second
	// graceLook is the interval at which a worker polls while it does not reap expired
	// claims.
	graceLook = 100 * time.Millisecond
)

// Worker runs one kind of work in this process.
type Worker struct {
	kind    Kind
	options Options
	pool    pool
	outage  *Outage

	claiming sync.Mutex // serializes claims: slots are counted before a claim

	mu       sync.Mutex
	running  map[*Claim]*batch
	runEnded *sync.Cond // signalled when a run ends
	moreDue  bool       // there may be more due work than slots
	stopping bool
	looked   bool               // the worker has claimed, or tried to
	rest     context.CancelFunc // called when nothing is running any longer
	swept    time.Time
	free     map[*func()]struct{} // called when a worker with more due work has free slots again

	shares  map[string]*share // by name
	begun   int               // claims that run, without those that are held
	held    []*Claim          // claims whose names have no room
	waiting bool              // a goroutine waits for the end of heldFor

	claimed, done, failures, lost, failed, returned atomic.Int64
	took, waited                                    histogram.Histogram
}

// NewWorker returns a worker. It does not claim before Start or Process is called.
func NewWorker(kind Kind, options Options) *Worker {
	w := &Worker{kind: kind, options: options, running: map[*Claim]*batch{}, free: map[*func()]struct{}{}, shares: map[string]*share{}}
	w.runEnded = sync.NewCond(&w.mu)
	if w.outage = options.Outage; w.outage == nil {
		w.outage = &Outage{}
	}
	options.Workers.Add(w)
	return w
}

// MayReap reports whether expired claims of other processes may be reaped: there was no
// outage during which they could not renew their leases.
func (w *Worker) MayReap() bool { return w.outage.Over(w.options.Clock.Now(), w.options.Lease) }

func (w *Worker) note(err error) { w.outage.Note(err, w.options.Clock.Now(), w.options.Lease) }

// OnFree calls fn, until cancel, when the worker had more due work than slots and has
// free slots again.
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

// Next returns the time until there is something to claim. While all slots are in use,
// that is not before the next heartbeat, even if work is due: OnFree reports a free
// slot. While expired claims are not reaped, the due work may be one of them, so the
// time is at least graceLook. A stopping worker claims nothing.
func (w *Worker) Next(ctx context.Context) (time.Duration, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, dbTimeout)
	defer cancel()
	wait, ok, err := w.kind.Next(ctx)
	if err != nil { // a success would prove nothing: Next only reads
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
	if w.openSlots() <= 0 {
		w.moreDue = true
		wait = max(wait, w.options.Lease/beats)
	}
	return wait, ok, err
}

// Start claims due work, as far as there are free slots, and starts to run it. It
// returns the number of work items that it started, without waiting for them.
func (w *Worker) Start(ctx context.Context) (int, error) {
	begun, _, err := w.start(ctx, &batch{})
	return begun, err
}

// batch counts the unfinished runs of one caller, and those that were returned without a run.
// The worker's lock guards it.
type batch struct{ left, returned int }

// Process claims and runs due work until nothing more is due and all of it is finished.
// It returns the number of work items that it ran. A slow work item does not block the
// other slots.
func (w *Worker) Process(ctx context.Context) (int, error) {
	total := 0
	mine := &batch{}
	for {
		begun, full, err := w.start(ctx, mine)
		total += begun
		if err = errors.Join(err, ctx.Err()); err != nil {
			w.await(mine, false)
			return total - mine.returned, err
		}
		if !w.await(mine, full) && begun == 0 {
			return total - mine.returned, nil
		}
	}
}

// await waits until the batch is finished. If room is true and the worker is not
// stopping, it waits only until a slot is free. It reports whether the batch was
// unfinished.
func (w *Worker) await(mine *batch, room bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	waited := mine.left > 0
	for mine.left > 0 && (!room || w.stopping || len(w.running) >= w.options.Concurrency) {
		w.runEnded.Wait()
	}
	return waited
}

// start claims in batches until nothing is due or all slots are in use; full is true in
// the second case. A short batch does not mean that nothing is left: other processes
// lock rows for short times.
func (w *Worker) start(ctx context.Context, mine *batch) (total int, full bool, err error) {
	w.claiming.Lock()
	defer w.claiming.Unlock()
	for ctx.Err() == nil {
		slots := w.slots()
		if w.kind.AwaitOutcomes != nil && slots > 0 && slots < w.options.Concurrency/2 {
			w.kind.AwaitOutcomes(ctx)
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

// slots returns the number of free slots. If there are none, moreDue is set.
func (w *Worker) slots() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping {
		return 0
	}
	w.looked = true
	slots := w.openSlots()
	w.moreDue = slots <= 0
	return max(slots, 0)
}

func (w *Worker) claim(ctx context.Context, slots int, mine *batch) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, dbTimeout)
	defer cancel()
	from := w.options.Clock.Now() // before the claim: the local lease must not outlast the database's
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
	ctx = context.WithoutCancel(ctx) // claimed work outlives the caller
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
	runs := make([]func(), 0, len(claims))
	var held []*Claim
	for _, c := range claims {
		ctx, cancel := context.WithCancelCause(ctx)
		c.worker, c.until, c.cancel = w, until, cancel
		c.run = func() { w.run(ctx, c) }
		w.running[c] = mine
		mine.left++
		if w.admit(c) {
			runs = append(runs, c.run)
		} else {
			held = append(held, c)
		}
	}
	w.pool.run(runs...)
	w.hold(ctx, held)
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

// finish counts a finished run and frees its slot. A sweep that is due runs in the slot
// first, so that Drain and Process wait for it as for work.
func (w *Worker) finish(c *Claim, err error) {
	c.cancel(nil)
	if c.Ended != nil {
		c.Ended(err)
	}
	w.took.Observe(w.options.Clock.Now().Sub(c.begun))
	switch {
	case err == nil:
		c.committed = true
		w.done.Add(1)
		if c.Failed {
			w.failures.Add(1)
		}
	case errors.Is(err, ErrLost):
		w.lost.Add(1)
	default:
		w.failed.Add(1)
	}
	if err != nil && !errors.Is(err, ErrTaken) { // ErrTaken: the claim was revoked on request
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

// report calls the user's OnError. A panic in OnError must not crash the process.
func (w *Worker) report(err error) {
	defer func() { _ = recover() }() // there is no caller left to report it to
	w.options.OnError(err)
}

// end frees the slot and calls the functions of OnFree.
func (w *Worker) end(c *Claim) {
	for _, fn := range w.ended(c) {
		fn()
	}
}

// ended frees the slot and returns the functions to call.
func (w *Worker) ended(c *Claim) (free []func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[c].left--
	delete(w.running, c)
	begin, room := w.leave(c)
	for _, c := range begin {
		w.pool.run(c.run)
	}
	if len(w.running) == 0 {
		w.rest()
	}
	w.moreDue = w.moreDue || room
	free = w.wakeFree()
	w.runEnded.Broadcast()
	return free
}

// sweep removes rows whose retention has passed.
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
