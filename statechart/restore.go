package statechart

import (
	"fmt"
	"slices"

	"github.com/perdure/perdure/fault"
)

// Restore returns a tree in the state of a snapshot. Nothing is repeated: no entry action, no
// invocation. A snapshot that XState persisted is also accepted. Its invocations are not
// started; [Tree.Pending] lists them.
//
// A snapshot that does not match the machine returns a *fault.Invalid.
func (m *Machine) Restore(raw []byte) (*Tree, error) {
	v, err := decodeWithin("snapshot", raw, maxSnapshotNesting)
	if err != nil {
		return nil, err
	}
	o, ok := v.(*object)
	if !ok {
		return nil, fault.Invalidf("snapshot", "must be an object")
	}
	t := &Tree{machine: m}
	t.root = &actor{tree: t, logic: logic{machine: m}}
	t.sequence, _ = o.value("sequence").(int64)
	r := restorer{tree: t}
	r.actor("snapshot", t.root, o)
	if r.err != nil {
		return nil, r.err
	}
	return t, nil
}

// A restorer reads a snapshot. It stops at the first error.
type restorer struct {
	tree *Tree
	err  error
}

func (r *restorer) fail(place, format string, args ...any) {
	if r.err == nil {
		r.err = fault.Invalidf(place, format, args...)
	}
}

func (r *restorer) actor(place string, a *actor, o *object) {
	status, _ := o.value("status").(string)
	a.snap.status = Status(status)
	if !slices.Contains([]Status{Active, Done, Failed, Stopped}, a.snap.status) {
		r.fail(at(place, "status"), "is %q", status)
	}
	a.armed, _ = o.value("armed").(bool)
	a.input = plain(o.value("input"))
	a.snap.output, a.snap.hasOutput = o.get("output")
	a.snap.output = plain(a.snap.output)
	a.snap.err = plain(o.value("error"))
	r.identity(place, a, o)
	if a.phase == running {
		a.open = true
		if err := a.register(); err != nil {
			r.fail(place, "%v", err)
		}
	}
	if a.logic.machine != nil && r.err == nil {
		r.machine(place, a, o)
	}
}

// identity reads the keys that XState's own snapshots do not have.
func (r *restorer) identity(place string, a *actor, o *object) {
	a.generation, _ = o.value("generation").(int64)
	if a.generation == 0 {
		a.generation = r.tree.next()
		a.armed = true // unknown: assume that it has timers
	}
	name, ok := o.value("phase").(string)
	switch a.phase = phase(name); {
	case !ok && a.snap.status == Active:
		a.phase = running
	case !ok:
		a.phase = ended
	case a.phase != created && a.phase != running && a.phase != ended:
		r.fail(at(place, "phase"), "is %q", name)
	}
}

func (r *restorer) machine(place string, a *actor, o *object) {
	m := a.logic.machine
	a.snap.context = map[string]any{}
	if c, ok := o.value("context").(*object); ok {
		a.snap.context = plain(c).(map[string]any)
	}
	a.snap.size = sizeOf(a.snap.context)
	a.tree.held += a.snap.size
	r.states(place, a, o)
	r.history(place, a, o)
	if a.snap.active = newNodeset(len(m.nodes)); r.err != nil {
		return
	}
	for _, n := range a.snap.nodes {
		a.snap.active.add(n)
	}
	if err := a.snap.legal(m); err != nil && (a.snap.status != Failed || len(a.snap.nodes) != 1) {
		r.fail(at(place, "value"), "%v", err)
	}
	r.children(place, a, o)
}

// states reads the active states. It keeps their order if the snapshot contains it.
func (r *restorer) states(place string, a *actor, o *object) {
	if l, ok := o.value("nodes").([]any); ok {
		for _, id := range l {
			a.snap.nodes = append(a.snap.nodes, r.state(at(place, "nodes"), a.logic.machine, id))
		}
		return
	}
	a.snap.nodes = r.fromValue(at(place, "value"), a.logic.machine.root, o.value("value"), nil)
}

func (r *restorer) state(place string, m *Machine, id any) *node {
	name, _ := id.(string)
	n, ok := m.byID[name]
	if !ok {
		r.fail(place, "names the state %q, which machine %s does not have", name, m.id)
		return m.root
	}
	return n
}

// fromValue returns the states of a state value.
func (r *restorer) fromValue(place string, n *node, v any, all []*node) []*node {
	all = append(all, n)
	switch v := v.(type) {
	case string:
		c := n.child(v)
		if c == nil {
			r.fail(place, "names the state %q, which %s does not have", v, n.id)
			return all
		}
		return initialStates(c, all)
	case *object:
		for _, key := range v.keys {
			c := n.child(key)
			if c == nil {
				r.fail(place, "names the state %q, which %s does not have", key, n.id)
				return all
			}
			all = r.fromValue(at(place, key), c, v.value(key), all)
		}
	}
	return all
}

func (r *restorer) history(place string, a *actor, o *object) {
	past, ok := o.value("historyValue").(*object)
	if !ok || len(past.keys) == 0 {
		return
	}
	a.snap.history = map[*node][]*node{}
	for _, id := range past.keys {
		h := r.state(at(place, "historyValue"), a.logic.machine, id)
		l, _ := past.value(id).([]any)
		nodes := []*node{}
		for _, e := range l {
			ref, _ := e.(*object)
			if ref == nil {
				continue
			}
			nodes = append(nodes, r.state(at(at(place, "historyValue"), id), a.logic.machine, ref.value("id")))
		}
		a.snap.history[h] = nodes
	}
}

func (r *restorer) children(place string, a *actor, o *object) {
	kids, ok := o.value("children").(*object)
	if !ok {
		return
	}
	for _, id := range kids.keys {
		where := at(at(place, "children"), id)
		entry, _ := kids.value(id).(*object)
		if entry == nil {
			r.fail(where, "must be an object")
			return
		}
		c := &actor{tree: r.tree, parent: a, id: id}
		c.src, _ = entry.value("src").(string)
		c.systemID, _ = entry.value("systemId").(string)
		c.sync, _ = entry.value("syncSnapshot").(bool)
		c.logic = logic{machine: a.logic.machine.children[c.src]}
		if c.logic.machine == nil && !slices.Contains(a.logic.machine.tasks, c.src) {
			r.fail(at(where, "src"), "is %q, which machine %s does not start", c.src, a.logic.machine.id)
			return
		}
		sub, ok := entry.value("snapshot").(*object)
		if !ok {
			r.fail(at(where, "snapshot"), "must be an object")
			return
		}
		r.actor(at(where, "snapshot"), c, sub)
		a.snap.children = append(a.snap.children, c)
	}
}

// legal returns an error if a set of active states is inconsistent.
func (s *snap) legal(m *Machine) error {
	if !s.active.has(m.root) {
		return fmt.Errorf("does not have the root active")
	}
	for _, n := range m.nodes {
		on := 0
		for _, c := range n.regions {
			if s.active.has(c) {
				on++
			}
		}
		switch active := s.active.has(n); {
		case !active && on > 0:
			return fmt.Errorf("has a state below %s active, but not itself", n.id)
		case active && n.kind == compound && on != 1:
			return fmt.Errorf("has %d states below %s active", on, n.id)
		case active && n.kind == parallel && on != len(n.regions):
			return fmt.Errorf("has %d of %d regions of %s active", on, len(n.regions), n.id)
		case active && n.kind == history:
			return fmt.Errorf("has the history state %s active", n.id)
		}
	}
	return nil
}
