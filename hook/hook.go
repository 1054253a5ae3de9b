// Package hook runs handlers after a unit of work commits: at a given time, with retries,
// at least once, even if a process crashes.
//
// A hook is triggered inside a unit of work and commits or rolls back with the unit. Its
// handler runs after the commit, outside any transaction, in any process that defines it:
//
//	hooks, err := hook.New(eng, "shop", nil)
//	receipt, err := hook.Define(hooks, "send-receipt", sendReceipt, nil)
//	…
//	err = eng.Update(ctx, func(tx *perdure.Tx) error {
//		id, _ := tx.Create(Orders, order)
//		_, err := receipt.TriggerIn(tx, Receipt{Order: id}, nil)
//		return err
//	})
//
// A dispatcher runs due hooks in every process that defines their handler; see package
// dispatch:
//
//	d, err := dispatch.NewPoller(hooks, nil)
//	d.Start()
//	defer d.Stop(ctx)
//
// Handlers must be idempotent, because a handler may run more than once for the same
// hook: a process can crash after the side effect of a handler and before its outcome is
// committed. Info.Key is the same for every attempt. Pass it to external systems as the
// idempotency key.
package hook

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/effect"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/retry"
)

// DefaultRetry is the retry policy of hooks that are triggered without a policy: 20
// attempts within about two days.
var DefaultRetry = retry.Default

// Options configure Hooks. The zero value of every field is its default.
type Options struct {
	// Concurrency is the maximum number of handlers that run concurrently in this
	// process. Default: 16.
	Concurrency int
	// Lease is the time for which a claim of a hook is valid without a heartbeat.
	// Handlers may run longer: heartbeats renew the lease while they run. After a crash,
	// the hook is run again when the lease has expired. Minimum: 1 second. Default: 30
	// seconds.
	Lease time.Duration
	// MaxCrashes is the number of crashes after which a hook is quarantined. Default: 5.
	MaxCrashes int
	// Retry is the retry policy of hooks that are triggered without a policy. Default:
	// DefaultRetry.
	Retry retry.Policy
	// Timeout is the time limit of handlers whose HandlerOptions set none. Default: 5
	// minutes.
	Timeout time.Duration
	// Retention is the time for which done and cancelled hooks are kept. Negative: no
	// limit. Default: 24 hours.
	Retention time.Duration
	// DeadRetention is the time for which dead letters are kept: failed and quarantined
	// hooks. Negative: no limit. Default: 30 days.
	DeadRetention time.Duration
	// MaxPayload is the largest payload in bytes. Default: 1 MiB.
	MaxPayload int
	// OnError receives background errors, of heartbeats and of committing outcomes.
	// Default: log them.
	OnError func(error)
	// OnCrash is called for every crash of a hook. Default: log it.
	OnCrash func(perdure.Crash)
	// Random returns numbers in [0, 1) for the jitter of retries. Default:
	// math/rand/v2.Float64.
	Random func() float64
}

// Hooks is a namespace of hooks, with the handlers that this process defines for it. It
// is a dispatch.Processor.
type Hooks struct {
	// Admin lists and manages the hooks of all namespaces.
	*Admin

	rt        *host.Runtime
	eng       *perdure.Engine
	namespace string
	options   Options
	runner    *effect.Runner
}

// New returns the hooks of a namespace. Define its handlers before a dispatcher is
// started. A process that only triggers hooks needs neither handlers nor a dispatcher.
func New(eng *perdure.Engine, namespace string, options *Options) (*Hooks, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "must not be nil")
	}
	if err := edge.Name("namespace", namespace); err != nil {
		return nil, err
	}
	o := options.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	rt := host.Of(eng)
	h := &Hooks{Admin: &Admin{eng: eng, rt: rt}, rt: rt, eng: eng, namespace: namespace, options: o}
	h.runner = effect.New(eng, effect.Options{
		Kind: "hook", Namespace: namespace, Topic: h.topic(), Concurrency: o.Concurrency, Lease: o.Lease, MaxCrashes: o.MaxCrashes,
		Retention: o.Retention, DeadRetention: o.DeadRetention, OnError: o.OnError, OnCrash: h.crashed, Random: o.Random,
	})
	return h, nil
}

// Namespace implements dispatch.Processor.
func (h *Hooks) Namespace() string { return h.namespace }

// Process runs all due hooks that have a handler in this process. It returns the number
// of hooks that it ran, successful or not.
func (h *Hooks) Process(ctx context.Context) (int, error) { return h.runner.Process(ctx) }

// Start starts due hooks and does not wait for their handlers.
func (h *Hooks) Start(ctx context.Context) (int, error) { return h.runner.Start(ctx) }

// Drain stops claiming and waits for running handlers, at most until ctx is done.
func (h *Hooks) Drain(ctx context.Context) error { return h.runner.Drain(ctx) }

// NextWakeAt returns the earliest time at which a hook with a handler in this process
// will be due, or the lease of a crashed process will expire. It returns the zero time if
// there is none. While Options.Concurrency handlers run, the time is at least slightly
// after now.
func (h *Hooks) NextWakeAt(ctx context.Context) (time.Time, error) { return h.runner.NextWakeAt(ctx) }

// Subscribe calls fn when hooks of the namespace are triggered or will be retried, and
// when a handler returns while more hooks are waiting.
func (h *Hooks) Subscribe(fn func(due time.Time)) (cancel func()) { return h.runner.Subscribe(fn) }

func (h *Hooks) topic() string { return "hook/" + h.namespace }

// crashed passes the crash of a hook to OnCrash.
func (h *Hooks) crashed(c effect.Crash) {
	h.options.OnCrash(perdure.Crash{Kind: "hook", ID: c.ID, Name: c.Name, Crashes: c.Crashes, Quarantined: c.Quarantined})
}

func (o *Options) withDefaults() Options {
	var options Options
	if o != nil {
		options = *o
	}
	edge.Default(&options.Concurrency, 16)
	edge.Default(&options.Lease, 30*time.Second)
	edge.Default(&options.MaxCrashes, 5)
	edge.Default(&options.Timeout, 5*time.Minute)
	edge.Default(&options.Retention, 24*time.Hour)
	edge.Default(&options.DeadRetention, core.DeadRetention)
	edge.Default(&options.MaxPayload, edge.DefaultMaxJSON)
	if options.Retry.IsZero() {
		options.Retry = DefaultRetry
	}
	if options.OnError == nil {
		options.OnError = func(err error) { slog.Error("hook processing failed", "error", err) }
	}
	if options.OnCrash == nil {
		options.OnCrash = logCrash
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	return options
}

func logCrash(c perdure.Crash) {
	slog.Warn("hook lease expired", "id", c.ID, "name", c.Name, "crashes", c.Crashes, "quarantined", c.Quarantined)
}

func (o Options) validate() error {
	switch {
	case o.Concurrency < 1 || o.Concurrency > 10_000:
		return fault.Invalidf("Options.Concurrency", "must be between 1 and 10,000, got %d", o.Concurrency)
	case o.Lease < time.Second:
		return fault.Invalidf("Options.Lease", "must be at least 1s, got %v", o.Lease)
	case o.MaxCrashes < 1:
		return fault.Invalidf("Options.MaxCrashes", "must be at least 1, got %d", o.MaxCrashes)
	case o.Timeout < 0:
		return fault.Invalidf("Options.Timeout", "must not be negative, got %v", o.Timeout)
	case o.MaxPayload < 1 || o.MaxPayload > 64<<20:
		return fault.Invalidf("Options.MaxPayload", "must be between 1 byte and 64 MiB, got %d", o.MaxPayload)
	}
	return o.Retry.Validate()
}
