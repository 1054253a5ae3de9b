package statechart

import "slices"

// A State describes an actor.
type State struct {
	// ID is the actor's id, "" for the root.
	ID string `json:"id,omitempty"`
	// Path and Generation identify the actor in its tree.
	Path       string `json:"path,omitempty"`
	Generation int64  `json:"generation"`
	// Src is the name of the actor's logic, "" for the root.
	Src string `json:"src,omitempty"`
	// Invocation is true for an invocation, which has no states and no context.
	Invocation bool   `json:"invocation,omitempty"`
	Status     Status `json:"status"`
	// Value is XState's state value.
	Value any `json:"value,omitempty"`
	// Active are the ids of the active states in document order.
	Active  []string       `json:"active,omitempty"`
	Context map[string]any `json:"context,omitempty"`
	// Tags are the tags of the active states, sorted.
	Tags []string `json:"tags,omitempty"`
	// Meta has the meta of each active state by its id.
	Meta      map[string]any `json:"meta,omitempty"`
	Output    any            `json:"output,omitempty"`
	HasOutput bool           `json:"-"`
	Error     any            `json:"error,omitempty"`
	Children  []State        `json:"children,omitempty"`
}

// State returns the state of the root and its descendants. It must not be modified.
func (t *Tree) State() State { return t.root.state() }

// Status returns the status of the root.
func (t *Tree) Status() Status { return t.root.snap.status }

// Pending returns the invocations that are running, as they were started.
func (t *Tree) Pending() []InvokeOp { return t.root.pending(nil) }

func (a *actor) pending(all []InvokeOp) []InvokeOp {
	if a.logic.machine == nil && a.phase == running {
		all = append(all, a.task(true))
	}
	for _, c := range a.snap.children {
		all = c.pending(all)
	}
	return all
}

func (a *actor) state() State {
	s := State{
		ID: a.id, Path: a.path(), Generation: a.generation, Src: a.src, Status: a.snap.status,
		Output: a.snap.output, HasOutput: a.snap.hasOutput, Error: a.snap.err, Invocation: a.logic.machine == nil,
	}
	if s.Invocation {
		return s
	}
	s.Value = a.logic.machine.value(&a.snap)
	s.Context = a.snap.context
	s.Tags = a.snap.tags()
	for _, n := range a.logic.machine.nodes {
		if !a.snap.active.has(n) {
			continue
		}
		s.Active = append(s.Active, n.id)
		if n.hasMeta {
			s.addMeta(n)
		}
	}
	for _, c := range a.snap.children {
		s.Children = append(s.Children, c.state())
	}
	return s
}

func (s *State) addMeta(n *node) {
	if s.Meta == nil {
		s.Meta = map[string]any{}
	}
	s.Meta[n.id] = n.meta
}

func (s *snap) tags() []string {
	var tags []string
	for _, n := range s.nodes {
		tags = append(tags, n.tags...)
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}
