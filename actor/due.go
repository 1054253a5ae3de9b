package actor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/seal"
)

// firing is the state of this process for firing timers.
type firing struct {
	mu       sync.Mutex
	running  sync.WaitGroup
	stopping bool
	begun    bool // a dispatcher has asked this process to fire due timers
	// looked is the start of the last pass, if the pass fired nothing. Timers due before it are
	// locked by other processes.
	looked time.Time
	swept  time.Time
	// backlog is used only on databases with row locations.
	backlog backlogs
	// unusable are the stored statecharts that name functions that this process does not have.
	unusable map[string]bool
	// missing are the encryption keys that this process was found not to have.
	missing map[string]bool
	meter   meter
	// lone is held by passes while they fire. A pass of suspects holds it for writing, so that
	// a crash can only be caused by one of the suspects.
	lone sync.RWMutex
}

// begin counts a pass as running, unless the process is stopping. It reports whether it did.
func (f *firing) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopping {
		return false
	}
	f.running.Add(1)
	return true
}

const (
	// maxPasses is the maximum number of passes of one call of fire. maxOverlap is the maximum
	// number of passes that run concurrently.
	maxPasses  = 8
	maxOverlap = 3
)

// fire fires due timers in up to maxPasses passes. It returns the number of actors that it
// moved; more reports whether further timers may be due. A pass starts when the previous pass
// has locked its actors, so that the database and this process both have work.
func (a *Actors) fire(ctx context.Context, types []string) (moved int, more bool, err error) {
	var mu sync.Mutex
	var running sync.WaitGroup
	more = true
	overlap, _ := a.overlap()
	slots := make(chan struct{}, overlap)
	for n := 0; n < maxPasses; n++ {
		slots <- struct{}{}
		locked := make(chan struct{})
		next := sync.OnceFunc(func() { close(locked) })
		running.Go(func() {
			defer func() {
				next()
				<-slots
			}()
			some, others, failed := a.firePass(ctx, types, next)
			mu.Lock()
			defer mu.Unlock()
			moved, more, err = moved+some, more && others, errors.Join(err, failed)
		})
		<-locked
		mu.Lock()
		over := !more || err != nil
		mu.Unlock()
		if over {
			break
		}
	}
	running.Wait()
	return moved, more && err == nil, err
}

// firePass fires the due timers of up to Options.Batch actors in one transaction. It calls
// locked when it has locked the actors.
func (a *Actors) firePass(ctx context.Context, types []string, locked func()) (moved int, more bool, err error) {
	if len(types) == 0 || !a.firing.begin() {
		return 0, false, nil
	}
	defer a.firing.running.Done()
	if a.holds() {
		some, found, others, err := a.fireHeld(ctx, types, locked)
		if err != nil || found > 0 && !a.firing.backlog.reapDue() {
			return some, others, err
		}
		if found > 0 {
			reaped, err := a.reapExpired(ctx)
			return some, others || reaped, err
		}
	}
	p, reaped, err := a.claim(ctx, types)
	if err != nil || p == nil {
		return 0, reaped, err
	}
	defer a.leave(p)
	if p.Suspect {
		a.firing.lone.Lock()
		defer a.firing.lone.Unlock()
	} else {
		a.firing.lone.RLock()
		defer a.firing.lone.RUnlock()
	}
	b := &batch{}
	began := a.rt.Clock.Now()
	err = a.eng.Update(ctx, func(tx *perdure.Tx) error {
		b = a.newBatch(host.In(tx))
		b.pass = p
		return b.fire(locked)
	})
	moved = a.firing.meter.measure(b, a.rt.Clock.Now().Sub(began), err)
	if err != nil {
		a.abandon(ctx, p)
		return 0, false, fmt.Errorf("fire timers: %w", err)
	}
	b.remember()
	return moved, moved > 0 || reaped || b.foreign || len(b.postponed()) > 0, nil
}

