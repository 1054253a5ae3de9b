package statechart

import "slices"

// A domain is the state below which a transition exits and enters states. A nil node means the
// whole machine, including the root.
type domain struct {
	node *node // nil: all
}

// An orderedSet is a set of states that keeps the insertion order.
type orderedSet struct {
	nodes []*node
	set   nodeset
}

func (s *orderedSet) reset(from *snap) {
	s.nodes = append(s.nodes[:0], from.nodes...)
	s.set.copyFrom(&from.active)
}

func (s *orderedSet) add(n *node) {
	if !s.set.has(n) {
		s.set.add(n)
		s.nodes = append(s.nodes, n)
	}
}

// microstep takes transitions: exits states, runs the transitions' actions,
// enters states.
func (r *run) microstep(ts []*transition, first bool) error {
	if len(ts) == 0 {
		return nil
	}
	r.after.reset(&r.now)
	if err := r.resolveConflicts(ts); err != nil {
		return err
	}
	history := r.now.history
	remembered := false
	if !first {
		r.exitSet()
		history, remembered = r.remember()
		if err := r.exitStates(); err != nil {
			return err
		}
	}
	for _, t := range r.chosen {
		if err := r.do(t.actions); err != nil {
			return err
		}
	}
	if err := r.enterStates(history, first); err != nil {
		return err
	}
	return r.finish(history, remembered)
}

// finish makes the new states current. If they equal the old states, the old order is kept.
func (r *run) finish(history map[*node][]*node, remembered bool) error {
	if r.now.status == Done {
		if err := r.exitAll(); err != nil {
			return err
		}
	}
	if !remembered && r.sameStates() {
		return nil
	}
	r.changed = true
	r.now.nodes = slices.Clone(r.after.nodes)
	if len(r.now.active.high) > 0 {
		r.now.active.high = slices.Clone(r.after.set.high)
	}
	r.now.active.low = r.after.set.low
	r.now.history = history
	return nil
}

func (r *run) sameStates() bool {
	if len(r.now.nodes) != len(r.after.nodes) {
		return false
	}
	for _, n := range r.now.nodes {
		if !r.after.set.has(n) {
			return false
		}
	}
	return true
}

// exitAll runs the exit actions of all states of a finished machine. The states stay active.
func (r *run) exitAll() error {
	last := slices.Clone(r.after.nodes)
	slices.SortFunc(last, func(a, b *node) int { return b.order - a.order })
	for _, n := range last {
		if err := r.do(n.exit); err != nil {
			return err
		}
	}
	return nil
}

// resolveConflicts chooses the transitions that can be taken together. If two transitions exit
// the same state, the transition of a descendant wins, otherwise the earlier transition.
func (r *run) resolveConflicts(ts []*transition) error {
	r.chosen, r.domains = r.chosen[:0], r.domains[:0]
	if len(ts) == 1 {
		r.chosen = append(r.chosen, ts[0])
		r.domains = append(r.domains, r.domain(ts[0]))
		return nil
	}
	var sets []nodeset
	for _, t := range ts {
		if err := r.a.tree.poll(); err != nil {
			return err
		}
		d := r.domain(t)
		set := r.exitsOf(t, d)
		keep, preempted := []int{}, false
		for i, other := range r.chosen {
			if !set.intersects(&sets[i]) {
				keep = append(keep, i)
			} else if !t.source.below(other.source) {
				preempted = true
				break
			}
		}
		if preempted {
			continue
		}
		for to, from := range keep {
			r.chosen[to], r.domains[to], sets[to] = r.chosen[from], r.domains[from], sets[from]
		}
		r.chosen = append(r.chosen[:len(keep)], t)
		r.domains = append(r.domains[:len(keep)], d)
		sets = append(sets[:len(keep)], set)
	}
	return nil
}

