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

// firing is what the delays of actors need to know of this process.
type firing struct {
	mu       sync.Mutex
	running  sync.WaitGroup
	stopping bool
	begun    bool // a dispatcher has asked it to fire what is due
	// looked is when the last pass began, if it fired nothing: what was due by then
	// others have.
	looked time.Time
	swept  time.Time
	// unusable are the types that are data and name what this process has not.
	unusable map[string]bool
	// missing are the keys that this process was found not to have.
	missing map[string]bool
	meter   meter
	// lone is held by passes while they fire, for writing by one of suspects: what crashes
	// then is one of them.
	lone sync.RWMutex
}

// begin counts a pass in, unless the process stops.
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
	// maxPasses is the number of passes that fire makes, maxOverlap how many run at once.
	maxPasses  = 8
	maxOverlap = 3
)

// fire fires the delays of actors that are due, in up to maxPasses passes, and returns how
// many actors it moved; more says whether others may be due behind them. A pass begins when
// the one before it has locked its actors, so that the database and this process both have
// something to do.
func (a *Actors) fire(ctx context.Context, types []string) (moved int, more bool, err error) {
	var mu sync.Mutex
	var running sync.WaitGroup
	more = true
	slots := make(chan struct{}, maxOverlap)
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

// firePass fires the delays of up to Options.Batch actors that are due, in one transaction.
// It calls locked when it has locked them.
func (a *Actors) firePass(ctx context.Context, types []string, locked func()) (moved int, more bool, err error) {
	if len(types) == 0 || !a.firing.begin() {
		return 0, false, nil
	}
	defer a.firing.running.Done()
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
		return 0, false, fmt.Errorf("fire delays: %w", err)
	}
	b.remember()
	return moved, moved > 0 || reaped || b.foreign || len(b.postponed()) > 0, nil
}

// fire fires the delays of a pass. The record of the pass is removed first: until the
// transaction ends, its lock shows that this process lives. locked is called when the
// actors are locked.
func (b *batch) fire(locked func()) error {
	rt, gone := b.actors.rt, false
	if err := b.run(rt.Store.DropFiring(b.pass.Token, &gone)); err != nil || gone {
		return err
	}
	refs := b.pass.refs()
	if err := b.run(rt.Store.LockFreeActors(refs, b.takeCached(refs), rt.Now(), b.locked)); err != nil || len(b.order) == 0 {
		return err
	}
	locked()
	b.putBack(refs)
	running := &b.actors.firing.meter.running
	running.Add(int64(len(b.order)))
	defer running.Add(-int64(len(b.order)))
	refs = refs[:0]
	for _, t := range b.order {
		refs = append(refs, t.ref.stored())
	}
	if err := b.run(b.readDue(refs)); err != nil {
		return err
	}
	for _, t := range b.order {
		t.late = t.overdue()
		err := b.load(t)
		if err == nil {
			err = t.wake()
		}
		if !alone(err) {
			return err
		}
		b.passOver(t.ref, err)
	}
	return b.write()
}

// alone says whether an error is about one actor only: it is quarantined, or for
// another process, which knows it or has its key.
func alone(err error) bool {
	var quarantined *QuarantinedError
	var version *VersionError
	var unknown *fault.NotFound
	var sealed *seal.SealedError
	return err == nil || errors.As(err, &sealed) || errors.As(err, &quarantined) || errors.As(err, &version) || errors.As(err, &unknown)
}

// types returns the types whose delays this process fires: those that were
// registered, and those that are data.
func (a *Actors) types(ctx context.Context) ([]string, error) {
	var names []string
	if err := a.read(ctx, a.rt.Store.MachineNames(func(name string) { names = append(names, name) })); err != nil {
		a.note(err) // a success would say nothing: it only reads
		return nil, fmt.Errorf("list machines: %w", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { // and their effects have handlers here from now on
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

// usable notes whether a type that is data can be used here, and reports the first
// time that it cannot.
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

// sweepEvery is how often keys that are kept no longer are removed; sweepLimit
// is how many at once.
const (
	sweepEvery = time.Hour
	sweepLimit = 5000
)

// sweep removes the keys of events that are older than the retention, now and
// then after work was done.
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
		return fmt.Errorf("forget keys: %w", err)
	}
	return nil
}

// nextTimer returns when a delay will be due; zero if there is none.
func (a *Actors) nextTimer(ctx context.Context) (time.Time, error) {
	now := a.rt.Clock.Now()
	wait, ok, err := delays{a}.Due(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("find next delay: %w", err)
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

// contended is how long to wait when others have what is due.
const contended = 100 * time.Millisecond
