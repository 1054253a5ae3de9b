package statechart

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/fault"
)

const (
	// maxStates is the maximum number of states of a machine.
	maxStates = 5000
	// maxProblems is the maximum number of problems that Parse reports.
	maxProblems = 50
	// DefaultMaxIterations is the default maximum number of microsteps of a macrostep.
	DefaultMaxIterations = 500
	// DefaultMaxEvents is the default maximum number of events and microsteps of a tree in one
	// call.
	DefaultMaxEvents = 10_000
)

// Options configure what Parse accepts and when a running machine is stopped. The zero value is
// strict.
type Options struct {
	// MaxIterations is the maximum number of microsteps of a macrostep before the actor fails;
	// 0 means DefaultMaxIterations. A document's own options.maxIterations takes precedence.
	MaxIterations int
	// MaxEvents is the maximum number of events and microsteps of all actors of a tree in one
	// call; 0 means DefaultMaxEvents. A call that exceeds it, or one of the limits below, fails
	// with a *LimitError.
	MaxEvents int
	// MaxContext is the maximum size of the context of an actor in bytes; 0 means
	// DefaultMaxContext. MaxDocument bounds the total of the contexts of a tree.
	MaxContext int
	// MaxOutputs is the maximum number of timers, effects, emitted events, log entries and
	// sends in one call; 0 means DefaultMaxOutputs.
	MaxOutputs int
	// Interrupt is called at the start of each call. The function that it returns is called
	// repeatedly during the call. The call fails when that function returns true. Use it for a
	// time limit: this package reads no clock. Default: no time limit.
	Interrupt func() (expired func() bool)
	// AllowUnknown accepts names that are not registered, for inspecting a machine without its
	// functions. Unknown actions are effects and unknown actors are invocations, as in an open
	// Registry. Unknown guards and delays fail the actor that needs them.
	AllowUnknown bool
	// AllowUnreachable accepts states that no transition leads to.
	AllowUnreachable bool
	// AllowCycles accepts eventless transitions that form a cycle regardless of guards. The
	// actor fails when it reaches the cycle.
	AllowCycles bool
}

func (o Options) limits() limits {
	return limits{
		iterations: positive(o.MaxIterations, DefaultMaxIterations), events: positive(o.MaxEvents, DefaultMaxEvents),
		outputs: positive(o.MaxOutputs, DefaultMaxOutputs), context: positive(o.MaxContext, DefaultMaxContext), interrupt: o.Interrupt,
	}
}

