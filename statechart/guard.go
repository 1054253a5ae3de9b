package statechart

import (
	"errors"
	"fmt"
)

// A guard decides based on the state before a microstep.
type guard interface {
	test(r *run) (bool, error)
	// label is the name in error texts, "" if the guard has none.
	label() string
}

type (
	namedGuard struct {
		name   string
		fn     Guard
		params template
	}
	exprGuard struct{ when *expression }
	allOf     []guard
	anyOf     []guard
	noneOf    struct{ guard }
	inState   struct{ node *node }
	inValue   struct{ value any }
	routed    struct {
		to  string
		and guard
	}
)

func (g *namedGuard) label() string { return g.name }
func (exprGuard) label() string     { return "expr" }
func (allOf) label() string         { return "" }
func (anyOf) label() string         { return "" }
func (noneOf) label() string        { return "" }
func (inState) label() string       { return "" }
func (inValue) label() string       { return "" }
func (routed) label() string        { return "" }

func (g *namedGuard) test(r *run) (bool, error) {
	params, err := evalParams(g.params, r.scope())
	if err != nil {
		return false, err
	}
	return g.fn.call(r.args(params))
}

func (g exprGuard) test(r *run) (bool, error) {
	v, err := g.when.run(r.scope())
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("the expression gives %T, not a bool", v)
	}
	return b, nil
}

func (g allOf) test(r *run) (bool, error) {
	for _, each := range g {
		if ok, err := each.test(r); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func (g anyOf) test(r *run) (bool, error) {
	for _, each := range g {
		if ok, err := each.test(r); err != nil || ok {
			return ok, err
		}
	}
	return false, nil
}

func (g noneOf) test(r *run) (bool, error) {
	ok, err := g.guard.test(r)
	return !ok && err == nil, err
}

func (g inState) test(r *run) (bool, error) { return r.now.active.has(g.node), nil }

func (g inValue) test(r *run) (bool, error) {
	return matchesValue(g.value, r.a.logic.machine.value(&r.now)), nil
}

func (g routed) test(r *run) (bool, error) {
	if r.event.Data["to"] != g.to || g.and == nil {
		return r.event.Data["to"] == g.to, nil
	}
	return g.and.test(r)
}

// passes evaluates the guard of a transition for an event.
func (t *transition) passes(r *run) (bool, error) {
	if t.guard == nil {
		return true, nil
	}
	ok, err := t.guard.test(r)
	if err == nil {
		return ok, nil
	}
	name := t.guard.label()
	if name != "" {
		name = "'" + name + "' "
	}
	return false, fmt.Errorf("Unable to evaluate guard %sin transition for event '%s' in state node '%s':\n%w", //nolint:staticcheck // XState's text
		name, r.event.Type, t.source.id, err)
}

// guard compiles a guard: a name, or an object with a type.
func (p *parser) guard(place string, v any) guard {
	if name, ok := v.(string); ok {
		return p.namedGuard(place, name, place, nil)
	}
	o, ok := v.(*object)
	if !ok {
		p.fail(place, "must be a name or an object with a type")
		return allOf{}
	}
	for _, key := range []string{"$expr", "@expr"} {
		if when, ok := o.value(key).(string); ok {
			return p.exprGuard(at(place, key), when)
		}
	}
	name := p.text(place, o, "type")
	if builtIn, ok := builtInName(name); ok {
		return p.builtInGuard(place, builtIn, p.arguments(place, o))
	}
	p.keys(place, o, "a guard", []string{"type", "params"})
	if _, ok := p.reg.Guards[name]; !ok && name == "expr" {
		when, _ := p.arguments(place, o).object.value("when").(string)
		return p.exprGuard(at(at(place, "params"), "when"), when)
	}
	return p.namedGuard(at(place, "type"), name, at(place, "params"), o.value("params"))
}

func (p *parser) namedGuard(place, name, paramsPlace string, params any) guard {
	fn := p.reg.Guards[name]
	if fn == nil && !p.opts.AllowUnknown {
		p.fail(place, "names the guard %q, which is not registered", name)
	}
	if fn == nil {
		fn = func(Args) (bool, error) { return false, fmt.Errorf("guard %q is not registered", name) }
	}
	return &namedGuard{name: name, fn: fn, params: p.params(paramsPlace, params)}
}

func (p *parser) exprGuard(place, when string) guard {
	e, err := compileExpression(when, []string{"context", "event"}, exprBool)
	if err == nil && when == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		p.fail(place, "is not an expression: %v", firstLine(err))
		return allOf{}
	}
	return exprGuard{when: e}
}

func (p *parser) builtInGuard(place, name string, args *arguments) guard {
	switch name {
	case "and":
		args.only(p, "guards")
		return allOf(p.guards(args, "guards"))
	case "or":
		args.only(p, "guards")
		return anyOf(p.guards(args, "guards"))
	case "not":
		args.only(p, "guard")
		return noneOf{p.guard(args.at("guard"), args.object.value("guard"))}
	case "stateIn":
		args.only(p, "stateValue")
		return p.stateIn(args.at("stateValue"), args.object.value("stateValue"))
	default:
		p.fail(at(place, "type"), "names the built-in guard %q, which does not exist", name)
		return allOf{}
	}
}

func (p *parser) guards(args *arguments, key string) []guard {
	l, ok := args.object.value(key).([]any)
	if !ok {
		p.fail(args.at(key), "must be a list of guards")
	}
	all := make([]guard, len(l))
	for i, e := range l {
		all[i] = p.guard(nth(args.at(key), i), e)
	}
	return all
}

func (p *parser) stateIn(place string, v any) guard {
	switch v := v.(type) {
	case string:
		if v == "" || v[0] != '#' {
			return inValue{pathValue(v)}
		}
		n, err := p.m.byRef(v)
		if err != nil {
			p.fail(place, "is %q: %v", v, err)
		}
		return inState{n}
	case *object:
		return inValue{plain(v)}
	default:
		p.fail(place, "must be a state or a state value")
		return allOf{}
	}
}
