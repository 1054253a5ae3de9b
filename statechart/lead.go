package statechart

import (
	"slices"
	"strings"
)

// Leads says what an event would concern of the actor at a path, whatever the
// guards say: the id of the deepest active state that has transitions for just
// that event, and the ids of the states that they lead to.
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
