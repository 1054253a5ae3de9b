package statechart

import (
	"slices"
	"strings"
)

// selectFor returns the transitions that an event enables: for each active branch, the
// transition of the deepest state that has one.
func (r *run) selectFor(m *message) ([]*transition, error) {
	r.found = r.found[:0]
	err := r.collect(r.a.logic.machine.root, m)
	return r.found, err
}

func (r *run) collect(n *node, m *message) error {
	before := len(r.found)
	switch n.kind {
	case compound:
		if c := r.now.activeChild(n); c != nil {
			if err := r.collect(c, m); err != nil {
				return err
			}
		}
	case parallel:
		for _, c := range r.now.activeRegions(n) {
			if err := r.collect(c, m); err != nil {
				return err
			}
		}
	case atomic, final, history:
	}
	if len(r.found) > before {
		return nil
	}
	return r.candidate(n, m)
}

func (s *snap) activeChild(n *node) *node {
	for _, c := range n.regions {
		if s.active.has(c) {
			return c
		}
	}
	return nil
}

// activeRegions returns the active children of a parallel state in the order in which they were
// entered, because that is the key order of XState's state value. After a transition in one
// region this order can differ from document order.
func (s *snap) activeRegions(n *node) []*node {
	if !n.reordered && s.inDocumentOrder(n) {
		return n.regions
	}
	all := make([]*node, 0, len(n.regions))
	for _, c := range s.nodes {
		if c.parent == n {
			all = append(all, c)
		}
	}
	if n.reordered {
		slices.SortStableFunc(all, func(a, b *node) int { return compareKeys(a.key, b.key) })
	}
	return all
}

// inDocumentOrder reports whether all regions are active, in document order.
func (s *snap) inDocumentOrder(n *node) bool {
	i := 0
	for _, c := range s.nodes {
		if c.parent != n {
			continue
		}
		if i == len(n.regions) || n.regions[i] != c {
			return false
		}
		i++
	}
	return i == len(n.regions)
}

// candidate adds the first transition of a state that the event and the guards allow:
// transitions of the exact event first, then transitions of wildcards.
func (r *run) candidate(n *node, m *message) error {
	if d, ok := n.exact[m.Type]; ok {
		if done, err := r.firstOf(d.transitions); done || err != nil {
			return err
		}
	}
	if len(n.wild) == 0 {
		return nil
	}
	var split []string
	tokens := func() []string {
		if split == nil {
			split = strings.Split(m.Type, ".")
		}
		return split
	}
	for _, d := range n.wild {
		if d.name == m.Type || !d.matches(tokens) {
			continue
		}
		if done, err := r.firstOf(d.transitions); done || err != nil {
			return err
		}
	}
	return nil
}

func (r *run) firstOf(ts []*transition) (bool, error) {
	for _, t := range ts {
		ok, err := t.passes(r)
		if err != nil {
			return false, err
		}
		if ok {
			r.found = append(r.found, t)
			return true, nil
		}
	}
	return false, nil
}

// selectEventless returns the enabled eventless transitions.
func (r *run) selectEventless() ([]*transition, error) {
	r.found = r.found[:0]
	for _, leaf := range r.now.nodes {
		if !leaf.isLeaf() {
			continue
		}
		if err := r.eventlessFrom(leaf); err != nil {
			return nil, err
		}
	}
	return r.found, nil
}

func (r *run) eventlessFrom(leaf *node) error {
	for n := leaf; n != nil; n = n.parent {
		for _, t := range n.always {
			if t.guard != nil {
				ok, err := t.guard.test(r)
				if err != nil {
					return err
				}
				if !ok {
					continue
				}
			}
			if !slices.Contains(r.found, t) {
				r.found = append(r.found, t)
			}
			return nil
		}
	}
	return nil
}
