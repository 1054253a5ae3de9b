package statechart

import "fmt"

// A Registry holds the functions and actors that a document can only name. Its functions must
// be pure: equal arguments return equal results, without side effects.
type Registry struct {
	// Guards decide whether a transition is taken.
	Guards map[string]Guard
	// Actions change the context or are effects: [Assign], [Check], [Effect].
	Actions map[string]Action
	// Delays compute delays in milliseconds.
	Delays map[string]Delay
	// Actors can be invoked or spawned: [Promise], [Chart].
	Actors map[string]Actor
	// Open treats every unknown action as an effect and every unknown actor as an invocation.
	// Use it if their handlers are found by name later.
	Open bool
}

// Args are the inputs of a registered function. They must not be modified.
type Args struct {
	// Context is the actor's context.
	Context map[string]any
	// Event is the event that is being handled.
	Event Event
	// Params are the params of the guard or action, with $from and $expr
	// replaced.
	Params map[string]any
	// Path is the path of the actor in its tree, "" for the root.
	Path string
}

// A Guard reports whether a transition may be taken. An error fails the actor.
type Guard func(Args) (bool, error)

// A Delay returns a duration in milliseconds. It is called when the delay starts. An error
// fails the actor.
type Delay func(Args) (float64, error)

// Milliseconds returns a constant delay.
func Milliseconds(n int64) Delay {
	return func(Args) (float64, error) { return float64(n), nil }
}

// An Action is the registered action for a name in entry, exit or actions.
type Action interface{ isAction() }

// An Assign returns the changed keys of the context. An error fails the actor, and nothing
// changes.
type Assign func(Args) (map[string]any, error)

// A Check runs at the position of an effect. It can only fail the actor.
type Check func(Args) error

// An Effect is an action outside the machine. Each execution is an [EffectCall] in the step.
type Effect struct{}

func (Assign) isAction() {}
func (Check) isAction()  {}
func (Effect) isAction() {}

// An Actor is the registered actor for a src.
type Actor interface{ isActor() }

// A Promise is an actor that runs outside the machine and completes or fails once. Each
// execution is an [InvokeOp] in the step.
type Promise struct{}

// A Chart is the document of a machine that runs as a child.
type Chart []byte

func (Promise) isActor() {}
func (Chart) isActor()   {}

// A panic in a registered function fails the actor, as a thrown error does in XState. It does
// not crash the process; otherwise the event would be delivered and crash repeatedly.

func (g Guard) call(a Args) (ok bool, err error) {
	defer caught(&err)
	return g(a)
}

func (d Delay) call(a Args) (ms float64, err error) {
	defer caught(&err)
	return d(a)
}

func (f Assign) call(a Args) (update map[string]any, err error) {
	defer caught(&err)
	return f(a)
}

func (f Check) call(a Args) (err error) {
	defer caught(&err)
	return f(a)
}

func caught(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("panic: %v", v)
	}
}
