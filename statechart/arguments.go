package statechart

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr"
)

var exprBool = expr.AsBool()

// builtInName returns the name of a built-in without its prefix.
func builtInName(name string) (string, bool) {
	if rest, ok := strings.CutPrefix(name, "@xstate."); ok {
		return rest, true
	}
	return strings.CutPrefix(name, reserved)
}

// arguments are the arguments of a built-in, either in params or, as in XState v6, next to the
// type.
type arguments struct {
	place  string
	keys   []string
	object *object
}

func (a *arguments) at(key string) string { return at(a.place, key) }

func (a *arguments) get(key string) (any, bool) {
	return a.object.get(key)
}

// first returns the first of several names that is present, for arguments that XState v6 has
// renamed.
func (a *arguments) first(names ...string) (any, string) {
	for _, name := range names {
		if v, ok := a.get(name); ok {
			return v, name
		}
	}
	return nil, names[0]
}

// only rejects arguments that are not read.
func (a *arguments) only(p *parser, known ...string) {
	for _, k := range a.keys {
		if !slices.Contains(known, k) {
			p.fail(a.at(k), "is not an argument")
		}
	}
}

func (p *parser) arguments(place string, o *object) *arguments {
	if params, ok := o.get("params"); ok {
		p.keys(place, o, "an object with params", []string{"type", "params"})
		sub, isObject := params.(*object)
		if !isObject {
			p.fail(at(place, "params"), "must be an object")
			return &arguments{place: at(place, "params"), object: &object{}}
		}
		return &arguments{place: at(place, "params"), keys: sub.keys, object: sub}
	}
	a := &arguments{place: place, object: o}
	for _, k := range o.keys {
		if k != "type" {
			a.keys = append(a.keys, k)
		}
	}
	return a
}
