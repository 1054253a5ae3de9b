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

// WakeHost stores one wake-up time. At that time, the host deletes it and calls
// Waker.Fire. A host can be anything that stores one time: the in-process timer that
// NewWaker uses by default, a cloud scheduler, a value in a database. Its methods may be
// called from several goroutines.
type WakeHost interface {
	// Set sets the wake-up time, replacing the existing one.
	Set(ctx context.Context, at time.Time) error
	// Get returns the wake-up time, or the zero time if none is set.
	Get(ctx context.Context) (time.Time, error)
	// Delete removes the wake-up time. It is not an error if none is set.
	Delete(ctx context.Context) error
}

const (
	// DefaultMaxSleep is the default of MaxSleep with the in-process timer. It is shorter
	// than the default lease (30 s), so that the Waker reads the expiry of another
	// process's lease before it happens.
	DefaultMaxSleep = 15 * time.Second
	// retryAfter is the delay after a run failed, or after the next due time could not be
	// read or the wake-up time not be set.
	retryAfter = time.Second
	// contentionDelay is the delay after a run found no work although work is due: another process
	// is claiming it.
	contentionDelay = 5 * time.Millisecond
)

// WakerOptions configure a Waker. The zero value of every field is its
// default.
type WakerOptions struct {
	// Host stores the wake-up time. Default: a timer in this process.
	Host WakeHost
	// MaxSleep bounds the time between two reads of the next due time. So it bounds the
	// delay after which the work of a crashed process is claimed. On databases without
	// wake-ups between processes, it also bounds the delay of work that another process
	// has committed. Negative: no bound, for work that only this process uses. Default:
	// DefaultMaxSleep with the default host, no bound with another host.
	MaxSleep time.Duration
	// OnError receives the errors of runs and of the host. It may be called
	// from several goroutines. Default: log them.
	OnError func(error)
	// Clock is the source of the current time. Default: the system clock.
	Clock clock.Clock
}

// Waker runs a processor exactly when work is due. It makes no queries in between, except
// after wake-ups and after MaxSleep.
type Waker struct {
	runner   *runner
	host     WakeHost
	clock    clock.Clock
	maxSleep time.Duration
	timer    *timerHost // the host, if it is the default

	setting sync.Mutex // held while the wake-up time of the host is changed

	mu          sync.Mutex
	started     bool
	set         time.Time // the wake-up time that this Waker has set
	retrying    bool      // a failed schedule will be retried
	unsubscribe func()
}

// NewWaker returns a Waker. It does nothing before Start.
func NewWaker(p Processor, options *WakerOptions) (*Waker, error) {
	var o WakerOptions
	if options != nil {
		o = *options
	}
	if p == nil {
		return nil, fault.Invalidf("processor", "must not be nil")
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

// Start sets the wake-up time to the next due time, or to now if work is due. A second
// call does nothing.
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

// Fire runs the processor and then sets the next wake-up time. The WakeHost calls it at
// the wake-up time.
func (a *Waker) Fire() <-chan struct{} {
	a.note(time.Time{})
	return a.runner.wake()
}

// Wake runs the processor now. Any number of calls while a run is in flight lead to
// exactly one more run. The returned channel is closed when a run that started after the
// call has finished. The channel may be ignored.
func (a *Waker) Wake() <-chan struct{} { return a.runner.wake() }

// arrived runs the processor for work that is due now. For work that is due later, it
// sets the wake-up time. If only an unknown commit is reported, it reads the next due
// time first: a claim takes locks, and most commits of other processes concern other
// work.
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

// ran is called after each run. It sets the next wake-up time.
func (a *Waker) ran(ctx context.Context, n int, err error) {
	switch {
	case err != nil:
		a.schedule(ctx, retryAfter)
	case n == 0:
		a.schedule(ctx, contentionDelay)
	default:
		a.schedule(ctx, 0)
	}
}

// schedule sets the wake-up time to the next due time, or, if that has passed, to the
// time after pause. The Waker must never be left without a wake-up time: if the due time
// cannot be read or the wake-up time cannot be set, schedule retries soon.
func (a *Waker) schedule(ctx context.Context, pause time.Duration) {
	before := a.noted()
	at, err := nextWakeAt(ctx, a.runner.processor)
	if ctx.Err() != nil {
		return
	}
	now := a.clock.Now()
	if err != nil {
		a.runner.report(fmt.Errorf("read next due time: %w", err))
		at = earlier(at, now.Add(retryAfter))
	}
	if a.maxSleep > 0 {
		at = earlier(at, now.Add(a.maxSleep))
	}
	if !at.IsZero() && !at.After(now) {
		at = now.Add(pause)
		a.wakeIfClockStopped(pause)
	}
	a.failed(ctx, a.setHostTime(ctx, at, before))
}

// wakeIfClockStopped runs the processor after a pause, in real time, if the clock is stopped. The
// clock of perdure dev can be stopped; due work must not wait until it is started again.
func (a *Waker) wakeIfClockStopped(pause time.Duration) {
	if c, ok := a.clock.(interface{ Speed() float64 }); ok && c.Speed() == 0 && pause > 0 {
		a.runner.later(clock.System, pause, func(context.Context) { a.Wake() })
	}
}

// failed reports an error of the host, if there is one, and retries schedule after
// retryAfter. Several failures lead to only one retry.
func (a *Waker) failed(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	a.runner.report(fmt.Errorf("set host alarm: %w", err))
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

// setHostTime sets the wake-up time of the host, or deletes it if at is zero. It deletes only
// a wake-up time that this Waker had set before it read the due time. It never replaces
// an earlier wake-up time by a later one.
func (a *Waker) setHostTime(ctx context.Context, at, before time.Time) error {
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

// advance sets the wake-up time unless it is already set to the same or an earlier time.
func (a *Waker) advance(ctx context.Context, at time.Time) error {
	return a.change(ctx, func(existing time.Time) error {
		if !existing.IsZero() && !existing.After(at) {
			return nil
		}
		a.note(at) // before the host can call Fire
		return a.host.Set(ctx, at)
	})
}

// change calls fn with the existing wake-up time. A panic of the host becomes an error.
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

// note stores the wake-up time that this Waker has set.
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

// Stop stops the Waker and waits for running work, at most until ctx is done. Work that
// is still running then can be claimed by other processes when its lease expires. A
// stopped Waker cannot be started again. With a host other than the default, the wake-up
// time stays set, for the next process.
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
