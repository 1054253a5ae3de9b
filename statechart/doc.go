// Package statechart interprets XState v5 machines: JSON documents of nested, parallel and
// history states, with guards, actions, delays and child actors.
//
// The package is pure. It has no clock, no goroutine and no I/O. Every call receives the event
// and the time, and returns the resulting effects as data.
//
//	machine, err := statechart.Parse(raw, &statechart.Registry{…}, nil)
//	tree, step, err := machine.Start(now, input)
//	step, err = tree.Send(now, statechart.Event{Type: "PAY"})
//	raw, err := tree.Snapshot()                // the complete state
//	tree, err = machine.Restore(raw)
//
// A [Tree] is the root actor with all its descendants. One call runs until the tree is stable;
// the caller stores the result in one transaction. The returned [Step] holds, in order, the
// timers to schedule and cancel, the effects to run, the invocations (promise-like actors) to
// start and stop, and the emitted events and log messages. The caller delivers a due timer with
// [Tree.Fire] and the result of an invocation with [Tree.Complete] or [Tree.Fail]. Both carry
// the generation of the receiving actor, so a late delivery is dropped.
//
// # Machines without Go code
//
// A [Registry] holds the guards, actions, delays and actors that a document names. A document
// can also do without one:
//
//   - {"type": "expr", "params": {"when": "context.count >= 3"}} is a guard;
//   - {"$expr": "context.count + 1"} is replaced by the value of the expression and
//     {"$from": "context.order.id"} by the value at the path, or null; both are
//     allowed wherever a value is: in params, payloads, input, output, delays and
//     in the assignment of xstate.assign;
//   - the root's "delays" define named delays, and its "machines" child machines.
//
// Expressions are written in expr-lang/expr, without functions that depend on the time or on
// the order of maps. They can refer to context and event. The expressions of the initial
// context can refer to input.
//
// The built-in actions are xstate.raise, sendTo, forwardTo, cancel, emit, log, assign,
// spawnChild, stopChild and choose. The built-in guards are xstate.and, or, not and stateIn.
// Their arguments are in params. The spelling of XState v6, "@xstate." with the arguments next
// to the type, is also accepted.
//
// # Intentional differences from XState
//
//   - [Parse] rejects unknown names and keys, bad delays, unreachable states and
//     eventless cycles, and reports the place in the document.
//   - An array of delayed transitions with delays works as in XState v4.
//   - Scheduling an existing id replaces its timer.
//   - The domain of a transition is computed once, before states are exited, and
//     a history state never enters a state that is still active.
//   - Events named xstate.* are rejected from outside, except xstate.route.
//   - A child that is spawned under an existing id replaces the existing child. A
//     systemId is free as soon as its actor is stopped, even in the first macrostep.
//   - A computed delay is rounded to milliseconds, and a negative delay is 0. A delay
//     that is not a number fails the actor.
//   - Restoring repeats nothing: no onSnapshot event, no start of an invocation.
package statechart
