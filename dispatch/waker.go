package dispatch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/wake"
)

// WakeHost keeps one alarm. Whoever keeps it calls Waker.Fire when it goes
// off, which deletes it. A host may be anything that can remember one time: the
// in-process timer that NewWaker uses by default, a cloud scheduler, a cell in
// a database. Its methods may be called from several goroutines.
type WakeHost interface {
	// Set sets the alarm, in place of the one that is set.
	Set(ctx context.Context, at time.Time) error
	// Get returns the alarm that is set, or the zero time.
	Get(ctx context.Context) (time.Time, error)
	// Delete removes the alarm. It is no error if there is none.
	Delete(ctx context.Context) error
}

const (
	// DefaultMaxSleep is the longest time that a Waker on the in-process timer
	// sleeps. It is shorter than the default lease (30 s), so that the expiry of
	// a claim of another process is known before it comes.
	DefaultMaxSleep = 15 * time.Second
	// retryAfter is how long to wait after a run failed, or the next due time
	// could not be learnt or set.
	retryAfter = time.Second
	// breath is how long to wait after a run found nothing although something
	// is due: another process is taking it.
	breath = 5 * time.Millisecond
)

// WakerOptions configure a Waker. The zero value of every field is its
// default.
type WakerOptions struct {
	// Host keeps the alarm. Default: a timer in this process.
	Host WakeHost
	// MaxSleep bounds the time between two reads of the next due time. It bounds
	// the delay of work that another process has committed, on databases that
	// carry no wake-ups between processes, and of the takeover of the work of a
	// process that died. Negative: sleep without bound, for work that only this
	// process touches. Default: DefaultMaxSleep with the default host, without
	// bound with another.
	MaxSleep time.Duration
	// OnError receives the errors of runs and of the host. It may be called
	// from several goroutines. Default: log them.
	OnError func(error)
	// Clock tells the time. Default: the machine's.
	Clock clock.Clock
}

// Waker runs a processor exactly when something is due, and makes no queries
// in between.
type Waker struct {
	runner   *runner
	host     WakeHost
	clock    clock.Clock
	maxSleep time.Duration
	timer    *timerHost // the host, if it is our own

	setting sync.Mutex // one change of the host's alarm at a time

	mu          sync.Mutex
	started     bool
	set         time.Time // the alarm that we have set
	retrying    bool      // a schedule that failed will be tried again
	unsubscribe func()
}

// NewWaker returns a waker that does nothing before Start.
func NewWaker(p Processor, options *WakerOptions) (*Waker, error) {
	var o WakerOptions
	if options != nil {
		o = *options
	}
	if p == nil {
		return nil, fault.Invalidf("processor", "is nil")
	}
	if o.OnError == nil {
		o.OnError = logError
	}
	if o.Clock == nil {
		o.Clock = clock.System
	}
	a := &Waker{runner: newRunner(p, o.OnError), host: o.Host, clock: o.Clock, maxSleep: max(o.MaxSleep, 0), unsubscribe: func() {}}
	a.runner.after = a.ran
	if a.host == nil {
		a.timer = newTimerHost(o.Clock, func() { a.Fire() })
		a.host = a.timer
		if o.MaxSleep == 0 {
			a.maxSleep = DefaultMaxSleep
		}
	}
	return a, nil
}

// Start sets the alarm for the next due time, or for now if that has passed. A
// second Start changes nothing.
func (a *Waker) Start() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.started {
		return
	}
	a.started = true
	a.unsubscribe = subscribe(a.runner.processor, a.arrived)
	a.runner.do(func(ctx context.Context) { a.schedule(ctx, 0) })
}

// Fire runs the processor and then sets the next alarm. The keeper of the
// alarm calls it when the alarm goes off.
func (a *Waker) Fire() <-chan struct{} {
	a.note(time.Time{})
	return a.runner.wake()
}

// Wake runs the processor now. Any number of calls while a run is in flight
// lead to exactly one more run. The returned channel is closed when a run that
// began after the call has ended; it may be ignored.
func (a *Waker) Wake() <-chan struct{} { return a.runner.wake() }

