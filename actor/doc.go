// Package actor keeps statecharts alive in the database: XState machines as
// durable actors whose every delay is a row and whose every step is a
// transaction.
//
// A type is a machine with the functions that it names; an actor is a type and
// an id:
//
//	actors, err := actor.New(eng, nil)
//	err = actors.Register("order", document, &actor.TypeOptions{
//		Effects: map[string]actor.Effect{"ship": {Run: ship}},
//		Invocations: map[string]actor.Invocation{"charge": {Run: charge}},
//	})
//	…
//	ref := actor.Ref{Type: "order", ID: "42"}
//	_, err = actors.Spawn(ctx, ref, caller, input, nil)
//	receipt, err := actors.Send(ctx, ref, caller, statechart.Event{Type: "PAY"}, nil)
//
// Spawn and Send are transactions of their own; SpawnIn and SendIn, and what
// operators do by StopIn, FireTimerIn and the like, are part of a unit of work and
// commit or roll back with it. A dispatcher drives delays, effects and invocations; see
// package dispatch:
//
//	d, err := dispatch.NewWaker(actors, nil)
//	d.Start()
//	defer d.Stop(ctx)
//
// # What holds
//
// One step (XState's macrostep) is one transaction: it locks the actor's row,
// applies the event, and stores the new snapshot with all children, the changed
// delays, the effects and invocations that follow, and an entry of the log. Nothing of
// it is visible before, and nothing is lost after. Any process may serve any
// actor; the row is the only coordination. A sleeping actor costs its rows and
// nothing else.
//
// Effects (actions that happen outside) and invocations (invoked promises) run after
// the commit, at least once, each with an idempotency key that stays the same
// over retries and crashes. The result of an invocation comes back as an event; one of
// an attempt that was given up is ignored, and so is one whose state was left.
//
// A delay fires once, never early, and however late it comes: while it is
// handled the time is that of its due time, so that a chain of delays that was
// slept over happens as it would have. What reaches an actor after it slept is
// in this order: overdue delays by their due times, RESUME if the type wants
// system events, then the event that woke it.
//
// # Who may do what
//
// A Caller is a client, a service or the system. Events named xstate.* come from
// nobody; the system's own (INITIALIZE, RESUME, …) only from it. Clients and
// services find their Caller in the event's caller key, whatever the event said
// there; the system's events have none. A caller sees the machine's state value,
// context.public, and what context.private has under its own id.
//
// # Data that is checked
//
// A snapshot is stored with its checksum and verified when it is loaded. If it
// does not match, the state is computed again from the last checkpoint and the
// log; if that fails too, the actor is quarantined: it stands still, is listed,
// and Resume lets it go on. Others are not affected.
package actor