// fire fires the timers of a pass. It removes the record of the pass first: until the
// transaction ends, the lock on the record shows that this process is alive. It calls locked
// when the actors are locked.
func (b *batch) fire(locked func()) error {
	rt, gone := b.actors.rt, false
	if err := b.run(rt.Store.DropFiring(b.pass.Token, &gone)); err != nil || gone {
		return err
	}
	refs := b.pass.refs()
	if err := b.run(rt.Store.LockFreeActors(refs, b.takeCached(refs), rt.Now(), b.locked)); err != nil {
		return err
	}
	if b.putBack(refs); len(b.order) == 0 {
		return nil
	}
	locked()
	refs = refs[:0]
	for _, t := range b.order {
		refs = append(refs, t.ref.stored())
	}
	if err := b.run(b.readDue(refs)); err != nil {
		return err
	}
	return b.fireAll()
}

// fireAll fires the due timers of the locked actors.
func (b *batch) fireAll() error {
	running := &b.actors.firing.meter.running
	running.Add(int64(len(b.order)))
	defer running.Add(-int64(len(b.order)))
	for _, t := range b.order {
		t.late = t.overdue()
		err := b.load(t)
		if err == nil {
			err = t.wake()
		}
		if !isActorError(err) {
			return err
		}
		b.recordSkipped(t.ref, err)
	}
	return b.write()
}

// isActorError reports whether an error concerns only one actor: the actor is quarantined, or only
// another process knows its type or has its encryption key.
func isActorError(err error) bool {
	var quarantined *QuarantinedError
	var version *VersionError
	var unknown *fault.NotFound
	var sealed *seal.SealedError
	return err == nil || errors.As(err, &sealed) || errors.As(err, &quarantined) || errors.As(err, &version) || errors.As(err, &unknown)
}

// types returns the types whose timers this process fires: registered types and stored
// statecharts.
func (a *Actors) types(ctx context.Context) ([]string, error) {
	var names []string
	if err := a.read(ctx, a.rt.Store.MachineNames(func(name string) { names = append(names, name) })); err != nil {
		a.note(err) // a success proves nothing: this transaction only reads
		return nil, fmt.Errorf("list statecharts: %w", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { // known also registers the handlers of their effects
		_, err := a.known(ctx, name)
		return !a.usable(name, err)
	})
	a.mu.RLock()
	defer a.mu.RUnlock()
	for name, k := range a.kinds {
		names = slices.DeleteFunc(names, func(other string) bool { return other == name })
		if !k.options.DisableTimers {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// usable records whether a stored statechart can be used in this process. It reports the error
// the first time that it cannot.
func (a *Actors) usable(name string, err error) bool {
	a.firing.mu.Lock()
	known := a.firing.unusable[name]
	if err == nil {
		delete(a.firing.unusable, name)
	} else {
		a.firing.unusable[name] = true
	}
	a.firing.mu.Unlock()
	if err != nil && !known {
		a.report(err)
	}
	return err == nil
}

// sweepEvery is the interval at which expired keys are removed. sweepLimit is the maximum
// number of keys removed in one sweep.
const (
	sweepEvery = time.Hour
	sweepLimit = 5000
)

// sweep removes the idempotency keys of events that are older than the retention. It does so at
// most once per sweepEvery.
func (a *Actors) sweep(ctx context.Context) error {
	now := a.rt.Clock.Now()
	a.firing.mu.Lock()
	due := now.Sub(a.firing.swept) >= sweepEvery
	if due {
		a.firing.swept = now
	}
	a.firing.mu.Unlock()
	if !due {
		return nil
	}
	err := a.eng.Update(ctx, func(tx *perdure.Tx) error {
		return host.In(tx).Attach(nil, a.rt.Store.PurgeActorKeys(a.options.Retention, sweepLimit, a.rt.Now(), new(int64)))
	})
	if err != nil {
		return fmt.Errorf("drop retired keys: %w", err)
	}
	return nil
}

// nextTimer returns the next due time of a timer, or zero if there is none.
func (a *Actors) nextTimer(ctx context.Context) (time.Time, error) {
	now := a.rt.Clock.Now()
	wait, ok, err := delays{a}.Due(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("read next due time: %w", err)
	}
	if !ok {
		return time.Time{}, nil
	}
	next := now.Add(wait)
	a.firing.mu.Lock()
	defer a.firing.mu.Unlock()
	if a.firing.stopping {
		return time.Time{}, nil
	}
	if !next.IsZero() && !next.After(a.firing.looked) {
		next = now.Add(contended)
	}
	return next, nil
}

// contended is the wait before the next pass when other processes have locked the due timers.
const contended = 100 * time.Millisecond
