package statechart

// value returns XState's state value: a key, or an object of keys and values. A state that is
// active without any of its child states shows its initial states. This happens if a machine
// fails immediately at its start.
func (m *Machine) value(s *snap) any { return s.valueBelow(m.root) }

func (s *snap) valueBelow(n *node) any {
	switch n.kind {
	case compound:
		c := s.activeChild(n)
		if c == nil {
			c = n.initial
		}
		if c == nil {
			return map[string]any{}
		}
		if c.isLeaf() {
			return c.key
		}
		return map[string]any{c.key: s.valueBelow(c)}
	case parallel:
		v := make(map[string]any, len(n.regions))
		for _, c := range n.regions {
			v[c.key] = s.valueBelow(c)
		}
		return v
	default:
		return map[string]any{}
	}
}

// pathValue returns the state value for a path.
func pathValue(path string) any {
	keys := splitPath(path)
	var v any = keys[len(keys)-1]
	for i := len(keys) - 2; i >= 0; i-- {
		v = map[string]any{keys[i]: v}
	}
	return v
}

// matchesValue reports whether the state value outer matches inner, which is at least as
// specific.
func matchesValue(outer, inner any) bool {
	if path, ok := outer.(string); ok {
		outer = pathValue(path)
	}
	in, ok := inner.(map[string]any)
	if !ok {
		return outer == inner
	}
	switch out := outer.(type) {
	case string:
		_, ok := in[out]
		return ok
	case map[string]any:
		for k, v := range out {
			sub, ok := in[k]
			if !ok || !matchesValue(v, sub) {
				return false
			}
		}
		return true
	default:
		return false
	}
}
