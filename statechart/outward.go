package statechart

// opKind is the kind of an operation that runs at the end of a macrostep.
type opKind int

const (
	opSend opKind = iota
	opSchedule
	opCancel
	opEmit
	opStart
	opStop
)

// An op is an operation that is deferred to the end of a macrostep.
type op struct {
	kind  opKind
	to    *actor
	event *message
	delay int64
	id    string
}

// deferOp defers an operation to the end of the macrostep. Starting and stopping a child does
// not count as an output, because the number of children has its own limit.
func (a *actor) deferOp(o op) error {
	if o.kind != opStart && o.kind != opStop {
		if err := a.tree.count(a); err != nil {
			return err
		}
	}
	if o.kind == opEmit || o.kind == opSchedule {
		if err := a.tree.charge(a, o.event.Data); err != nil {
			return err
		}
	}
	a.deferred = append(a.deferred, o)
	return nil
}

func (a *actor) perform(o op) {
	switch o.kind {
	case opSend:
		a.send(o)
	case opSchedule:
		a.schedule(o)
	case opCancel:
		a.tree.timers(TimerOp{Kind: Cancel, Timer: Timer{Path: a.path(), Generation: a.generation, ID: o.id}})
	case opEmit:
		a.tree.step.Emitted = append(a.tree.step.Emitted, Emitted{Path: a.path(), Event: o.event.Event})
	case opStart:
		if o.to.phase != ended {
			o.to.start()
		}
	case opStop:
		o.to.stop()
	}
}

// send delivers an event. An event named xstate.error reports the sender's own failure, sent
// explicitly by the document.
func (a *actor) send(o op) {
	if o.to == nil {
		return
	}
	m := o.event
	if m.Type == "xstate.error" {
		m = newMessage(errorActorPrefix+a.id, map[string]any{"error": m.Data["data"], "actorId": a.id})
	}
	o.to.receive(m)
}

func (a *actor) schedule(o op) {
	if o.to == nil {
		return
	}
	a.armed = true
	a.tree.timers(TimerOp{Kind: Schedule, Timer: Timer{
		Path: a.path(), Generation: a.generation, ID: o.id, Sequence: a.tree.next(),
		Target: o.to.path(), TargetGeneration: o.to.generation,
		Event: o.event.Event, Delay: o.delay, Due: a.tree.now + o.delay,
	}})
}

// An outwardOp is an operation that runs during a macrostep: an effect, a check or a log entry.
type outwardOp struct {
	name   string
	params map[string]any
	check  Check
	args   Args
	log    bool
	value  any
}

// outward runs the operation, or keeps it until the actor starts.
func (a *actor) outward(o outwardOp) error {
	if err := a.tree.count(a); err != nil {
		return err
	}
	if a.phase != running {
		a.outgoing = append(a.outgoing, o)
		return nil
	}
	switch {
	case o.check != nil:
		return o.check.call(o.args)
	case o.log:
		a.tree.step.Logs = append(a.tree.step.Logs, Log{Path: a.path(), Value: o.value})
	default:
		a.tree.step.Effects = append(a.tree.step.Effects,
			EffectCall{Path: a.path(), Name: o.name, Params: o.params, Sequence: a.tree.next()})
	}
	return nil
}

// release runs the operations that were kept until the actor started.
func (a *actor) release() error {
	kept := a.outgoing
	a.outgoing = nil
	for _, o := range kept {
		a.tree.outputs-- // it is already counted
		if err := a.outward(o); err != nil {
			return err
		}
	}
	return nil
}
