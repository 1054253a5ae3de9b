package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/wake"
)

// DefaultInterval is the default interval at which a Poller checks for due work.
const DefaultInterval = 5 * time.Second

// PollerOptions configure a Poller. The zero value of every field is its
// default.
type PollerOptions struct {
	// Interval is the interval at which to check for due work. Default: DefaultInterval.
	Interval time.Duration
	// OnError receives the errors of runs. It may be called from several
	// goroutines. Default: log them.
	OnError func(error)
	// Clock is the source of the current time. Default: the system clock.
	Clock clock.Clock
}

// Poller runs a processor when work is due. It checks at its start and at regular
// intervals, and runs the processor when it is woken.
type Poller struct {
	runner   *runner
	clock    clock.Clock
	interval time.Duration

	mu          sync.Mutex
	started     bool
	unsubscribe func()
}

// NewPoller returns a Poller. It does nothing before Start.
func NewPoller(p Processor, options *PollerOptions) (*Poller, error) {
	var o PollerOptions
	if options != nil {
		o = *options
	}
	if p == nil {
		return nil, fault.Invalidf("processor", "must not be nil")
	}
	if o.Interval < 0 {
		return nil, fault.Invalidf("PollerOptions.Interval", "must not be negative, got %v", o.Interval)
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.OnError == nil {
		o.OnError = logError
	}
	if o.Clock == nil {
		o.Clock = clock.System
	}
	return &Poller{runner: newRunner(p, o.OnError), clock: o.Clock, interval: o.Interval, unsubscribe: func() {}}, nil
}

// Start polls immediately and then at the interval. A second call does nothing.
func (p *Poller) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started {
		return
	}
	p.started = true
	p.unsubscribe = subscribe(p.runner.processor, p.arrived)
	p.runner.do(p.poll)
}

// arrived wakes the poller for work that is due now. Polling finds work that is due
// later. If only an unknown commit is reported, the poller reads the next due time first:
// a claim takes locks, and most commits of other processes concern other work.
func (p *Poller) arrived(due time.Time) {
	if due.Equal(wake.Unknown) {
		p.runner.look(func(ctx context.Context) {
			if p.due(ctx) {
				p.Wake()
			}
		})
		return
	}
	if !due.After(p.clock.Now()) {
		p.Wake()
	}
}

func (p *Poller) poll(ctx context.Context) {
	for ctx.Err() == nil {
		if p.due(ctx) {
			p.Wake()
		}
		timer := p.clock.NewTimer(p.interval)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// due reports whether work is due. It returns false after an error; the next poll repeats
// the check.
func (p *Poller) due(ctx context.Context) bool {
	at, err := nextWakeAt(ctx, p.runner.processor)
	if ctx.Err() != nil {
		return false
	}
	p.runner.report(err)
	return !at.IsZero() && !at.After(p.clock.Now())
}

// Wake runs the processor now. Any number of calls while a run is in flight lead to
// exactly one more run. The returned channel is closed when a run that started after the
// call has finished. The channel may be ignored.
func (p *Poller) Wake() <-chan struct{} { return p.runner.wake() }

// Stop stops polling and waits for running work, at most until ctx is done. Work that is
// still running then can be claimed by other processes when its lease expires. A stopped
// Poller cannot be started again.
func (p *Poller) Stop(ctx context.Context) error {
	p.mu.Lock()
	p.started = true
	unsubscribe := p.unsubscribe
	p.mu.Unlock()
	unsubscribe()
	return p.runner.stop(ctx)
}
