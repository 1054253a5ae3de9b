// Package actor runs XState statecharts as durable actors. Every pending timer is a row, and
// every transition is one transaction.
//
// A type is a statechart with the functions that it names. An actor is a durable instance of a
// type and has an id:
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
// Spawn and Send commit their own transactions. SpawnIn, SendIn, and operations such as StopIn
// and FireTimerIn are part of a unit of work and commit or roll back with it. A dispatcher runs
// due timers, effects and invocations; see package dispatch:
//
//	d, err := dispatch.NewWaker(actors, nil)
//	d.Start()
//	defer d.Stop(ctx)
//
// # Guarantees
//
// One transition (XState's macrostep) is one transaction. It locks the actor's row and applies
// the event. It stores the new snapshot with all children, the changed timers, the resulting
// effects and invocations, and a log entry. No change is visible before the commit, and no
// change is lost after it. Any process may serve any actor; processes coordinate only through
// the row. An idle actor uses no resources except its rows.
//
// Effects (actions outside the machine) and invocations (invoked promises) run after the
// commit, at least once. Each has an idempotency key that stays the same across retries and
// crashes. The result of an invocation returns as an event. A result is ignored if its attempt
// was abandoned or if the invoking state was left.
//
// A timer fires once, never early. A timer that is overdue fires late. While it is handled, the
// machine's time is the timer's due time. A chain of timers that was missed while no process
// ran therefore happens as it would have happened on time. After idle time, an actor handles
// its overdue timers by due time, then RESUME if the type wants system events, then the event
// that woke it.
//
// # Permissions
//
// A Caller is a client, a service or the system. No caller may send events named xstate.*. Only
// the system may send its own events (INITIALIZE, RESUME, …). The event's caller key holds the
// Caller of a client or service and overwrites any value that was sent; events of the system
// have no such key. A caller sees the machine's state value, context.public, and the part of
// context.private under its own id.
//
// # Integrity
//
// A snapshot is stored with its checksum and verified when it is loaded. If the checksum does
// not match, the state is recomputed from the last checkpoint and the log. If that also fails,
// the actor is quarantined: it is suspended and listed until Resume. Other actors are not
// affected.
package actor