// domain returns the domain of a transition, based on the history before it. It is the source
// if all targets are in the source, otherwise the closest common ancestor of the source and the
// targets.
func (r *run) domain(t *transition) domain {
	if !t.reenter && r.allWithin(t) {
		return domain{t.source}
	}
	targets := r.effective(t.targets, nil)
	for a := firstOr(targets, t.source).parent; a != nil; a = a.parent {
		if t.source.below(a) && allBelow(targets, a) {
			return domain{a}
		}
	}
	if t.reenter {
		return domain{}
	}
	return domain{r.a.logic.machine.root}
}

func firstOr(nodes []*node, n *node) *node {
	if len(nodes) > 0 {
		return nodes[0]
	}
	return n
}

func allBelow(nodes []*node, a *node) bool {
	for _, n := range nodes {
		if !n.below(a) {
			return false
		}
	}
	return true
}

func (r *run) allWithin(t *transition) bool {
	for _, n := range r.effective(t.targets, nil) {
		if n != t.source && !n.below(t.source) {
			return false
		}
	}
	return true
}

// effective replaces history states by their stored or default states.
func (r *run) effective(targets, all []*node) []*node {
	if all == nil && !slices.ContainsFunc(targets, isHistory) {
		return targets
	}
	for _, n := range targets {
		switch past, ok := r.now.history[n]; {
		case n.kind != history:
			all = appendNew(all, n)
		case ok:
			for _, p := range past {
				all = appendNew(all, p)
			}
		default:
			all = r.effective(n.defaults, nonNil(all))
		}
	}
	return all
}

func isHistory(n *node) bool { return n.kind == history }

func nonNil(nodes []*node) []*node {
	if nodes == nil {
		return []*node{}
	}
	return nodes
}

func appendNew(all []*node, n *node) []*node {
	if slices.Contains(all, n) {
		return all
	}
	return append(all, n)
}

// exitsOf returns the active states that a transition exits.
func (r *run) exitsOf(t *transition, d domain) nodeset {
	set := newNodeset(len(r.a.logic.machine.nodes))
	if len(t.targets) == 0 {
		return set
	}
	if t.reenter && t.source == d.node {
		set.add(d.node)
	}
	for _, n := range r.after.nodes {
		if n.below(d.node) {
			set.add(n)
		}
	}
	return set
}

// exitSet computes all states to exit, in reverse document order.
func (r *run) exitSet() {
	r.exits = r.exits[:0]
	for i, t := range r.chosen {
		if len(t.targets) == 0 {
			continue
		}
		d := r.domains[i]
		for _, n := range r.after.nodes {
			if n.below(d.node) || t.reenter && n == t.source && n == d.node {
				r.exits = appendNew(r.exits, n)
			}
		}
	}
	slices.SortFunc(r.exits, func(a, b *node) int { return b.order - a.order })
}

// remember records the active descendants of the exited states, for their history states.
func (r *run) remember() (history map[*node][]*node, remembered bool) {
	history = r.now.history
	for _, n := range r.exits {
		for _, h := range n.histories {
			if !remembered {
				history, remembered = cloneHistory(history), true
			}
			history[h] = r.past(n, h.deep)
		}
	}
	return history, remembered
}

func cloneHistory(h map[*node][]*node) map[*node][]*node {
	c := make(map[*node][]*node, len(h)+1)
	for k, v := range h {
		c[k] = v
	}
	return c
}

func (r *run) past(n *node, deep bool) []*node {
	past := []*node{}
	for _, s := range r.after.nodes {
		if deep && s.isLeaf() && s.below(n) || !deep && s.parent == n {
			past = append(past, s)
		}
	}
	return past
}

func (r *run) exitStates() error {
	for _, n := range r.exits {
		if err := r.do(n.exit); err != nil {
			return err
		}
		for _, inv := range n.invokes {
			r.changed = true
			if c := r.now.children.get(inv.id); c != nil {
				r.now.children = r.now.children.without(inv.id)
				r.a.stopChild(c)
			}
		}
		r.after.set.remove(n)
	}
	if len(r.exits) > 0 {
		r.after.nodes = slices.DeleteFunc(r.after.nodes, func(n *node) bool { return !r.after.set.has(n) })
	}
	return nil
}
