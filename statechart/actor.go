package statechart

import (
	"fmt"
	"slices"
)

// Status is the status of an actor.
type Status string

// The statuses are XState's.
const (
	Active  Status = "active"
	Done    Status = "done"
	Failed  Status = "error"
	Stopped Status = "stopped"
)

// phase is the phase of an actor's life. Only a running actor handles events.
type phase string

const (
	created phase = "new"
	running phase = "running"
	ended   phase = "stopped"
)

// An actor is a machine or an invocation in a tree. Its fields follow XState's Actor, because
// the order in which actors handle events is part of the observable behavior.
type actor struct {
	tree     *Tree
	parent   *actor
	id, src  string
	systemID string
	logic    logic
	input    any
	sync     bool // notify the parent of every snapshot
	// generation distinguishes the actor from earlier actors with the same path.
	generation int64
	phase      phase
	snap       snap
	armed      bool // has ever scheduled a timer
	run        *run
	computing  bool // run.now is ahead of snap

	// mailbox
	inbox []*message
	open  bool
	busy  bool

	// outgoing holds effects, checks and logs until the actor starts. deferred holds the
	// operations that run at the end of a macrostep.
	outgoing []outwardOp
	deferred []op
}

// snap is the state of an actor. Its slices and maps are never modified.
type snap struct {
	status    Status
	nodes     []*node // in the order of entering
	active    nodeset
	context   map[string]any
	size      int // of context
	history   map[*node][]*node
	children  family
	output    any
	hasOutput bool
	err       any
}

// A family is the list of an actor's children, in JavaScript's key order.
type family []*actor

func (f family) get(id string) *actor {
	for _, c := range f {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (f family) with(c *actor) family {
	out := slices.Clone(f)
	for i, o := range out {
		if o.id == c.id {
			out[i] = c
			return out
		}
	}
	out = append(out, c)
	slices.SortStableFunc(out, func(a, b *actor) int { return compareKeys(a.id, b.id) })
	return out
}

func (f family) without(id string) family {
	return slices.DeleteFunc(slices.Clone(f), func(c *actor) bool { return c.id == id })
}

// maxActorDepth and maxActors bound a tree: a machine may invoke itself.
const (
	maxActorDepth = 32
	maxActors     = 10_000
)

// create computes the initial state of an actor that is not started yet.
func (a *actor) create() error {
	if a.depth() > maxActorDepth {
		return fmt.Errorf("actors are nested deeper than %d levels", maxActorDepth)
	}
	if a.tree.created++; a.tree.created > maxActors {
		return fmt.Errorf("more than %d actors were created in one step", maxActors)
	}
	a.generation = a.tree.next()
	a.phase = created
	if err := a.register(); err != nil {
		return err
	}
	if a.logic.machine == nil {
		a.snap.status = Active
		return nil
	}
	a.begin()
	if a.snap.status != Active {
		a.unregister()
	}
	return nil
}

func (a *actor) depth() int {
	n := 0
	for p := a.parent; p != nil; p = p.parent {
		n++
	}
	return n
}

func (a *actor) register() error {
	if a.systemID == "" {
		return nil
	}
	if other := a.tree.bySystemID[a.systemID]; other != nil && other != a {
		return fmt.Errorf("Actor with system ID '%s' already exists.", a.systemID) //nolint:staticcheck,revive // XState's text
	}
	if a.tree.bySystemID == nil {
		a.tree.bySystemID = map[string]*actor{}
	}
	a.tree.bySystemID[a.systemID] = a
	return nil
}

func (a *actor) unregister() {
	if a.systemID != "" && a.tree.bySystemID[a.systemID] == a {
		delete(a.tree.bySystemID, a.systemID)
	}
}

func (a *actor) unregisterAll() {
	for _, c := range a.snap.children {
		c.unregisterAll()
	}
	a.unregister()
}

// start starts a created actor. It starts the children first, then performs the sends of the
// initial state, then handles the queued events.
func (a *actor) start() {
	if a.phase == running {
		return
	}
	a.phase = running
	switch a.snap.status {
	case Done:
		a.update()
		return
	case Failed:
		a.fail(a.snap.err)
		return
	case Active, Stopped:
	}
	if a.logic.machine == nil {
		a.tree.step.Invocations = append(a.tree.step.Invocations, a.task(true))
	}
	for _, c := range a.snap.children {
		if c.snap.status == Active {
			c.start()
		}
	}
	a.update()
	a.open = true
	a.flush()
}

// update performs the deferred operations of the last macrostep and notifies the parent.
func (a *actor) update() {
	if err := a.release(); err != nil {
		a.deferred = nil
		a.snap.status, a.snap.err = Failed, thrown(err)
	}
	for i := 0; i < len(a.deferred); i++ {
		a.perform(a.deferred[i])
	}
	clear(a.deferred)
	a.deferred = a.deferred[:0]
	switch a.snap.status {
	case Active:
		if a.sync && a.parent != nil {
			a.sendSnapshot()
		}
	case Done:
		a.end()
		a.sendDone()
	case Failed:
		a.fail(a.snap.err)
	case Stopped:
	}
}

func (a *actor) sendSnapshot() {
	data := map[string]any{"snapshot": a.snapshotValue()}
	a.parent.receive(newMessage(snapshotPrefix+a.id, data))
}

func (a *actor) sendDone() {
	if a.parent == nil {
		return
	}
	data := map[string]any{"actorId": a.id}
	if a.snap.hasOutput {
		data["output"] = a.snap.output
	}
	a.parent.receive(newMessage(doneActorPrefix+a.id, data))
}

// fail ends an actor whose status is error. As in XState, the children of an actor whose own
// code failed keep running, but no actor receives their events.
func (a *actor) fail(err any) {
	a.end()
	if a.parent != nil {
		a.parent.receive(newMessage(errorActorPrefix+a.id, map[string]any{"error": err, "actorId": a.id}))
	}
}

// end stops the event handling of a running actor and cancels its timers.
func (a *actor) end() {
	if a.phase != running {
		return
	}
	if a.armed {
		a.tree.timers(TimerOp{Kind: CancelAll, Timer: Timer{Path: a.path(), Generation: a.generation}})
	}
	a.phase = ended
	a.open = false
	a.unregister()
}

// stopChild stops a child after earlier sends have been delivered.
func (a *actor) stopChild(c *actor) {
	c.unregisterAll()
	if c.phase != running {
		c.stop()
		return
	}
	_ = a.deferOp(op{kind: opStop, to: c}) // never rejected
}

// stop stops an actor from outside, after the event that it is handling.
func (a *actor) stop() {
	if a.phase == created {
		a.phase = ended
	}
	if a.phase == ended {
		return
	}
	if a.busy {
		a.inbox = a.inbox[:1]
	} else {
		a.inbox = a.inbox[:0]
	}
	a.receive(stopMessage)
}

var stopMessage = staticMessage(Event{Type: stopEvent})
