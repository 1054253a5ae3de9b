package statechart

// enterStates enters the states of the chosen transitions, in document order: entry actions,
// invoked actors, initial actions.
func (r *run) enterStates(past map[*node][]*node, first bool) error {
	r.enter.clear()
	r.initial.clear()
	e := entrySet{run: r, past: past}
	for i, t := range r.chosen {
		e.transition(t, r.domains[i])
	}
	if first {
		r.initial.add(r.a.logic.machine.root)
	}
	var completed []*node
	for i := r.enter.next(0); i >= 0; i = r.enter.next(i + 1) {
		n := r.a.logic.machine.nodes[i]
		r.after.add(n)
		if err := r.enterOne(n); err != nil {
			return err
		}
		if n.kind != final {
			continue
		}
		var err error
		if completed, err = r.complete(n, completed); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) enterOne(n *node) error {
	r.entering, r.unresolved = n.invokeIDs, r.unresolved[:0]
	if err := r.do(n.entry); err != nil {
		return err
	}
	for _, inv := range n.invokes {
		if err := inv.spawn(r); err != nil {
			return err
		}
	}
	if r.initial.has(n) {
		if err := r.do(n.initialActions); err != nil {
			return err
		}
	}
	for _, u := range r.unresolved {
		r.a.deferred[u.index].to = r.now.children.get(u.id)
	}
	r.entering = nil
	return nil
}

func (inv *invoke) spawn(r *run) error {
	x := spawnAction{src: inv.src, systemID: inv.systemID, logic: inv.logic, id: literal{inv.id}, input: inv.input, sync: inv.sync}
	return x.do(r)
}

// complete raises the done events of an entered final state: for its parent and for the
// parallel ancestors that are thereby done. If there is no state above, it finishes the
// machine.
func (r *run) complete(n *node, completed []*node) ([]*node, error) {
	parent := n.parent
	above := parent
	if parent != nil && parent.kind != parallel {
		above = parent.parent
	}
	root := n
	if above != nil {
		root = above
	}
	if parent != nil && parent.kind == compound {
		if err := r.raiseDone(parent, n); err != nil {
			return completed, err
		}
	}
	for above != nil && above.kind == parallel && !contains(completed, above) && isFinal(&r.after.set, above) {
		completed = append(completed, above)
		r.queue = append(r.queue, newMessage(doneStatePrefix+above.id, nil))
		root, above = above, above.parent
	}
	if above != nil {
		return completed, nil
	}
	return completed, r.done(root)
}

func contains(nodes []*node, n *node) bool {
	for _, o := range nodes {
		if o == n {
			return true
		}
	}
	return false
}

func isFinal(active *nodeset, n *node) bool {
	switch n.kind {
	case compound:
		for _, c := range n.regions {
			if c.kind == final && active.has(c) {
				return true
			}
		}
		return false
	case parallel:
		for _, c := range n.regions {
			if !isFinal(active, c) {
				return false
			}
		}
		return true
	default:
		return n.kind == final
	}
}

func (r *run) raiseDone(parent, n *node) error {
	data, err := r.outputOf(n)
	if err != nil {
		return err
	}
	r.queue = append(r.queue, newMessage(doneStatePrefix+parent.id, data))
	return nil
}

func (r *run) outputOf(n *node) (map[string]any, error) {
	if n.output == nil {
		return nil, nil
	}
	v, err := n.output.eval(r.scope())
	if err == nil {
		err = r.a.tree.charge(r.a, v)
	}
	return map[string]any{"output": v}, err
}

// done finishes the machine. The output expression receives the done event of the state that
// completed the machine.
func (r *run) done(by *node) error {
	r.changed = true
	r.now.status = Done
	r.now.output, r.now.hasOutput = nil, false
	root := r.a.logic.machine.root
	if root.output == nil {
		return nil
	}
	var data map[string]any
	if by.parent != nil {
		var err error
		if data, err = r.outputOf(by); err != nil {
			return err
		}
	}
	v, err := root.output.eval(&scope{tree: r.a.tree, context: r.now.context, event: newMessage(doneStatePrefix+by.id, data)})
	if err == nil {
		err = r.a.tree.charge(r.a, v)
	}
	r.now.output, r.now.hasOutput = v, true
	return err
}

// An entrySet computes the states to enter. It follows XState's algorithm, which follows
// SCXML's computeEntrySet.
type entrySet struct {
	run  *run
	past map[*node][]*node // the history, including the states just exited
}

func (e *entrySet) transition(t *transition, d domain) {
	if d.node != nil && !e.run.after.set.has(d.node) {
		return // another transition has exited the domain
	}
	for _, n := range t.targets {
		if n.kind != history && (t.source != n || t.source != d.node || t.reenter) {
			e.byDefault(n)
		}
		e.descendants(n)
	}
	within := d.node
	if t.source.parent == nil && t.reenter {
		within = nil
	}
	for _, n := range e.effective(t.targets, nil) {
		for a := n.parent; a != nil && a != d.node && n != d.node; a = a.parent {
			e.ancestor(a, within, false)
		}
		if d.node != nil && d.node.kind == parallel {
			e.ancestor(d.node, within, false)
		}
	}
}

// effective is run.effective with the history after the exits.
func (e *entrySet) effective(targets, all []*node) []*node {
	before := e.run.now.history
	e.run.now.history = e.past
	all = e.run.effective(targets, all)
	e.run.now.history = before
	return all
}

func (e *entrySet) byDefault(n *node) {
	e.run.enter.add(n)
	e.run.initial.add(n)
}

// descendants adds the states that are entered below a state, or in place of a history state.
func (e *entrySet) descendants(n *node) {
	switch n.kind {
	case history:
		e.history(n)
	case compound:
		if n.initial.kind != history {
			e.byDefault(n.initial)
		}
		e.descendants(n.initial)
		// The initial state is a child: no state is between it and n.
	case parallel:
		for _, c := range n.regions {
			if !e.run.enter.anyBelow(c) {
				e.byDefault(c)
				e.descendants(c)
			}
		}
	case atomic, final:
	}
}

// history enters the states that were active before, or the default. It does not enter states
// that were not exited, because that entry would have no matching exit.
func (e *entrySet) history(h *node) {
	states, ok := e.past[h]
	if !ok {
		states = h.defaults
		if h.viaInitial {
			e.run.initial.add(h.parent)
		}
	}
	for _, n := range states {
		e.unlessActive(n)
		e.descendants(n)
	}
	for _, n := range states {
		for a := n.parent; a != nil && a != h.parent && n != h.parent; a = a.parent {
			e.ancestor(a, nil, true)
		}
	}
}

func (e *entrySet) unlessActive(n *node) {
	if n.kind != history && !e.run.after.set.has(n) {
		e.run.enter.add(n)
	}
}

// ancestor adds an ancestor of a target, and, for a parallel state, the regions that contain no
// target.
func (e *entrySet) ancestor(a, within *node, unlessActive bool) {
	switch {
	case unlessActive:
		e.unlessActive(a)
	case a.below(within):
		e.run.enter.add(a)
	}
	if a.kind != parallel {
		return
	}
	for _, c := range a.regions {
		if !e.run.enter.anyBelow(c) {
			e.region(c, unlessActive)
		}
	}
}

func (e *entrySet) region(c *node, unlessActive bool) {
	if unlessActive && e.run.after.set.has(c) {
		return // unchanged, with all its descendants
	}
	e.run.enter.add(c)
	e.descendants(c)
}
