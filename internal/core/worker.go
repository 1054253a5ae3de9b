package core

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/failpoint"
)

// Options configure a Worker.
type Options struct {
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
}

// dbTimeout bounds each call of a Kind's functions, except Run.
const dbTimeout = 15 * time.Second

// Worker runs one kind of work in this process.
type Worker struct {
	kind    Kind
	options Options

	claiming sync.Mutex // one claim at a time: slots are counted before it

	mu       sync.Mutex
	running  map[*Claim]struct{}
	settled  *sync.Cond // signalled when a run ends
	hungry   bool       // the last claim was limited by slots
	stopping bool
	quiet    chan struct{} // closed when nothing runs any more
	swept    time.Time
	free     func() // told when a hungry worker has slots again

	claimed, done, lost, failed atomic.Int64
}

// NewWorker returns a worker that has not claimed anything yet.
func NewWorker(kind Kind, options Options) *Worker {
	w := &Worker{kind: kind, options: options, running: map[*Claim]struct{}{}, swept: options.Clock.Now(), free: func() {}}
	w.settled = sync.NewCond(&w.mu)
	return w
}

// OnFree sets the function that is called when the worker could claim more
// than it had slots for and has slots again.
func (w *Worker) OnFree(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free = fn
}

// Stats returns what the worker has counted.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Stats{
		Claimed: w.claimed.Load(), Running: int64(len(w.running)), Settled: w.done.Load(),
		Lost: w.lost.Load(), Errors: w.failed.Load(),
	}
}

// Next returns how long it is until there is something to claim.
func (w *Worker) Next(ctx context.Context) (time.Duration, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, dbTimeout)
	defer cancel()
	return w.kind.Next(ctx)
}

// Start claims what is due, as far as there are slots, and begins to run it.
// It returns how many were begun, without waiting for them.
func (w *Worker) Start(ctx context.Context) (int, error) {
	begun, err := w.start(ctx, nil)
	return begun, err
}

// Process claims what is due and runs it, and returns how many pieces were run
// when nothing more was due and all of them have ended.
func (w *Worker) Process(ctx context.Context) (int, error) {
	total := 0
	for {
		var mine sync.WaitGroup
		begun, err := w.start(ctx, &mine)
		mine.Wait()
		total += begun
		if err != nil || begun == 0 || ctx.Err() != nil {
			return total, errors.Join(err, ctx.Err())
		}
	}
}

// start claims in batches until nothing is due or all slots are taken. A short
// batch does not mean that nothing is left: others hold locks for a moment.
func (w *Worker) start(ctx context.Context, mine *sync.WaitGroup) (int, error) {
	w.claiming.Lock()
	defer w.claiming.Unlock()
	total := 0
	for ctx.Err() == nil {
		slots := w.slots()
		if slots == 0 {
			return total, nil
		}
		begun, err := w.claim(ctx, slots, mine)
		total += begun
		if err != nil || begun == 0 {
			return total, err
		}
	}
	return total, nil
}

// slots returns how many runs may begin. Finding none makes the worker hungry.
func (w *Worker) slots() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping {
		return 0
	}
	slots := w.options.Concurrency - len(w.running)
	w.hungry = slots <= 0
	return max(slots, 0)
}

func (w *Worker) claim(ctx context.Context, slots int, mine *sync.WaitGroup) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, dbTimeout)
	defer cancel()
	from := w.options.Clock.Now() // before the claim: our lease must not outlast the database's
	claims, err := w.kind.Claim(ctx, slots, w.options.Lease)
	if err != nil {
		return 0, fmt.Errorf("claim %s: %w", w.kind.Name, err)
	}
	if len(claims) == 0 {
		return 0, nil
	}
	if err := failpoint.Hit("core.claimed"); err != nil {
		return 0, err
	}
	w.claimed.Add(int64(len(claims)))
	if !w.begin(claims, from.Add(w.options.Lease), mine) {
		return 0, w.release(claims)
	}
	return len(claims), nil
}

// begin starts the runs, unless the worker was stopped while it claimed.
func (w *Worker) begin(claims []*Claim, until time.Time, mine *sync.WaitGroup) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping {
		return false
	}
	if len(w.running) == 0 {
		w.quiet = make(chan struct{})
		go w.beat(w.quiet)
	}
	for _, c := range claims {
		ctx, cancel := context.WithCancelCause(context.Background())
		c.until, c.cancel = until, cancel
		w.running[c] = struct{}{}
		if mine != nil {
			mine.Add(1)
		}
		go w.run(ctx, c, mine)
	}
	return true
}

func (w *Worker) release(claims []*Claim) error {
	ctx, cancel := context.WithTimeout(context.Background(), dbTimeout)
	defer cancel()
	if err := w.kind.Release(ctx, claims); err != nil {
		return fmt.Errorf("release %s: %w", w.kind.Name, err)
	}
	return nil
}

func (w *Worker) run(ctx context.Context, c *Claim, mine *sync.WaitGroup) {
	if mine != nil {
		defer mine.Done()
	}
	defer w.end(c)
	defer c.cancel(nil)
	if err := Call(func() error { return w.kind.Run(ctx, c) }); err != nil {
		w.failed.Add(1)
		w.options.OnError(fmt.Errorf("run %s %s: %w", w.kind.Name, c.ID, err))
		return
	}
	w.done.Add(1)
}

// end frees the slot and tells whoever waits for one.
func (w *Worker) end(c *Claim) {
	w.sweep()
	w.mu.Lock()
	delete(w.running, c)
	if len(w.running) == 0 {
		close(w.quiet)
	}
	free := func() {}
	if w.hungry && !w.stopping {
		w.hungry, free = false, w.free
	}
	w.settled.Broadcast()
	w.mu.Unlock()
	free()
}

// sweep removes what is kept no longer, if it is time. It runs in a slot, so
// that it is waited for like all work.
func (w *Worker) sweep() {
	if !w.sweepDue() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), dbTimeout)
	defer cancel()
	if err := w.kind.Sweep(ctx); err != nil {
		w.options.OnError(fmt.Errorf("sweep %s: %w", w.kind.Name, err))
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
