package actor

import (
	"context"
	"errors"
	"time"
)

// Namespace implements dispatch.Processor.
func (a *Actors) Namespace() string { return namespace }

// Process fires every due timer and runs every due effect and invocation that has a handler in
// this process, including work that becomes due as a result. It returns the number of actors,
// effects and invocations processed.
func (a *Actors) Process(ctx context.Context) (int, error) {
	total := 0
	for {
		fired, err := a.fireAll(ctx)
		ran, failed := a.runner.Process(ctx)
		total += fired + ran
		if err = errors.Join(err, failed); err != nil || fired+ran == 0 {
			return total, err
		}
	}
}

// fireAll fires all due timers, batch by batch.
func (a *Actors) fireAll(ctx context.Context) (int, error) {
	began := a.rt.Clock.Now()
	types, err := a.types(ctx)
	total := 0
	for err == nil && ctx.Err() == nil {
		var fired int
		var more bool
		fired, more, err = a.fire(ctx, types)
		total += fired
		if !more {
			break
		}
	}
	return total, errors.Join(err, a.done(ctx, began, total))
}

// done records the result of a pass that started at began. If the pass fired timers, it sweeps
// if a sweep is due.
func (a *Actors) done(ctx context.Context, began time.Time, fired int) error {
	a.firing.mu.Lock()
	a.firing.begun, a.firing.looked = true, time.Time{}
	if fired == 0 {
		a.firing.looked = began
	}
	a.firing.mu.Unlock()
	if fired == 0 {
		return nil
	}
	return a.sweep(ctx)
}

// Start fires due timers and starts due effects and invocations without waiting for them to
// finish. After each batch of timers, it starts the effects and invocations that the batch
// caused.
func (a *Actors) Start(ctx context.Context) (int, error) {
	began := a.rt.Clock.Now()
	types, err := a.types(ctx)
	fired, begun := 0, 0
	for {
		moved, more := 0, false
		if err == nil {
			moved, more, err = a.fire(ctx, types)
		}
		some, failed := a.runner.Start(ctx)
		fired, begun = fired+moved, begun+some
		if err = errors.Join(err, failed); err != nil || !more || ctx.Err() != nil {
			return fired + begun, errors.Join(err, a.done(ctx, began, fired))
		}
	}
}

// Drain stops firing and claiming, and waits for running work, at most until ctx is done.
func (a *Actors) Drain(ctx context.Context) error {
	a.firing.mu.Lock()
	a.firing.stopping = true
	a.firing.mu.Unlock()
	defer a.resolver.Abandon()
	quiet := make(chan struct{})
	go func() {
		a.firing.running.Wait() // each pass is bounded by the engine's timeout
		close(quiet)
	}()
	err := a.runner.Drain(ctx)
	select {
	case <-quiet:
		return err
	case <-ctx.Done():
		return errors.Join(err, ctx.Err())
	}
}

// NextWakeAt returns the next due time of a timer, an effect or an invocation, or zero if there
// is none.
func (a *Actors) NextWakeAt(ctx context.Context) (time.Time, error) {
	next, err := a.nextTimer(ctx)
	work, failed := a.runner.NextWakeAt(ctx)
	if !work.IsZero() {
		next = earlier(next, work)
	}
	return next, errors.Join(err, failed)
}

// Subscribe calls fn when timers, effects or invocations arrive, and when a handler returns
// while more work is waiting.
func (a *Actors) Subscribe(fn func(due time.Time)) (cancel func()) { return a.runner.Subscribe(fn) }
