package dispatch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
)

// runner runs a processor, one run at a time. All requests that arrive during a run lead
// to exactly one more run.
type runner struct {
	processor Processor
	onError   func(error)
	after     func(ctx context.Context, ran int, err error) // called after each run; may be nil

	ctx      context.Context // of the runs
	cancel   context.CancelFunc
	aside    context.Context // of goroutines that run concurrently with the runs
	endAside context.CancelFunc

	mu      sync.Mutex
	running bool
	queued  chan struct{} // closed when the queued run has finished; nil if no run is queued
	stopped bool
	looking bool // look is running
	again   bool // look was called while it ran
	group   sync.WaitGroup
}

func newRunner(p Processor, onError func(error)) *runner {
	r := &runner{processor: p, onError: onError}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.aside, r.endAside = context.WithCancel(r.ctx)
	return r
}

// wake requests a run. The returned channel is closed when a run that started after the
// call has finished, or when the runner is stopped.
func (r *runner) wake() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		done := make(chan struct{})
		close(done)
		return done
	}
	if r.queued == nil {
		r.queued = make(chan struct{})
	}
	queued := r.queued
	if !r.running {
		r.running = true
		r.group.Go(r.loop)
	}
	return queued
}

// loop runs the processor as long as runs are queued. A panic in the processor or in a
// callback is an error like any other and does not end the loop.
func (r *runner) loop() {
	for {
		r.mu.Lock()
		done := r.queued
		r.queued = nil
		if done == nil || r.stopped {
			r.running = false
			r.mu.Unlock()
			if done != nil {
				close(done)
			}
			return
		}
		r.mu.Unlock()
		r.once()
		close(done)
	}
}

// once runs the processor and then calls after.
func (r *runner) once() {
	n, err := guard(func() (int, error) { return start(r.ctx, r.processor) })
	if r.ctx.Err() != nil {
		return
	}
	r.report(err)
	if r.after != nil {
		_, err := guard(func() (int, error) { r.after(r.ctx, n, err); return 0, nil })
		r.report(err)
	}
}

// report passes an error to onError, which may itself panic.
func (r *runner) report(err error) {
	if err == nil {
		return
	}
	defer func() { _ = recover() }() // a panicking OnError must not crash the process
	r.onError(fmt.Errorf("%s: %w", r.processor.Namespace(), err))
}

// lastWords is the time that a processor has to return after its context is cancelled.
const lastWords = time.Second

// stop prevents further runs, and waits for the current run and the work that it started,
// until ctx is done. Then it cancels their contexts and waits for lastWords (1 s).
func (r *runner) stop(ctx context.Context) error {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.endAside()
	abort := context.AfterFunc(ctx, r.cancel)
	defer abort()
	_, err := guard(func() (int, error) { return 0, drain(ctx, r.processor) })
	ended := make(chan struct{})
	go func() {
		r.group.Wait()
		close(ended)
	}()
	if !r.await(ctx, ended) {
		err = errors.Join(err, fmt.Errorf("stop %s: still running", r.processor.Namespace()))
	}
	r.cancel()
	return err
}

// await waits until ended is closed, at most lastWords longer than ctx. It reports
// whether ended was closed in time.
func (r *runner) await(ctx context.Context, ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	case <-ctx.Done():
	}
	timer := clock.System.NewTimer(lastWords) // the caller waits in real time
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C():
		return false
	}
}

// guard turns a panic into an error.
func guard(fn func() (int, error)) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return fn()
}

// do runs fn concurrently with the runs, in a goroutine that stop waits for.
func (r *runner) do(fn func(context.Context)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	r.group.Go(func() {
		_, err := guard(func() (int, error) { fn(r.aside); return 0, nil })
		r.report(err)
	})
}

// look runs fn concurrently with the runs, one call at a time. Requests while fn runs
// lead to exactly one more call.
func (r *runner) look(fn func(context.Context)) {
	r.mu.Lock()
	if r.looking {
		r.again = true
		r.mu.Unlock()
		return
	}
	r.looking = true
	r.mu.Unlock()
	r.do(func(ctx context.Context) {
		for {
			_, err := guard(func() (int, error) { fn(ctx); return 0, nil })
			r.report(err)
			r.mu.Lock()
			r.looking = r.again && ctx.Err() == nil
			r.again = false
			more := r.looking
			r.mu.Unlock()
			if !more {
				return
			}
		}
	})
}

// later runs fn after d, by the clock c.
func (r *runner) later(c clock.Clock, d time.Duration, fn func(context.Context)) {
	r.do(func(ctx context.Context) {
		timer := c.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C():
			fn(ctx)
		case <-ctx.Done():
		}
	})
}
