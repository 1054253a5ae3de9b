package statechart

// receive puts an event into the mailbox. Unless the actor is busy or not started, it handles
// the event immediately.
func (a *actor) receive(m *message) {
	if a.phase == ended {
		return
	}
	a.inbox = append(a.inbox, m)
	if !a.busy && a.open {
		a.flush()
	}
}

// flush handles events until the mailbox is empty. The event being handled stays first.
func (a *actor) flush() {
	a.busy = true
	for len(a.inbox) > 0 && a.phase == running {
		a.process(a.inbox[0])
		a.inbox = append(a.inbox[:0], a.inbox[1:]...)
	}
	a.inbox = a.inbox[:0]
	a.busy = false
}

func (a *actor) process(m *message) {
	if a.tree.spend(a) != nil {
		a.phase = ended // the results of this call are discarded
		return
	}
	if a.logic.machine == nil {
		a.processTask(m)
		return
	}
	if m.Type == stopEvent {
		a.processStop()
		return
	}
	r := a.runner()
	a.computing = true
	err := r.macrostep(&a.snap, m)
	a.computing = false
	if err != nil {
		a.abort(err)
		return
	}
	a.snap = r.now
	a.update()
}

// abort keeps the state before the event, except for the status.
func (a *actor) abort(err error) {
	a.forget()
	a.snap.status, a.snap.err = Failed, thrown(err)
	a.fail(a.snap.err)
}

// forget drops the deferred operations of an abandoned macrostep, and the children that it
// created.
func (a *actor) forget() {
	for _, o := range a.deferred {
		if o.kind == opStart && o.to.phase == created {
			o.to.unregisterAll()
			o.to.phase = ended
		}
	}
	a.deferred = a.deferred[:0]
	a.outgoing = nil
}

func (a *actor) processStop() {
	for _, c := range a.snap.children {
		a.stopChild(c)
	}
	a.snap.children = nil
	a.snap.status = Stopped
	a.update()
	a.end()
}

// Invocations handle only these events.
var (
	taskDone   = "xstate.task.done"
	taskFailed = "xstate.task.failed"
)

func (a *actor) processTask(m *message) {
	switch m.Type {
	case stopEvent:
		a.snap.status, a.input = Stopped, nil
		a.tree.step.Invocations = append(a.tree.step.Invocations, a.task(false))
		a.end()
		return
	case taskDone:
		a.snap.status, a.input = Done, nil
		a.snap.output, a.snap.hasOutput = m.Data["output"], true
	case taskFailed:
		a.snap.status, a.input = Failed, nil
		a.snap.err = m.Data["error"]
	}
	a.update()
}
