package statechart

import (
	"fmt"
	"strings"

	"github.com/expr-lang/expr/vm"
)

// A scope holds the values that a template can refer to.
type scope struct {
	tree    *Tree // its limits apply
	context map[string]any
	event   *message
	input   any

	// memory that expressions reuse
	env     map[string]any
	machine vm.VM
	bytes   int // remaining bytes that the expression may compute
}

// A template computes a value. A constant template is a literal.
type template interface {
	eval(s *scope) (any, error)
}

type (
	literal  struct{ value any }
	fromPath struct {
		root string
		path []string
	}
	list   []template
	fields struct {
		keys   []string
		values []template
	}
)

func (l literal) eval(*scope) (any, error) { return l.value, nil }

func (f fromPath) eval(s *scope) (any, error) {
	switch f.root {
	case "context":
		return lookup(s.context, f.path), nil
	case "event":
		return s.event.at(f.path), nil
	default:
		return lookup(s.input, f.path), nil
	}
}

func (l list) eval(s *scope) (any, error) {
	out := make([]any, len(l))
	for i, t := range l {
		v, err := t.eval(s)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (f fields) eval(s *scope) (any, error) {
	out := make(map[string]any, len(f.keys))
	for i, t := range f.values {
		v, err := t.eval(s)
		if err != nil {
			return nil, err
		}
		out[f.keys[i]] = v
	}
	return out, nil
}

// isStatic reports whether a template is constant.
func isStatic(t template) bool {
	_, ok := t.(literal)
	return ok
}

// template compiles a value of the document. roots are the names that it may
// refer to.
func (p *parser) template(place string, v any, roots ...string) template {
	switch v := v.(type) {
	case *object:
		return p.objectTemplate(place, v, roots)
	case []any:
		return p.listTemplate(place, v, roots)
	default:
		return literal{v}
	}
}

func (p *parser) objectTemplate(place string, o *object, roots []string) template {
	if from, ok := o.value("$from").(string); ok {
		return p.fromTemplate(place, from, roots)
	}
	for _, key := range []string{"$expr", "@expr"} {
		if text, ok := o.value(key).(string); ok {
			return p.exprTemplate(at(place, key), text, roots)
		}
	}
	f, static := fields{keys: o.keys}, true
	for _, k := range o.keys {
		t := p.template(at(place, k), o.value(k), roots...)
		static = static && isStatic(t)
		f.values = append(f.values, t)
	}
	if static {
		return literal{plain(o)}
	}
	return f
}

func (p *parser) listTemplate(place string, s []any, roots []string) template {
	l, static := make(list, len(s)), true
	for i, e := range s {
		l[i] = p.template(nth(place, i), e, roots...)
		static = static && isStatic(l[i])
	}
	if static {
		return literal{plain(s)}
	}
	return l
}

func (p *parser) fromTemplate(place, from string, roots []string) template {
	path := strings.Split(from, ".")
	for _, r := range roots {
		if path[0] == r {
			return fromPath{root: r, path: path[1:]}
		}
	}
	p.fail(at(place, "$from"), "must start with %s, got %q", strings.Join(roots, " or "), from)
	return literal{}
}

// params compiles the params of a guard or an action.
func (p *parser) params(place string, v any) template {
	switch v.(type) {
	case nil:
		return literal{map[string]any(nil)}
	case *object:
		return p.template(place, v, "context", "event")
	default:
		p.fail(place, "must be an object")
		return literal{map[string]any(nil)}
	}
}

// evalParams returns params in the form that functions receive.
func evalParams(t template, s *scope) (map[string]any, error) {
	v, err := t.eval(s)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("params are not an object")
	}
	return m, nil
}

// evalString returns a template's value, which must be a text.
func evalString(what string, t template, s *scope) (string, error) {
	v, err := t.eval(s)
	if err != nil {
		return "", err
	}
	text, ok := v.(string)
	if !ok || text == "" {
		return "", fmt.Errorf("%s is not a text", what)
	}
	return text, nil
}
