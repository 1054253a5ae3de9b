// Package fsm runs durable state machines: long-running work in steps, with signals,
// children and timers. An instance survives crashes of its process.
//
// The guarantee: the new state is committed before execution proceeds. After a crash
// before the commit, the whole step runs again.
//
//	var Order = fsm.Define("order", 1, nil,
//		fsm.Step("charge", charge, nil),
//		fsm.Step("ship", ship, nil),
//	)
//
//	func charge(ctx context.Context, run *fsm.Run[OrderState]) (fsm.Outcome, error) {
//		if err := pay(ctx, run.ID, run.State.Amount); err != nil {
//			return fsm.Outcome{}, err // retried with backoff
//		}
//		run.State.Paid = true
//		return run.Next("ship"), nil
//	}
//
//	machines, err := fsm.New(eng, nil)
//	err = machines.Register(Order)
//	d, err := dispatch.NewWaker(machines, nil)
//	d.Start()
//	…
//	started, err := fsm.Start(ctx, eng, Order, OrderState{Amount: 42}, nil)
//
// It runs on SQLite, PostgreSQL, MySQL and MariaDB.
package fsm

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/work"
)

// DefaultQueue is the queue of definitions that set none.
const DefaultQueue = "default"

// Options configure Machines. The zero value of every field is its default.
type Options struct {
	// Queues are the queues that this process serves, each with the maximum number of
	// instances that run concurrently. Default: DefaultQueue with 100.
	Queues map[string]int
	// Room returns how many more instances of a queue may be claimed now, within the concurrency
	// of the queue, while running instances are running. Machines.Wake reports that it has grown.
	// It must return immediately. Default: there is no other limit.
	Room func(queue string, running int) int
	// Lease is the time for which a claim is valid without a heartbeat. Steps may run
	// longer: the lease is renewed while they run. At least one second. Default: 30
	// seconds.
	Lease time.Duration
	// MaxCrashes is the number of consecutive crashes after which an instance is
	// quarantined. After two crashes an instance is a suspect. Suspects run in batches
	// whose size halves with every further crash. Only an instance that crashes alone is
	// quarantined. Default: 5.
	MaxCrashes int
	// Timeout is the time limit for steps that set none. Default: 5 minutes.
	Timeout time.Duration
	// InlineSteps is the maximum number of steps of one instance that a process runs in a
	// row before it runs other instances. Default: 100.
	InlineSteps int
	// Retention is the time for which done, stopped and cancelled instances are kept.
	// Negative: no limit. Default: 24 hours.
	Retention time.Duration
	// DeadRetention is the time for which dead letters are kept: failed and quarantined
	// instances. Negative: no limit. Default: 30 days.
	DeadRetention time.Duration
	// MaxState is the largest state, result or payload in bytes. It also limits
	// instances, signals and schedules that are recorded through the same engine outside
	// steps. Their limit is the largest MaxState of the engine's Machines, or the default
	// if there are none. Default: 1 MiB.
	MaxState int
	// OnError receives background errors. Default: log them.
	OnError func(error)
	// OnCrash is called for every crash of an instance. Default: log it.
	OnCrash func(perdure.Crash)
	// Random returns numbers in [0, 1) for the jitter of retries.
	// Default: a random source.
	Random func() float64
}

// Machines runs the instances of the definitions that are registered in this process. It
// is a dispatch.Processor.
type Machines struct {
	// Admin lists and manages all instances of the database.
	*Admin

	options Options
	runner  *work.Runner
	ends    *ends

	mu       sync.RWMutex
	known    map[definition]machine
	shares   shares
	recorded map[definition]bool
	// functional is true if a durable function was registered.
	functional bool

	policies policyBook
}

type definition struct {
	name    string
	version int
}

// New returns the Machines of an engine. Register definitions before a dispatcher is
// started. A process that only starts instances needs none.
func New(eng *perdure.Engine, options *Options) (*Machines, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "must not be nil")
	}
	o := options.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	m := newMachines(eng, o)
	m.rt.Bounds.AllowState(o.MaxState)
	for name, concurrency := range o.Queues {
		m.serve(name, concurrency)
	}
	return m, nil
}

// newMachines returns Machines that serve no queue.
func newMachines(eng *perdure.Engine, o Options) *Machines {
	m := &Machines{Admin: &Admin{eng: eng, rt: host.Of(eng)}, options: o, known: map[definition]machine{}, recorded: map[definition]bool{}, policies: policyBook{read: map[definition]recordedPolicies{}}}
	m.machines = m
	m.runner = work.New(eng, m.kind(), work.Options{
		Lease: o.Lease, MaxCrashes: o.MaxCrashes, SweepEvery: min(max(o.Retention/10, time.Minute), time.Hour), OnError: o.OnError, Random: o.Random,
		OnCrash: func(c work.Crash) {
			o.OnCrash(perdure.Crash{Kind: "instance", ID: c.ID, Crashes: c.Crashes, Quarantined: c.Quarantined})
		},
	})
	m.ends = newEnds(m)
	return m
}

