package statechart

import (
	"slices"
	"strings"
)

// Leads reports where an event can lead the actor at a path, regardless of guards. It returns
// the id of the deepest active state with transitions for exactly that event, and the ids of
// their target states.
func (t *Tree) Leads(path, event string) (state string, targets []string) {
	a := t.root
	for path != "" && a != nil {
		var id string
		id, path, _ = strings.Cut(path, "/")
		a = a.snap.children.get(pathUnescaper.Replace(id))
	}
	if a == nil || a.logic.machine == nil {
		return "", nil
	}
	for _, n := range slices.Backward(a.logic.machine.nodes) {
		d := n.exact[event]
		if d == nil || !a.snap.active.has(n) {
			continue
		}
		for _, tr := range d.transitions {
			targets = append(targets, names(tr.targets)...)
		}
		return n.id, slices.Compact(targets)
	}
	return "", nil
}

func names(nodes []*node) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.id
	}
	return out
}
