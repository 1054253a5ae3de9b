package statechart

import (
	"fmt"
	"strings"
)

// transitions compiles the value of an event: a target, a transition or a list of transitions.
func (p *parser) transitions(place string, n *node, v any) []*transition {
	l, ok := v.([]any)
	if !ok {
		return p.one(place, n, v)
	}
	all := []*transition{}
	for i, e := range l {
		all = append(all, p.one(nth(place, i), n, e)...)
	}
	return all
}

func (p *parser) one(place string, n *node, v any) []*transition {
	switch v := v.(type) {
	case string:
		t := &transition{source: n, place: place}
		p.targets(place, t, v)
		return []*transition{t}
	case *object:
		return []*transition{p.transitionFrom(place, n, v, transitionKeys)}
	case nil:
		p.fail(place, "must not be null: write {} to forbid the event")
	default:
		p.fail(place, "must be a target or a transition")
	}
	return nil
}

var transitionKeys = []string{"target", "guard", "actions", "reenter", "description", "meta"}

func (p *parser) transitionFrom(place string, n *node, o *object, keys []string) *transition {
	p.keys(place, o, "a transition", keys)
	t := &transition{source: n, place: place, description: p.text(place, o, "description")}
	if v, ok := o.get("target"); ok {
		p.targets(at(place, "target"), t, v)
	}
	if v, ok := o.get("guard"); ok {
		t.guard = p.guard(at(place, "guard"), v)
	}
	t.actions = p.actions(at(place, "actions"), o, "actions")
	if v, ok := o.get("reenter"); ok {
		if t.reenter, ok = v.(bool); !ok {
			p.fail(at(place, "reenter"), "must be a boolean")
		}
	}
	return t
}

func (p *parser) targets(place string, t *transition, v any) {
	if v == "" {
		return
	}
	names, ok := texts(v)
	if !ok {
		p.fail(place, "must be a string or a list of strings")
		return
	}
	t.targeted = true
	for _, name := range names {
		to, err := p.m.target(t.source, name)
		if err != nil {
			p.fail(place, "is %q: %v", name, err)
			continue
		}
		t.targets = append(t.targets, to)
	}
	p.checkTogether(place, t.targets)
}

// checkTogether rejects targets that cannot be active at the same time.
func (p *parser) checkTogether(place string, targets []*node) {
	for i, a := range targets {
		for _, b := range targets[:i] {
			c := commonAncestor(a, b)
			if a != b && c != a && c != b && c.kind != parallel {
				p.fail(place, "names %s and %s, which are never active together", b.id, a.id)
			}
		}
	}
}

func commonAncestor(a, b *node) *node {
	for a != b && !b.below(a) {
		a = a.parent
	}
	return a
}

// after compiles delayed transitions: a raise on entry, a cancel on exit, and the transitions
// of the raised event.
func (p *parser) after(n *node, cfg *object) {
	v, ok := cfg.get("after")
	if !ok {
		return
	}
	place := at(n.place, "after")
	switch v := v.(type) {
	case *object:
		p.afterObject(place, n, v)
	case []any:
		p.afterArray(place, n, v)
	default:
		p.fail(place, "must be an object with delays as keys")
	}
}

func (p *parser) afterObject(place string, n *node, o *object) {
	if wrong := transitionKeysOf(o); len(wrong) > 0 && !p.knowsDelays(wrong) {
		p.fail(place, "has the keys %s, but its keys are delays: write {%q: …}", strings.Join(wrong, " and "), "1000")
		return
	}
	for _, key := range o.keys {
		d := p.afterKey(at(place, key), key)
		p.delayed(n, d, p.transitions(at(place, key), n, o.value(key)))
	}
}

// transitionKeysOf returns the keys of a transition, for an author who wrote after as a
// transition.
func transitionKeysOf(o *object) []string {
	var found []string
	for _, k := range []string{"delay", "target", "actions", "guard", "reenter", "cond"} {
		if _, ok := o.get(k); ok {
			found = append(found, k)
		}
	}
	return found
}

func (p *parser) knowsDelays(names []string) bool {
	for _, name := range names {
		if _, ok := p.namedDelay(name); !ok {
			return false
		}
	}
	return true
}

