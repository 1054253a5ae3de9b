package statechart

import "slices"

// A Machine is a document that Parse has checked and compiled. It is never
// changed and can be used by many goroutines at once.
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

// limits bound what one call of a machine can do.
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

// Effects returns the names of all effects that the machine and its children
// can have, sorted.
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

// Events returns the event descriptors that the machine's states name, sorted;
// those that the interpreter sends itself are left out.
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

// States returns the paths of all states that can be active, each after the one that
// it is in: "open", "open.waiting".
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
	// order is the state's place in the document, last that of its last
	// descendant: the descendants are those in between.
	order, last int
	states      []*node // all children, history states too
	regions     []*node // the children that can be active
	histories   []*node
	reordered   bool // some region's key looks like an index

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
	defaults       []*node // of a history state: where to go without a past
	viaInitial     bool    // of a history state: its default is the parent's initial state
	tags           []string
	meta           any
	hasMeta        bool
	output         template // nil: none
	description    string
}

// A descriptor is a key of "on", or what the interpreter calls an event of its
// own, with its transitions.
type descriptor struct {
	name        string
	tokens      []string // of a wildcard
	internal    bool
	transitions []*transition
}

// A transition is taken when its guard holds.
type transition struct {
	source  *node
	targets []*node
	// targeted tells an empty list of targets from none: both stay, but only
	// the latter can forbid an event.
	targeted    bool
	reenter     bool
	guard       guard
	actions     []action
	place       string
	description string
}

// An invoke is an actor that lives as long as a state is active.
type invoke struct {
	id, src, systemID string
	logic             logic
	input             template
	sync              bool
}

// logic is what an actor runs: a machine, or an invocation if nil.
type logic struct{ machine *Machine }

// below says whether n is a proper descendant of a; everything is below nil.
func (n *node) below(a *node) bool {
	return a == nil || a.order < n.order && n.order <= a.last
}

// isLeaf says that the state has no states of its own that could be active.
func (n *node) isLeaf() bool { return n.kind == atomic || n.kind == final }

// matches says whether a wildcard stands for an event type, token by token.
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
