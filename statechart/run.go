package statechart

import (
	"fmt"
	"strings"
)

// A run computes macrosteps of one actor. It reuses its memory between macrosteps.
type run struct {
	a     *actor
	now   snap     // as changed so far
	event *message // being handled
	queue []*message
	// changed is true if a microstep changed the context, the children or the states. If it is
	// false, eventless transitions are not tried again.
	changed bool

	// entering are the ids of the actors that the state being entered invokes. unresolved are
	// the sends to these actors, which wait until the actors exist.
	entering   []string
	unresolved []unresolved

	values  scope
	found   []*transition
	chosen  []*transition
	domains []domain
	after   orderedSet // the states after the exits, then after the entries
	enter   nodeset    // to be entered
	initial nodeset    // to be entered by default: initial actions run
	exits   []*node
	one     [1]*transition
}

type unresolved struct {
	index int
	id    string
}

func newRun(a *actor) *run {
	n := len(a.logic.machine.nodes)
	return &run{
		a: a, enter: newNodeset(n), initial: newNodeset(n),
		after: orderedSet{set: newNodeset(n)},
	}
}

// runner returns the actor's run. It creates the run for a restored actor.
func (a *actor) runner() *run {
	if a.run == nil {
		a.run = newRun(a)
	}
	return a.run
}

// scope returns the values that templates can refer to.
func (r *run) scope() *scope {
	r.values.tree, r.values.context, r.values.event = r.a.tree, r.now.context, r.event
	return &r.values
}

// args returns the arguments of registered functions.
func (r *run) args(params map[string]any) Args {
	return Args{Context: r.now.context, Event: r.event.Event, Params: params, Path: r.a.path()}
}

// do runs actions in order.
func (r *run) do(actions []action) error {
	for _, x := range actions {
		if err := r.a.tree.poll(); err != nil {
			return err
		}
		if err := x.do(r); err != nil {
			return err
		}
	}
	return nil
}

// begin computes the initial state of the machine. If that fails, only the root is active.
func (a *actor) begin() {
	m := a.logic.machine
	r := a.runner()
	first := snap{status: Active, nodes: m.nodes[:1], active: newNodeset(len(m.nodes)), context: map[string]any{}}
	first.active.add(m.root)
	err := r.firstContext(&first)
	if err == nil {
		a.computing = true
		err = r.firstStep(&first)
		a.computing = false
		if err == nil {
			a.snap = r.now
			return
		}
	}
	a.forget()
	first.status, first.err = Failed, thrown(err)
	a.snap = first
}

func (r *run) firstContext(first *snap) error {
	t := r.a.logic.machine.context
	first.size = sizeOf(first.context)
	if t == nil {
		return nil
	}
	v, err := t.eval(&scope{tree: r.a.tree, input: r.a.input})
	if err != nil {
		return err
	}
	c, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("context is not an object")
	}
	size, err := r.a.tree.measure(r.a, c, r.a.tree.machine.limits.context, LimitContext, r.a.tree.machine.limits.context)
	if err != nil {
		return err
	}
	first.context, first.size = c, size
	return r.a.grow(0, size)
}

func (r *run) firstStep(first *snap) error {
	m := r.a.logic.machine
	data := map[string]any{}
	if r.a.input != nil {
		data["input"] = r.a.input
	}
	r.prepare(first, newMessage(initEvent, data))
	start := &transition{source: m.root, targets: initialStates(m.root, nil), targeted: true, reenter: true}
	r.one[0] = start
	if err := r.microstep(r.one[:], true); err != nil {
		return err
	}
	return r.stabilize()
}

// initialStates returns a state and all states that are entered with it by default.
func initialStates(n *node, all []*node) []*node {
	all = append(all, n)
	switch {
	case n.kind == compound && n.initial != nil:
		return initialStates(n.initial, all)
	case n.kind == parallel:
		for _, c := range n.regions {
			all = initialStates(c, all)
		}
	}
	return all
}

func (r *run) prepare(from *snap, m *message) {
	r.now, r.event = *from, m
	r.queue = r.queue[:0]
	r.entering, r.unresolved = nil, r.unresolved[:0]
}

// macrostep handles an event and the events that it raises, until the machine is stable. The
// new state is then in now.
func (r *run) macrostep(from *snap, m *message) error {
	r.prepare(from, m)
	ts, err := r.selectFor(m)
	if err != nil {
		return err
	}
	if len(ts) == 0 && strings.HasPrefix(m.Type, "xstate.error.actor") {
		r.unhandled(m)
		return nil
	}
	if err := r.microstep(ts, false); err != nil {
		return err
	}
	return r.stabilize()
}

// unhandled fails the actor with the unhandled error of a child.
func (r *run) unhandled(m *message) {
	for _, c := range r.now.children {
		r.a.stopChild(c)
	}
	r.now.children = nil
	r.now.status, r.now.err = Failed, m.Data["error"]
}

// stabilize takes eventless transitions and handles raised events, in that order, until none are
// left.
func (r *run) stabilize() error {
	limit := r.a.logic.machine.limits.iterations
	eventless := r.a.logic.machine.hasAlways
	for i := 0; r.now.status == Active; i++ {
		if err := r.a.tree.spend(r.a); err != nil {
			return err
		}
		if i >= limit {
			return fmt.Errorf(endless, limit) //nolint:staticcheck // XState's text
		}
		more, err := r.iterate(&eventless)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if r.now.status != Active {
		for _, c := range r.now.children {
			r.a.stopChild(c)
		}
	}
	return nil
}

// endless is XState's error text.
const endless = "Infinite loop detected: the machine has processed more than %d microsteps without reaching a stable state. " +
	"This usually happens when there's a cycle of transitions " +
	"(e.g., eventless transitions or raised events causing state A -> B -> C -> A)."

func (r *run) iterate(eventless *bool) (more bool, err error) {
	var ts []*transition
	if *eventless {
		if ts, err = r.selectEventless(); err != nil {
			return false, err
		}
	}
	if len(ts) > 0 {
		r.changed = false
		err = r.microstep(ts, false)
		*eventless = r.changed
		return true, err
	}
	if len(r.queue) == 0 {
		return false, nil
	}
	r.event = r.queue[0]
	r.queue = append(r.queue[:0], r.queue[1:]...)
	if ts, err = r.selectFor(r.event); err != nil {
		return false, err
	}
	*eventless = r.a.logic.machine.hasAlways
	return true, r.microstep(ts, false)
}
