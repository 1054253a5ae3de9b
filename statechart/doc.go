// Package statechart interprets XState v5 machines: JSON documents of nested,
// parallel and history states, with guards, actions, delays and child actors.
//
// It is pure. It has no clock, no goroutine and no I/O: every call gets the
// event and the time, and returns what is to be done outside as data.
//
//	machine, err := statechart.Parse(raw, &statechart.Registry{…}, nil)
//	tree, step, err := machine.Start(now, input)
//	step, err = tree.Send(now, statechart.Event{Type: "PAY"})
//	raw, err := tree.Snapshot()                // all that is needed to go on
//	tree, err = machine.Restore(raw)
//
// A [Tree] is the root actor with its children, and their children. One call
// runs until nothing is left to do inside the tree; it is one transaction of
// whoever stores it. The returned [Step] holds, in order, the timers to
// schedule and cancel, the effects to run, the invocations (promise-like actors) to
// start and stop, and what was emitted and logged. A due timer comes back by
// [Tree.Fire], a finished invocation by [Tree.Complete] or [Tree.Fail]; both carry the
// generation of the actor that they are for, so a late one is dropped.
//
// # A machine that is data only
//
// Guards, actions, delays and actors that a document names are in a [Registry].
// A document can do without one:
//
//   - {"type": "expr", "params": {"when": "context.count >= 3"}} is a guard;
//   - {"$expr": "context.count + 1"} stands for the value of the expression and
//     {"$from": "context.order.id"} for the value at the path, or null; both
//     work wherever a value does: in params, payloads, input, output, delays and
//     in the assignment of xstate.assign;
//   - the root's "delays" name delays, and its "machines" child machines.
//
// Expressions are those of expr-lang/expr without what depends on the time or
// on the order of maps. They see context and event; those of the context's
// initial value see input.
//
// The built-in actions are xstate.raise, sendTo, forwardTo, cancel, emit, log,
// assign, spawnChild, stopChild and choose, the guards xstate.and, or, not and
// stateIn. Their arguments are in params; the spelling of XState v6, "@xstate."
// with the arguments beside the type, is accepted too.
//
// # Where it differs from XState on purpose
//
//   - Unknown names and keys, bad delays, states that nothing reaches and
//     eventless cycles are refused by [Parse], with the place in the document.
//   - An array of delayed transitions with delays is honoured as in XState v4.
//   - Scheduling an id again replaces its timer.
//   - The domain of a transition is found once, before states are exited, and
//     a history state never enters a state that is still active.
//   - Events named xstate.* are refused from outside, but for xstate.route.
//   - A child that is spawned under the id of another replaces it. A systemId is
//     free as soon as its actor is stopped, also in the first macrostep.
//   - A delay that is computed is rounded to milliseconds, negative ones are 0;
//     one that is no number fails the actor.
//   - Restoring repeats nothing: no onSnapshot event, no start of an invocation.
//
// The package imports only fault and internal/edge of ours.
package statechart
