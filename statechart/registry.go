package statechart

import "fmt"

// A Registry holds what a document can only name. Its functions must be pure:
// equal arguments give equal results, and nothing else happens.
type Registry struct {
	// Guards decide whether a transition is taken.
	Guards map[string]Guard
	// Actions change the context or are effects: [Assign], [Check], [Effect].
	Actions map[string]Action
	// Delays compute how long to wait.
	Delays map[string]Delay
	// Actors are what can be invoked or spawned: [Task], [Chart].
	Actors map[string]Actor
	// Open takes every unknown action for an effect and every unknown actor for
	// an invocation, for when their handlers are found by name later.
	Open bool
}

// Args is what a registered function may look at. Nothing in it may be changed.
type Args struct {
	// Context is the actor's context.
	Context map[string]any
	// Event is the event that is being handled.
	Event Event
	// Params are the params of the guard or action, with $from and $expr
	// replaced.
	Params map[string]any
	// Path is the path of the actor in its tree; that of the root is "".
	Path string
}

// A Guard says whether a transition may be taken. An error fails the actor.
type Guard func(Args) (bool, error)

// A Delay returns how long to wait in milliseconds. It is asked when the wait
// begins. An error fails the actor.
type Delay func(Args) (float64, error)

// Milliseconds returns a delay that is always the same.
func Milliseconds(n int64) Delay {
	return func(Args) (float64, error) { return float64(n), nil }
}

// An Action is what a name in entry, exit or actions stands for.
type Action interface{ isAction() }

// An Assign returns the keys of the context that change. An error fails the
// actor, and nothing changes.
type Assign func(Args) (map[string]any, error)

// A Check runs where an effect would. It can only fail the actor.
type Check func(Args) error

// An Effect is an action that happens outside: each run of it is an
// [EffectCall] in the step.
type Effect struct{}

func (Assign) isAction() {}
func (Check) isAction()  {}
func (Effect) isAction() {}

// An Actor is what a src stands for.
type Actor interface{ isActor() }

// A Promise is an actor that runs outside and completes or fails once, like a
// promise: each run of it is a [InvokeOp] in the step.
type Promise struct{}

// A Chart is the document of a machine that runs as a child.
type Chart []byte

func (Promise) isActor() {}
func (Chart) isActor()   {}

// A registered function that panics fails its actor, as one that throws does in
// XState, and not the process: the event would come again and again.

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
