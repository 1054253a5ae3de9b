package actor

import (
	"maps"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/statechart"
)

// DefaultLogRetention is the default of TypeOptions.LogRetention.
const DefaultLogRetention = 1000

// TypeOptions configure a type of actors. The zero value of every field is its
// default.
type TypeOptions struct {
	// Version is the version of the machine. Raise it when the document changes in a way that
	// matters to existing actors. A process leaves actors of a higher version to other
	// processes. Default: 1.
	Version int64
	// Registry holds the guards, actions, delays and child machines that the document names.
	// Default: none.
	Registry *statechart.Registry
	// Effects and Invocations handle the actions and invoked actors outside the machine.
	// Default: the handlers of Options.
	Effects     map[string]Effect
	Invocations map[string]Invocation
	// Machine configures the parser and the limits of the machine. Default: the
	// strict zero value, with the limits of Options.Limits.
	Machine statechart.Options
	// Events lists the events that callers of a kind may send. A trailing * matches all events
	// with that prefix. Other events return a *fault.Restricted. Callers of a kind that is not
	// a key may send all events. Default: all events are allowed.
	Events map[CallerKind][]string
	// Check validates an event of a client or a service before it is stored. Its error is
	// returned to the sender. Default: none.
	Check func(Caller, statechart.Event) error
	// MaxEvent is the maximum size of events and inputs in bytes. Default: 1 MiB.
	MaxEvent int
	// Retry is the policy of effects and invocations that have none.
	// Default: DefaultRetry.
	Retry retry.Policy
	// DisableTimers disables the storage of timers: they never fire.
	DisableTimers bool
	// SystemEvents enables the events INITIALIZE, RESUME and MIGRATE.
	SystemEvents bool
	// LogRetention is the minimum number of log entries kept for an actor. At most twice as
	// many are kept. A negative value keeps all entries. Default: DefaultLogRetention.
	LogRetention int
	// Migrate converts the snapshot of an actor of an earlier version to this version. A
	// snapshot that does not match the machine quarantines the actor. Default: the snapshot is
	// used unchanged.
	Migrate func(from int64, snapshot []byte) ([]byte, error)
	// MigrateTimers is the policy for the pending timers of an actor that is migrated. Default:
	// KeepTimers.
	MigrateTimers TimerPolicy
}

// TimerPolicy decides about the pending timers of an actor that is migrated. Under each policy,
// afterwards every delay that the new machine has for the active states is pending exactly
// once. No delay that the new machine does not have is pending.
type TimerPolicy = statechart.TimerPolicy

// The policies.
const (
	// KeepTimers keeps the due times of timers that both versions have. If the length of a
	// delay differs, it counts from the time at which its state was entered. If the earlier
	// version had no delay for the state, it counts from the migration. Delayed events of
	// actions stay pending.
	KeepTimers = statechart.KeepTimers
	// RestartTimers restarts all timers, including the delayed events of actions.
	RestartTimers = statechart.RestartTimers
	// DropTimers restarts the timers of the active states and removes the delayed events of
	// actions.
	DropTimers = statechart.DropTimers
)

// kind is a version of a type.
type kind struct {
	name     string
	machine  *statechart.Machine
	document []byte
	options  TypeOptions
	effects  map[string]Effect
	tasks    map[string]Invocation
	data     bool // it is a stored statechart
}

// Register makes a type known to this process: an XState machine as JSON (a statechart.Def
// marshals to one) with the functions that it names. Errors of the document are returned as
// statechart.Problems.
func (a *Actors) Register(name string, document []byte, options *TypeOptions) error {
	var o TypeOptions
	if options != nil {
		o = *options
	}
	k, err := a.newKind(name, document, o)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, has := a.kinds[name]; has {
		return fault.Invalidf("actor type "+name, "is already registered")
	}
	a.kinds[name] = k
	a.handle(k)
	return nil
}

func (a *Actors) newKind(name string, document []byte, o TypeOptions) (*kind, error) {
	if err := edge.Name("actor type", name); err != nil {
		return nil, err
	}
	edge.Default(&o.Version, 1)
	edge.Default(&o.MaxEvent, edge.DefaultMaxJSON)
	edge.Default(&o.LogRetention, DefaultLogRetention)
	edge.Default(&o.MigrateTimers, KeepTimers)
	if o.Retry.IsZero() {
		o.Retry = DefaultRetry
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	k := &kind{name: name, document: document, options: o, effects: maps.Clone(a.options.Effects), tasks: maps.Clone(a.options.Invocations)}
	k.effects, k.tasks = merged(k.effects, o.Effects), merged(k.tasks, o.Invocations)
	if err := k.checkHandlers(); err != nil {
		return nil, err
	}
	parsing := a.options.Limits.over(o.Machine)
	machine, err := statechart.Parse(document, k.registry(), &parsing)
	if err != nil {
		return nil, err
	}
	k.machine = machine
	return k, nil
}

func merged[V any](to, from map[string]V) map[string]V {
	if to == nil {
		to = map[string]V{}
	}
	maps.Copy(to, from)
	return to
}

func (o TypeOptions) validate() error {
	switch {
	case o.Version < 1:
		return fault.Invalidf("TypeOptions.Version", "must be at least 1, got %d", o.Version)
	case o.MaxEvent < 1 || o.MaxEvent > statechart.MaxEvent:
		return fault.Invalidf("TypeOptions.MaxEvent", "must be between 1 byte and 1 MiB, got %d", o.MaxEvent)
	case o.MigrateTimers != KeepTimers && o.MigrateTimers != RestartTimers && o.MigrateTimers != DropTimers:
		return fault.Invalidf("TypeOptions.MigrateTimers", "must be keep, restart or drop, got %q", o.MigrateTimers)
	}
	for c := range o.Events {
		if c != Client && c != Service {
			return fault.Invalidf("TypeOptions.Events", "must be for clients or services, got %q", c)
		}
	}
	return o.Retry.Validate()
}

// checkHandlers applies the defaults of the handlers and rejects invalid handlers.
func (k *kind) checkHandlers() error {
	for name, e := range k.effects {
		if err := k.checkHandler("effect "+name, e.Run != nil, &e.Retry, &e.Timeout); err != nil {
			return err
		}
		k.effects[name] = e
	}
	for name, t := range k.tasks {
		if err := k.checkHandler("invocation "+name, t.Run != nil, &t.Retry, &t.Timeout); err != nil {
			return err
		}
		k.tasks[name] = t
	}
	return nil
}

func (k *kind) checkHandler(field string, runs bool, policy *retry.Policy, timeout *time.Duration) error {
	if !runs {
		return fault.Invalidf(field, "of type %s must have a function", k.name)
	}
	if policy.IsZero() {
		*policy = k.options.Retry
	}
	edge.Default(timeout, 5*time.Minute)
	if *timeout < 0 {
		return fault.Invalidf(field, "must not have a negative timeout, got %v", *timeout)
	}
	return policy.Validate()
}

// registry returns the functions that the document may name.
func (k *kind) registry() *statechart.Registry {
	reg := statechart.Registry{}
	if k.options.Registry != nil {
		reg = *k.options.Registry
	}
	actions, actors := map[string]statechart.Action{}, map[string]statechart.Actor{}
	for name := range k.effects {
		actions[name] = statechart.Effect{}
	}
	for name := range k.tasks {
		actors[name] = statechart.Promise{}
	}
	reg.Actions, reg.Actors = merged(actions, reg.Actions), merged(actors, reg.Actors)
	return &reg
}
