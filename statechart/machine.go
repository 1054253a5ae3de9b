package statechart

import "slices"

// A Machine is a document that Parse has checked and compiled. It is immutable and safe for
// concurrent use.
type Machine struct {
	id, version string
	root        *node
	nodes       []*node // in document order
	byID        map[string]*node
	context     template // nil: empty
	limits      limits
	hasAlways   bool
	effects     []string
	tasks       []string
	children    map[string]*Machine
}

// limits bound the work of one call of a machine.
type limits struct {
	iterations int
	events     int
	outputs    int
	context    int
	interrupt  func() func() bool
}

// ID returns the id of the machine's root state.
func (m *Machine) ID() string { return m.root.id }

// Version returns the version that the document states, or "".
func (m *Machine) Version() string { return m.version }

// Effects returns the names of all effects that the machine and its children can cause, sorted.
func (m *Machine) Effects() []string {
	return m.collect(func(m *Machine) []string { return m.effects })
}

// Invocations returns the names of all invocations that the machine and its children can
// start, sorted.
func (m *Machine) Invocations() []string {
	return m.collect(func(m *Machine) []string { return m.tasks })
}

func (m *Machine) collect(of func(*Machine) []string) []string {
	var names []string
	seen := map[*Machine]bool{}
	var visit func(*Machine)
	visit = func(m *Machine) {
		if seen[m] {
			return
		}
		seen[m] = true
		names = append(names, of(m)...)
		for _, c := range m.children {
			visit(c)
		}
	}
	visit(m)
	slices.Sort(names)
	return slices.Compact(names)
}

// Events returns the event descriptors that the machine's states name, sorted. It omits the
// events that the interpreter itself sends.
func (m *Machine) Events() []string {
	var names []string
	for _, n := range m.nodes {
		for _, d := range n.descriptors {
			if !d.internal {
				names = append(names, d.name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// States returns the paths of all states that can be active, each after its parent: "open",
// "open.waiting".
func (m *Machine) States() []string {
	var paths []string
	var walk func(prefix string, n *node)
	walk = func(prefix string, n *node) {
		for _, child := range n.regions {
			paths = append(paths, prefix+child.key)
			walk(prefix+child.key+".", child)
		}
	}
	walk("", m.root)
	return paths
}

type kind int

const (
	atomic kind = iota
	compound
	parallel
	final
	history
)

// A node is a state of a machine.
type node struct {
	key, id, place string
	kind           kind
	parent         *node
	// order is the state's position in the document. last is the position of its last
	// descendant: all descendants lie between them.
	order, last int
	states      []*node // all children, history states too
	regions     []*node // the children that can be active
	histories   []*node
	reordered   bool // the key of a region looks like an array index

	initial        *node
	initialActions []action
	entry, exit    []action
	invokes        []*invoke
	invokeIDs      []string
	descriptors    []*descriptor
	exact          map[string]*descriptor
	wild           []*descriptor // longest first
	always         []*transition
	deep           bool    // of a history state
	defaults       []*node // of a history state: the targets if there is no history
	viaInitial     bool    // of a history state: its default is the parent's initial state
	tags           []string
	meta           any
	hasMeta        bool
	output         template // nil: none
	description    string
}

// A descriptor is a key of "on", or an internal event name of the interpreter, with its
// transitions.
type descriptor struct {
	name        string
	tokens      []string // of a wildcard
	internal    bool
	transitions []*transition
}

// A transition is taken if its guard holds.
type transition struct {
	source  *node
	targets []*node
	// targeted distinguishes an empty list of targets from no list. Neither leaves the state,
	// but only a transition without a list can forbid an event.
	targeted    bool
	reenter     bool
	guard       guard
	actions     []action
	place       string
	description string
}

// An invoke is an actor that runs while a state is active.
type invoke struct {
	id, src, systemID string
	logic             logic
	input             template
	sync              bool
}

// logic is the logic of an actor: a machine, or an invocation if nil.
type logic struct{ machine *Machine }

// below reports whether n is a proper descendant of a. Every state is below nil.
func (n *node) below(a *node) bool {
	return a == nil || a.order < n.order && n.order <= a.last
}

// isLeaf reports whether the state has no child states that could be active.
func (n *node) isLeaf() bool { return n.kind == atomic || n.kind == final }

// matches reports whether a wildcard matches an event type, token by token.
func (d *descriptor) matches(tokens func() []string) bool {
	if d.tokens == nil {
		return true // "*"
	}
	event := tokens()
	for i, t := range d.tokens {
		if t == "*" {
			return i == len(d.tokens)-1
		}
		if i >= len(event) || event[i] != t {
			return false
		}
	}
	return true
}
