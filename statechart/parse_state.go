package statechart

import (
	"slices"
	"strings"
)

// fill compiles the references of a state, after all states exist.
func (p *parser) fill(n *node, cfg *object) {
	n.description = p.text(n.place, cfg, "description")
	n.meta, n.hasMeta = cfg.get("meta")
	n.meta = plain(n.meta)
	n.tags = p.tags(n, cfg)
	p.initialState(n, cfg)
	n.entry = p.actions(at(n.place, "entry"), cfg, "entry")
	n.exit = p.actions(at(n.place, "exit"), cfg, "exit")
	p.stateOutput(n, cfg)
	p.on(n, cfg)
	if v, ok := cfg.get("onDone"); ok {
		n.describe(doneStatePrefix+n.id, p.transitions(at(n.place, "onDone"), n, v), true)
	}
	p.invokes(n, cfg)
	p.after(n, cfg)
	if v, ok := cfg.get("always"); ok {
		n.always = p.transitions(at(n.place, "always"), n, v)
		p.m.hasAlways = p.m.hasAlways || len(n.always) > 0
	}
	if n.kind == history {
		p.history(n, cfg)
	}
	n.index()
}

func (p *parser) tags(n *node, cfg *object) []string {
	v, ok := cfg.get("tags")
	if !ok {
		return nil
	}
	tags, ok := texts(v)
	if !ok {
		p.fail(at(n.place, "tags"), "must be a string or a list of strings")
	}
	return tags
}

// texts returns one text or a list of texts as a list.
func texts(v any) ([]string, bool) {
	if s, ok := v.(string); ok {
		return []string{s}, true
	}
	l, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, len(l))
	for i, e := range l {
		if out[i], ok = e.(string); !ok {
			return nil, false
		}
	}
	return out, true
}

func (p *parser) initialState(n *node, cfg *object) {
	place := at(n.place, "initial")
	v, ok := cfg.get("initial")
	if !ok {
		if n.kind == compound {
			p.fail(place, "is required: the state has states")
		}
		return
	}
	name, isText := v.(string)
	if o, ok := v.(*object); ok {
		p.keys(place, o, "initial", []string{"target", "actions", "description", "meta"})
		name, isText = o.value("target").(string)
		n.initialActions = p.actions(at(place, "actions"), o, "actions")
	}
	if !isText {
		p.fail(place, "must name a state")
		return
	}
	i := slices.IndexFunc(n.states, func(s *node) bool { return s.key == name })
	if i < 0 {
		p.fail(place, "is %q, which is not a state below %s", name, n.id)
		return
	}
	n.initial = n.states[i]
}

// stateOutput compiles the output of the root and of final states. XState ignores the output of
// other states.
func (p *parser) stateOutput(n *node, cfg *object) {
	if v, ok := cfg.get("output"); ok && (n.parent == nil || n.kind == final) {
		n.output = p.template(at(n.place, "output"), v, "context", "event")
	}
}

func (p *parser) on(n *node, cfg *object) {
	on, ok := p.object(n.place, cfg, "on")
	if !ok {
		return
	}
	for _, name := range on.keys {
		place := at(at(n.place, "on"), name)
		if name == "" {
			p.fail(place, "is not an event: use always")
			continue
		}
		n.describe(name, p.transitions(place, n, on.value(name)), false)
	}
}

func (p *parser) history(n *node, cfg *object) {
	switch v := cfg.value("history"); v {
	case nil, true, "shallow", false:
	case "deep":
		n.deep = true
	default:
		p.fail(at(n.place, "history"), "must be shallow or deep")
	}
	if v, ok := cfg.get("target"); ok && v != "" {
		n.defaults = p.historyTargets(n, v)
		return
	}
	if n.parent != nil && n.parent.kind == parallel {
		n.defaults = []*node{n.parent}
		return
	}
	n.viaInitial = true // the default is resolved when all states are filled
}

func (p *parser) historyTargets(n *node, v any) []*node {
	place := at(n.place, "target")
	names, ok := texts(v)
	if !ok || n.parent == nil {
		p.fail(place, "must be a string or a list of strings")
		return nil
	}
	var all []*node
	for _, name := range names {
		t, err := p.m.find(n.parent, strings.TrimPrefix(name, "."))
		if err != nil {
			p.fail(place, "is %q: %v", name, err)
			continue
		}
		all = append(all, t)
	}
	return all
}

// describe sets the transitions of a descriptor, in the order of first occurrence.
func (n *node) describe(name string, ts []*transition, internal bool) {
	for _, d := range n.descriptors {
		if d.name == name {
			d.transitions = ts
			return
		}
	}
	n.descriptors = append(n.descriptors, &descriptor{name: name, transitions: ts, internal: internal})
}

// index prepares the descriptors for lookup.
func (n *node) index() {
	n.exact = make(map[string]*descriptor, len(n.descriptors))
	n.wild = nil
	for _, d := range n.descriptors {
		n.exact[d.name] = d
		switch {
		case d.name == "*":
			n.wild = append(n.wild, d)
		case strings.HasSuffix(d.name, ".*"):
			d.tokens = strings.Split(d.name, ".")
			n.wild = append(n.wild, d)
		}
	}
	slices.SortStableFunc(n.wild, func(a, b *descriptor) int { return scriptLength(b.name) - scriptLength(a.name) })
}

// routes gives the root a transition to each state that has a route and its own id.
func (p *parser) routes() {
	var all []*transition
	for _, n := range p.m.nodes[1:] {
		cfg := p.configs[n]
		route, ok := p.object(n.place, cfg, "route")
		if !ok || p.text(n.place, cfg, "id") == "" {
			continue
		}
		place := at(n.place, "route")
		t := p.transitionFrom(place, p.m.root, route, []string{"guard", "actions", "reenter", "description", "meta"})
		t.targets, t.targeted = []*node{n}, true
		t.guard = routed{to: "#" + n.id, and: t.guard}
		all = append(all, t)
	}
	if len(all) > 0 {
		p.m.root.describe(routeEvent, all, true)
		p.m.root.index()
	}
}