func positive(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

// Problems are all errors that Parse found in a document, each with its place:
// machine.states.idle.on.GO.target.
type Problems []*fault.Invalid

// Error returns the problems, one per line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, e := range p {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each problem as an error.
func (p Problems) Unwrap() []error {
	all := make([]error, len(p))
	for i, e := range p {
		all[i] = e
	}
	return all
}

// Parse reads, checks and compiles the document of a machine, and the documents of the child
// machines that it can start. Registry and options may be nil. Errors in the document are
// returned as [Problems].
func Parse(raw []byte, reg *Registry, opts *Options) (*Machine, error) {
	b := &builder{charts: map[string]any{}, machines: map[string]*Machine{}}
	if reg != nil {
		b.reg = *reg
	}
	if opts != nil {
		b.opts = *opts
	}
	b.reg.Open = b.reg.Open || b.opts.AllowUnknown
	m := &Machine{}
	b.machine("machine", m, raw)
	if len(b.problems) > 0 {
		return nil, b.problems
	}
	return m, nil
}

// A builder compiles a machine and its children.
type builder struct {
	reg      Registry
	opts     Options
	charts   map[string]any      // documents embedded in another document, decoded
	machines map[string]*Machine // by actor name
	problems Problems
}

func (b *builder) fail(place, format string, args ...any) {
	e := fault.Invalidf(place, format, args...)
	if len(b.problems) < maxProblems && !slices.ContainsFunc(b.problems, func(o *fault.Invalid) bool { return *o == *e }) {
		b.problems = append(b.problems, e)
	}
}

// machine decodes and compiles a document into m.
func (b *builder) machine(place string, m *Machine, raw []byte) {
	v, err := decode(place, raw)
	if err != nil {
		b.problem(err)
		return
	}
	b.compile(place, m, v)
}

func (b *builder) problem(err error) {
	if invalid, ok := err.(*fault.Invalid); ok { //nolint:errorlint // decode returns it as it is
		b.problems = append(b.problems, invalid)
	}
}

// compile creates the states first, and then everything that refers to them.
func (b *builder) compile(place string, m *Machine, v any) {
	cfg, ok := v.(*object)
	if !ok {
		b.fail(place, "must be an object")
		return
	}
	before := len(b.problems)
	p := &parser{builder: b, m: m, place: place, configs: map[*node]*object{}}
	m.byID, m.children = map[string]*node{}, map[string]*Machine{}
	p.header(cfg)
	m.root = p.state(place, m.id, nil, cfg)
	for _, n := range m.nodes {
		p.fill(n, p.configs[n])
	}
	p.routes()
	if len(b.problems) == before {
		p.checkStructure()
	}
}

// child returns the machine for an actor's name. It compiles the machine when the name first
// occurs. A machine may start itself.
func (b *builder) child(name string, chart any) *Machine {
	if m, ok := b.machines[name]; ok {
		return m
	}
	m := &Machine{}
	b.machines[name] = m
	place := at("machines", name)
	if raw, ok := chart.(Chart); ok {
		b.machine(place, m, raw)
	} else {
		b.compile(place, m, chart)
	}
	return m
}

// A parser compiles one document.
type parser struct {
	*builder
	m       *Machine
	place   string
	configs map[*node]*object
	delays  map[string]delay
}

var rootKeys = []string{"version", "context", "options", "schemas", "types", "delays", "machines", "$schema"}

// header reads the keys that only the root has.
func (p *parser) header(cfg *object) {
	p.m.id = p.text(p.place, cfg, "id")
	if p.m.id == "" {
		p.m.id = "(machine)"
	}
	p.m.version = p.version(cfg)
	p.m.limits = p.opts.limits()
	p.options(cfg)
	p.ownCharts(cfg)
	p.ownDelays(cfg)
	if v, ok := cfg.get("context"); ok {
		p.context(at(p.place, "context"), v)
	}
}

func (p *parser) version(cfg *object) string {
	if n, ok := cfg.value("version").(int64); ok {
		return strconv.FormatInt(n, 10)
	}
	return p.text(p.place, cfg, "version")
}

func (p *parser) context(place string, v any) {
	if _, ok := v.(*object); !ok {
		p.fail(place, "must be an object")
		return
	}
	p.m.context = p.template(place, v, "input")
}

func (p *parser) options(cfg *object) {
	o, ok := p.object(p.place, cfg, "options")
	if !ok {
		return
	}
	place := at(p.place, "options")
	p.keys(place, o, "options", []string{"maxIterations"})
	if v, ok := o.get("maxIterations"); ok {
		n, isInt := v.(int64)
		if !isInt || n < 1 || n > 1_000_000 {
			p.fail(at(place, "maxIterations"), "must be between 1 and 1000000")
			return
		}
		p.m.limits.iterations = int(n)
	}
}

// ownCharts reads the child machines that the document itself defines.
func (p *parser) ownCharts(cfg *object) {
	o, ok := p.object(p.place, cfg, "machines")
	if !ok {
		return
	}
	for _, name := range o.keys {
		_, known := p.charts[name]
		if _, registered := p.reg.Actors[name]; registered || known {
			p.fail(at(at(p.place, "machines"), name), "is already the name of another actor")
			continue
		}
		p.charts[name] = o.value(name)
	}
}

// state creates the node of a state and the nodes of its descendants.
func (p *parser) state(place, key string, parent *node, cfg *object) *node {
	n := &node{key: key, place: place, parent: parent, order: len(p.m.nodes)}
	n.id = p.stateID(n, cfg)
	if n.order >= maxStates {
		if n.order == maxStates {
			p.fail(place, "exceeds the limit of %d states", maxStates)
		}
		return n
	}
	p.m.nodes = append(p.m.nodes, n)
	p.configs[n] = cfg
	p.stateKeys(n, cfg)
	if twin, ok := p.m.byID[n.id]; ok {
		p.fail(place, "has id %q, which %s already has", n.id, twin.place)
	}
	p.m.byID[n.id] = n
	p.substates(n, cfg)
	n.kind = p.kind(n, cfg)
	n.last = len(p.m.nodes) - 1
	return n
}

var stateKeys = []string{
	"id", "type", "initial", "states", "entry", "exit", "on", "after", "always", "onDone", "invoke", "tags", "meta",
	"description", "output", "history", "target", "route",
}

func (p *parser) stateKeys(n *node, cfg *object) {
	known := stateKeys
	if n.parent == nil {
		known = append(slices.Clone(stateKeys), rootKeys...)
	}
	p.keys(n.place, cfg, "a state", known)
}

func (p *parser) stateID(n *node, cfg *object) string {
	if id := p.text(n.place, cfg, "id"); id != "" {
		return id
	}
	path := []string{}
	for a := n; a.parent != nil; a = a.parent {
		path = append(path, a.key)
	}
	path = append(path, p.m.id)
	slices.Reverse(path)
	return strings.Join(path, ".")
}

func (p *parser) substates(n *node, cfg *object) {
	states, ok := p.object(n.place, cfg, "states")
	if !ok {
		return
	}
	for _, key := range states.keys {
		place := at(at(n.place, "states"), key)
		sub, ok := states.value(key).(*object)
		if !ok {
			p.fail(place, "must be an object")
			continue
		}
		if key == "" {
			p.fail(place, "must have a name")
		}
		c := p.state(place, key, n, sub)
		n.states = append(n.states, c)
		if c.kind == history {
			n.histories = append(n.histories, c)
			continue
		}
		n.regions = append(n.regions, c)
		n.reordered = n.reordered || isIndex(key)
	}
}

var kinds = map[string]kind{"atomic": atomic, "compound": compound, "parallel": parallel, "final": final, "history": history}

func (p *parser) kind(n *node, cfg *object) kind {
	name := p.text(n.place, cfg, "type")
	k, ok := kinds[name]
	switch {
	case name != "" && !ok:
		p.fail(at(n.place, "type"), "must be one of %s, got %q", strings.Join(slices.Sorted(maps.Keys(kinds)), ", "), name)
	case name == "" && len(n.states) > 0:
		k = compound
	case name == "" && hasHistory(cfg):
		k = history
	}
	if len(n.states) > 0 && k != compound && k != parallel {
		p.fail(at(n.place, "states"), "must not be below a state of type %s", name)
	}
	if k == history && n.parent == nil {
		p.fail(at(n.place, "type"), "must not be history for the root")
	}
	return k
}

func hasHistory(cfg *object) bool {
	v, ok := cfg.get("history")
	return ok && v != false && v != nil
}