// arrived runs the processor for work that is due, and otherwise sets the alarm
// for it. If only an unknown commit is reported, it reads the next due time first:
// a claim takes locks, and most commits of others concern other work.
func (a *Waker) arrived(due time.Time) {
	if due.Equal(wake.Unknown) {
		a.runner.look(func(ctx context.Context) { a.schedule(ctx, 0) })
		return
	}
	if !due.After(a.clock.Now()) {
		a.Wake()
		return
	}
	a.runner.do(func(ctx context.Context) { a.failed(ctx, a.advance(ctx, due)) })
}

// ran follows a run.
func (a *Waker) ran(ctx context.Context, n int, err error) {
	switch {
	case err != nil:
		a.schedule(ctx, retryAfter)
	case n == 0:
		a.schedule(ctx, breath)
	default:
		a.schedule(ctx, 0)
	}
}

// schedule sets the alarm for the next due time; if that has passed, for a
// pause from now. An alarm that is not set must not be the end: what cannot be
// learnt or set is tried again soon.
func (a *Waker) schedule(ctx context.Context, pause time.Duration) {
	before := a.noted()
	at, err := nextWakeAt(ctx, a.runner.processor)
	if ctx.Err() != nil {
		return
	}
	now := a.clock.Now()
	if err != nil {
		a.runner.report(fmt.Errorf("learn the next due time: %w", err))
		at = earlier(at, now.Add(retryAfter))
	}
	if a.maxSleep > 0 {
		at = earlier(at, now.Add(a.maxSleep))
	}
	if !at.IsZero() && !at.After(now) {
		at = now.Add(pause)
		a.meanwhile(pause)
	}
	a.failed(ctx, a.arrange(ctx, at, before))
}

// meanwhile runs the processor after a pause if the clock stands, as that of perdure
// dev can: what is due is not to wait until somebody lets the time go on.
func (a *Waker) meanwhile(pause time.Duration) {
	if c, ok := a.clock.(interface{ Speed() float64 }); ok && c.Speed() == 0 && pause > 0 {
		a.runner.later(clock.System, pause, func(context.Context) { a.Wake() })
	}
}

// failed reports an error of the host, if there is one, and sees to it that the
// alarm is set later: once, for however many failures.
func (a *Waker) failed(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	a.runner.report(fmt.Errorf("set alarm: %w", err))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.retrying {
		return
	}
	a.retrying = true
	a.runner.later(a.clock, retryAfter, func(ctx context.Context) {
		a.mu.Lock()
		a.retrying = false
		a.mu.Unlock()
		a.schedule(ctx, 0)
	})
}

// arrange makes the host's alarm the given one. It clears only an alarm of its
// own that was set before the due time was asked for, and never postpones an
// earlier one.
func (a *Waker) arrange(ctx context.Context, at, before time.Time) error {
	if !at.IsZero() {
		return a.advance(ctx, at)
	}
	return a.change(ctx, func(existing time.Time) error {
		if existing.IsZero() || !existing.Equal(before) || !before.Equal(a.noted()) {
			return nil
		}
		return a.host.Delete(ctx)
	})
}

// advance sets the alarm unless an earlier one is set.
func (a *Waker) advance(ctx context.Context, at time.Time) error {
	return a.change(ctx, func(existing time.Time) error {
		if !existing.IsZero() && !existing.After(at) {
			return nil
		}
		a.note(at) // before it can go off
		return a.host.Set(ctx, at)
	})
}

// change calls fn with the alarm that is set. A host that panics has failed.
func (a *Waker) change(ctx context.Context, fn func(existing time.Time) error) error {
	a.setting.Lock()
	defer a.setting.Unlock()
	_, err := guard(func() (int, error) {
		existing, err := a.host.Get(ctx)
		if err != nil {
			return 0, err
		}
		return 0, fn(existing)
	})
	return err
}

// note remembers the alarm that we have set.
func (a *Waker) note(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set = at
}

func (a *Waker) noted() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.set
}

// Stop ends the alarm and waits for what was begun, at most until ctx is done;
// what has not ended by then can be claimed by others when its lease expires.
// An alarm that was stopped cannot be started again. The alarm of a host other
// than the default stays set: it belongs to the next process.
func (a *Waker) Stop(ctx context.Context) error {
	a.mu.Lock()
	a.started = true
	unsubscribe := a.unsubscribe
	a.mu.Unlock()
	unsubscribe()
	if a.timer != nil {
		a.timer.stop()
	}
	return a.runner.stop(ctx)
}
