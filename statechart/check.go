package statechart

import "strings"

// checkStructure checks a machine as a whole.
func (p *parser) checkStructure() {
	p.checkHistory()
	if len(p.problems) > 0 {
		return
	}
	if !p.opts.AllowUnreachable {
		p.checkReachable()
	}
	if !p.opts.AllowCycles {
		p.checkCycles()
	}
}

// checkHistory resolves the defaults of history states and rejects history states that lead to
// themselves.
func (p *parser) checkHistory() {
	for _, n := range p.m.nodes {
		if n.kind == history && n.viaInitial {
			n.defaults = []*node{n.parent.initial}
		}
	}
	for _, n := range p.m.nodes {
		if n.kind == history && leadsTo(n, n, 0) {
			p.fail(n.place, "must not have itself as its default state")
		}
	}
}

func leadsTo(from, n *node, depth int) bool {
	for _, d := range from.defaults {
		if d == n || d.kind == history && (depth > maxNesting || leadsTo(d, n, depth+1)) {
			return true
		}
	}
	return false
}

// checkReachable rejects states that no transition can reach, even if all guards hold.
func (p *parser) checkReachable() {
	r := reach{seen: newNodeset(len(p.m.nodes)), whole: newNodeset(len(p.m.nodes))}
	r.byDefault(p.m.root)
	for len(r.todo) > 0 {
		n := r.todo[len(r.todo)-1]
		r.todo = r.todo[:len(r.todo)-1]
		r.leave(n)
	}
	for _, n := range p.m.nodes {
		if !r.seen.has(n) && (n.parent == nil || r.seen.has(n.parent)) {
			p.fail(n.place, "is not reachable: no transition leads to the state")
		}
	}
}

type reach struct {
	seen  nodeset
	whole nodeset // entered by default, with their initial states
	todo  []*node
}

// byDefault adds a named state and its initial states.
func (r *reach) byDefault(n *node) {
	if n == nil || r.whole.has(n) {
		return
	}
	r.whole.add(n)
	r.through(n)
	switch n.kind {
	case compound:
		r.byDefault(n.initial)
	case parallel:
		for _, c := range n.regions {
			r.byDefault(c)
		}
	case atomic, final, history:
	}
}

// through adds a state and its ancestors, with the sibling regions.
func (r *reach) through(n *node) {
	if n == nil || r.seen.has(n) {
		return
	}
	r.seen.add(n)
	r.todo = append(r.todo, n)
	r.through(n.parent)
	if n.parent == nil || n.parent.kind != parallel {
		return
	}
	for _, c := range n.parent.regions {
		if c != n {
			r.byDefault(c)
		}
	}
}

// leave follows the transitions of a state.
func (r *reach) leave(n *node) {
	for _, d := range n.descriptors {
		r.follow(d.transitions)
	}
	r.follow(n.always)
	for _, d := range n.defaults {
		r.byDefault(d)
	}
}

func (r *reach) follow(ts []*transition) {
	for _, t := range ts {
		for _, n := range t.targets {
			r.byDefault(n)
		}
	}
}

// checkCycles rejects endless cycles of eventless transitions. In such a cycle each transition
// is the first of its state and has no guard.
func (p *parser) checkCycles() {
	for _, n := range p.m.nodes {
		if t := forced(n); t != nil && t.source == n {
			p.checkCycle(n)
		}
	}
}

func (p *parser) checkCycle(n *node) {
	seen := newNodeset(len(p.m.nodes))
	var path []string
	for at := n; ; {
		t := forced(at)
		if t == nil || len(t.targets) != 1 {
			p.checkIdle(t)
			return
		}
		path = append(path, t.source.id)
		if seen.has(t.source) {
			break
		}
		seen.add(t.source)
		at = firstLeaf(t.targets[0])
		if at == nil {
			return
		}
	}
	if path[len(path)-1] == n.id { // report a cycle once for each of its states
		p.fail(at(n.place, "always"), "must not be part of a cycle without events or guards: %s", strings.Join(path, " → "))
	}
}

// checkIdle rejects an eventless transition that stays in its state and changes the context,
// because it would be taken endlessly.
func (p *parser) checkIdle(t *transition) {
	if t == nil || len(t.targets) > 0 {
		return
	}
	for _, x := range t.actions {
		switch x.(type) {
		case *assignAction, *assignTemplate:
			p.fail(t.place, "must have a target or a guard: it is taken indefinitely")
			return
		}
	}
}

// forced returns the eventless transition that is always taken in a leaf, regardless of guards.
func forced(leaf *node) *transition {
	for n := leaf; n != nil; n = n.parent {
		if len(n.always) == 0 {
			continue
		}
		if n.always[0].guard != nil {
			return nil
		}
		return n.always[0]
	}
	return nil
}

// firstLeaf returns the leaf that is active after a state was entered, if there is exactly one.
func firstLeaf(n *node) *node {
	for n != nil && n.kind == compound {
		n = n.initial
	}
	if n == nil || !n.isLeaf() {
		return nil
	}
	return n
}