// Definer is a Definition with a state of any type.
type Definer interface {
	Name() string
	Version() int
}

// Register registers definitions with this process: machines, and functions of package flow.
func (m *Machines) Register(definitions ...Definer) error {
	return m.register(definitions, false)
}

// RegisterStored is like Register, but the caller maintains the rows that record that the
// definitions are served.
func (m *Machines) RegisterStored(definitions ...Definer) error {
	return m.register(definitions, true)
}

func (m *Machines) register(definitions []Definer, recorded bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.countShares()
	for _, d := range definitions {
		if isNil(d) {
			return fault.Invalidf("definition", "must not be nil")
		}
		machine, err := machineOf(d)
		if err != nil {
			return err
		}
		if err := machine.validate(); err != nil {
			return err
		}
		key := definition{d.Name(), d.Version()}
		if _, exists := m.known[key]; exists {
			return fault.Invalidf("fsm "+d.Name(), "already has version %d registered", d.Version())
		}
		m.known[key] = machine
		if f, ok := machine.(*function); ok {
			m.functional = true
			if err := m.continues(f); err != nil {
				return err
			}
		}
		if recorded {
			m.recorded[key] = true
		}
	}
	return nil
}

// isNil reports whether d is nil or a nil pointer.
func isNil(d Definer) bool {
	v := reflect.ValueOf(d)
	return d == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

// ReplaceStored replaces a definition that RegisterStored has registered. Running steps
// are not interrupted. The next step of every instance is a step of the new definition.
func (m *Machines) ReplaceStored(d Definer) error {
	if isNil(d) {
		return fault.Invalidf("definition", "must not be nil")
	}
	machine, err := machineOf(d)
	if err != nil {
		return err
	}
	if err := machine.validate(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := definition{d.Name(), d.Version()}
	m.known[key], m.recorded[key] = machine, true
	m.countShares()
	return nil
}

// Unregister removes a definition from this process. Running steps are not interrupted.
// Instances that become due wait for a process that has the definition.
func (m *Machines) Unregister(name string, version int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, definition{name, version})
	delete(m.recorded, definition{name, version})
	m.countShares()
}

func (m *Machines) lookup(name string, version int) machine {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.known[definition{name, version}]
}

func (o *Options) withDefaults() Options {
	var options Options
	if o != nil {
		options = *o
	}
	if len(options.Queues) == 0 {
		options.Queues = map[string]int{DefaultQueue: DefaultConcurrency}
	}
	edge.Default(&options.Lease, 30*time.Second)
	edge.Default(&options.MaxCrashes, 5)
	edge.Default(&options.Timeout, 5*time.Minute)
	edge.Default(&options.InlineSteps, 100)
	edge.Default(&options.Retention, 24*time.Hour)
	edge.Default(&options.DeadRetention, core.DeadRetention)
	edge.Default(&options.MaxState, edge.DefaultMaxJSON)
	if options.OnError == nil {
		options.OnError = func(err error) { slog.Error("instance processing failed", "error", err) }
	}
	if options.OnCrash == nil {
		options.OnCrash = func(c perdure.Crash) {
			slog.Warn("instance lease expired", "id", c.ID, "crashes", c.Crashes, "quarantined", c.Quarantined)
		}
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	return options
}

func (o Options) validate() error {
	for name, concurrency := range o.Queues {
		if err := edge.Name("queue", name); err != nil {
			return err
		}
		if err := validConcurrency(name, concurrency); err != nil {
			return err
		}
	}
	switch {
	case o.Lease < time.Second:
		return fault.Invalidf("Options.Lease", "must be at least 1s, got %v", o.Lease)
	case o.MaxCrashes < 1:
		return fault.Invalidf("Options.MaxCrashes", "must be at least 1, got %d", o.MaxCrashes)
	case o.Timeout < 0:
		return fault.Invalidf("Options.Timeout", "must not be negative, got %v", o.Timeout)
	case o.InlineSteps < 1:
		return fault.Invalidf("Options.InlineSteps", "must be at least 1, got %d", o.InlineSteps)
	case o.MaxState < 2 || o.MaxState > 64<<20:
		return fault.Invalidf("Options.MaxState", "must be between 2 bytes and 64 MiB, got %d", o.MaxState)
	}
	return nil
}

func validConcurrency(queue string, n int) error {
	if n < 1 || n > 100_000 {
		return fault.Invalidf("queue "+queue, "must have a concurrency between 1 and 100,000, got %d", n)
	}
	return nil
}

func topic(lane string) string { return "fsm/" + store.QueueOf(lane) }

// stopped reports whether ctx was cancelled because the claim was lost or the worker is
// stopping. The error of the step is then not a failure of the step.
func stopped(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, core.ErrLost) || errors.Is(cause, core.ErrStopping)
}
