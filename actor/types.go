package actor

import (
	"maps"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/statechart"
)

// DefaultLogRetention is how many entries of an actor's log are kept at least,
// unless its type says otherwise.
const DefaultLogRetention = 1000

// TypeOptions configure a type of actors. The zero value of every field is its
// default.
type TypeOptions struct {
	// Version is that of the machine. Raise it when the document changes in a
	// way that matters to actors that live. A process leaves actors of a higher
	// version to others. Default: 1.
	Version int64
	// Registry holds the guards, actions, delays and child machines that the
	// document names. Default: none.
	Registry *statechart.Registry
	// Effects and Invocations handle the actions and the invoked actors that happen
	// outside. Default: those of Options.
	Effects     map[string]Effect
	Invocations map[string]Invocation
	// Machine configures the parser and the limits of the machine. Default: the
	// strict zero value, with the limits of Options.Limits.
	Machine statechart.Options
	// Events are the events that callers of a kind may send, with * at the end
	// for all that begin so. Others are a *fault.Restricted. A kind that is not
	// a key may send all. Default: all may.
	Events map[CallerKind][]string
	// Check looks at an event of a client or a service before it is stored;
	// its error is returned to the sender. Default: none.
	Check func(Caller, statechart.Event) error
	// MaxEvent is the largest event and input in bytes. Default: 1 MiB.
	MaxEvent int
	// Retry is the policy of effects and invocations that have none.
	// Default: DefaultRetry.
	Retry retry.Policy
	// DisableTimers says that delays are not stored: they never fire.
	DisableTimers bool
	// SystemEvents says that actors are sent INITIALIZE, RESUME and MIGRATE.
	SystemEvents bool
	// LogRetention is how many entries of an actor's log are kept at least,
	// and at most twice as many. Negative: all. Default: DefaultLogRetention.
	LogRetention int
	// Migrate turns the snapshot of an actor of an earlier version into one of
	// this version. Default: it is taken as it is. One that does not suit the
	// machine quarantines the actor.
	Migrate func(from int64, snapshot []byte) ([]byte, error)
	// MigrateTimers decides about the pending delays of an actor that is migrated.
	// Default: KeepTimers.
	MigrateTimers TimerPolicy
}

// TimerPolicy decides about the pending delays of an actor that is migrated. Under
// each policy, every delay that the new machine has for the active states is pending
// exactly once afterwards, and no delay that the new machine does not have.
type TimerPolicy = statechart.TimerPolicy

// The policies.
const (
	// KeepTimers keeps the due times of delays that both versions have. A delay of
	// another length counts from the time at which its state was entered; if the
	// earlier version had no delay for the state, from the migration. Events that
	// actions have delayed stay.
	KeepTimers = statechart.KeepTimers
	// RestartTimers lets all delays start again, also those of events that actions
	// have delayed.
	RestartTimers = statechart.RestartTimers
	// DropTimers lets the delays of the active states start again, and removes events
	// that actions have delayed.
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
	data     bool // it comes from the database
}

// Register makes a type known to this process: an XState machine as JSON (a
// statechart.Def marshals to one) with the functions that it names. What is
// wrong with the document is returned as statechart.Problems.
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
		return fault.Invalidf("actor type "+name, "is registered already")
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
		return fault.Invalidf("TypeOptions.Version", "is %d; at least 1 is needed", o.Version)
	case o.MaxEvent < 1 || o.MaxEvent > statechart.MaxEvent:
		return fault.Invalidf("TypeOptions.MaxEvent", "is %d; 1 byte to 1 MiB are possible", o.MaxEvent)
	case o.MigrateTimers != KeepTimers && o.MigrateTimers != RestartTimers && o.MigrateTimers != DropTimers:
		return fault.Invalidf("TypeOptions.MigrateTimers", "is %q", o.MigrateTimers)
	}
	for c := range o.Events {
		if c != Client && c != Service {
			return fault.Invalidf("TypeOptions.Events", "has the kind %q; client and service are possible", c)
		}
	}
	return o.Retry.Validate()
}

// checkHandlers completes the handlers with defaults and refuses what cannot be
// obeyed.
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
		return fault.Invalidf(field, "of type %s has no function", k.name)
	}
	if policy.IsZero() {
		*policy = k.options.Retry
	}
	edge.Default(timeout, 5*time.Minute)
	if *timeout < 0 {
		return fault.Invalidf(field, "has a negative timeout")
	}
	return policy.Validate()
}

// registry returns what the document may name.
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
