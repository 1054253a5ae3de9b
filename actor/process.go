package actor

import (
	"context"
	"errors"
	"time"
)

// Namespace implements dispatch.Processor.
func (a *Actors) Namespace() string { return namespace }

// Process fires every delay that is due and runs every effect and invocation that is
// due and has a handler here, and what that has made due. It returns how many
// actors, effects and invocations that were.
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

// fireAll fires what is due, batch by batch.
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

// done notes what a pass has found that began at a time, and sweeps now and then.
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

// Start fires what is due and begins to run effects and invocations, without waiting
// for them. Between two batches of delays it begins what those have led to.
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

// Drain stops firing and claiming and waits for what runs, at most until ctx is
// done.
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

// NextWakeAt returns when a delay, an effect or an invocation will be due. It is zero if
// there is none.
func (a *Actors) NextWakeAt(ctx context.Context) (time.Time, error) {
	next, err := a.nextTimer(ctx)
	work, failed := a.runner.NextWakeAt(ctx)
	if !work.IsZero() {
		next = earlier(next, work)
	}
	return next, errors.Join(err, failed)
}

// Subscribe calls fn when delays, effects or invocations arrive, and when a handler
// ends while more are waiting.
func (a *Actors) Subscribe(fn func(due time.Time)) (cancel func()) { return a.runner.Subscribe(fn) }