// afterArray compiles XState v4's array form, in which each transition has its delay next to
// the target.
func (p *parser) afterArray(place string, n *node, l []any) {
	var order []string
	delays, transitions := map[string]delay{}, map[string][]*transition{}
	for i, e := range l {
		o, ok := e.(*object)
		if !ok || o.value("delay") == nil {
			p.fail(nth(place, i), "must have a delay")
			continue
		}
		d := p.delay(at(nth(place, i), "delay"), o.value("delay"))
		if d.name == "" {
			p.fail(at(nth(place, i), "delay"), "must be a number or a name")
			continue
		}
		if _, ok := delays[d.name]; !ok {
			order = append(order, d.name)
			delays[d.name] = d
		}
		keys := append([]string{"delay"}, transitionKeys...)
		transitions[d.name] = append(transitions[d.name], p.transitionFrom(nth(place, i), n, o, keys))
	}
	for _, name := range order {
		p.delayed(n, delays[name], transitions[name])
	}
}

func (p *parser) delayed(n *node, d delay, ts []*transition) {
	name := afterPrefix + d.name + "." + n.id
	n.entry = append(n.entry, &raiseAction{event: eventSource{static: staticMessage(Event{Type: name})}, delay: &d, id: name})
	n.exit = append(n.exit, &cancelAction{id: literal{name}})
	for _, own := range n.descriptors {
		if own.name == name {
			own.transitions = append(own.transitions, ts...)
			return
		}
	}
	n.describe(name, ts, true)
}

var invokeKeys = []string{"src", "id", "systemId", "input", "onDone", "onError", "onSnapshot", "description", "meta"}

func (p *parser) invokes(n *node, cfg *object) {
	v, ok := cfg.get("invoke")
	if !ok {
		return
	}
	place := at(n.place, "invoke")
	l, isList := v.([]any)
	if !isList {
		p.invoke(place, n, v, 0)
		return
	}
	for i, e := range l {
		p.invoke(nth(place, i), n, e, i)
	}
}

func (p *parser) invoke(place string, n *node, v any, i int) {
	o, ok := v.(*object)
	if !ok {
		p.fail(place, "must be an object")
		return
	}
	p.keys(place, o, "invoke", invokeKeys)
	inv := &invoke{id: p.text(place, o, "id"), src: p.text(place, o, "src"), systemID: p.text(place, o, "systemId")}
	if inv.id == "" {
		inv.id = fmt.Sprintf("%d.%s", i, n.id)
	}
	inv.logic = p.actor(at(place, "src"), inv.src)
	if v, ok := o.get("input"); ok {
		inv.input = p.template(at(place, "input"), v, "context", "event")
	}
	_, inv.sync = o.get("onSnapshot")
	n.invokes = append(n.invokes, inv)
	n.invokeIDs = append(n.invokeIDs, inv.id)
	p.invokeEvents(place, n, o, inv.id)
}

func (p *parser) invokeEvents(place string, n *node, o *object, id string) {
	for _, e := range []struct{ key, prefix string }{
		{"onDone", doneActorPrefix}, {"onError", errorActorPrefix}, {"onSnapshot", snapshotPrefix},
	} {
		if v, ok := o.get(e.key); ok {
			n.describe(e.prefix+id, p.transitions(at(place, e.key), n, v), true)
		}
	}
}

// actor returns the logic for a src.
func (p *parser) actor(place, src string) logic {
	if src == "" {
		p.fail(place, "must name an actor")
		return logic{}
	}
	if chart, ok := p.charts[src]; ok {
		return p.childLogic(src, chart)
	}
	switch a := p.reg.Actors[src].(type) {
	case Chart:
		return p.childLogic(src, a)
	case Promise:
		p.m.tasks = append(p.m.tasks, src)
	default:
		if !p.reg.Open {
			p.fail(place, "names the actor %q, which is not registered", src)
		}
		p.m.tasks = append(p.m.tasks, src)
	}
	return logic{}
}

func (p *parser) childLogic(src string, chart any) logic {
	m := p.child(src, chart)
	p.m.children[src] = m
	return logic{machine: m}
}
