package statechart

import (
	"fmt"
	"strings"
)

// target returns the state that a transition's target names: "#id", "#id.child",
// ".child", "sibling", "sibling.child", or "." for the source itself.
func (m *Machine) target(source *node, name string) (*node, error) {
	switch {
	case strings.HasPrefix(name, "#"):
		return m.byRef(name)
	case name == ".":
		return source, nil
	case strings.HasPrefix(name, "."):
		return descend(source, splitPath(name[1:]))
	case source.parent == nil:
		return nil, fmt.Errorf("the root has no siblings, did you mean %q?", "."+name)
	default:
		return descend(source.parent, splitPath(name))
	}
}

// find returns the state for a path from a state, or for a "#id".
func (m *Machine) find(from *node, name string) (*node, error) {
	if strings.HasPrefix(name, "#") {
		return m.byRef(name)
	}
	return descend(from, splitPath(name))
}

// byRef returns the state for "#id" or "#id.child". A dot in an id must be escaped.
func (m *Machine) byRef(ref string) (*node, error) {
	path := splitPath(ref)
	n, ok := m.byID[path[0][1:]]
	if !ok {
		return nil, fmt.Errorf("no state has the id %q", path[0][1:])
	}
	return descend(n, path[1:])
}

func descend(n *node, path []string) (*node, error) {
	for _, key := range path {
		c := n.child(key)
		if c == nil {
			return nil, fmt.Errorf("%s has no state %q", n.id, key)
		}
		n = c
	}
	return n, nil
}

func (n *node) child(key string) *node {
	for _, c := range n.states {
		if c.key == key {
			return c
		}
	}
	return nil
}

// splitPath splits a path at dots. A backslash escapes the next character.
func splitPath(path string) []string {
	if !strings.Contains(path, `\`) {
		return strings.Split(path, ".")
	}
	var all []string
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '\\' && i+1 < len(path):
			i++
			b.WriteByte(path[i])
		case c == '.':
			all = append(all, b.String())
			b.Reset()
		default:
			b.WriteByte(c)
		}
	}
	return append(all, b.String())
}
