package statechart

import (
	"slices"

	"github.com/perdure/perdure/internal/edge"
)

// text returns the text under a key, or "".
func (p *parser) text(place string, o *object, key string) string {
	v, ok := o.get(key)
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		p.fail(at(place, key), "must be a string")
		return ""
	}
	if err := edge.Text(at(place, key), s, edge.MaxKey); err != nil && key != "description" {
		p.problem(err)
	}
	return s
}

// object returns the object under a key, if there is one.
func (p *parser) object(place string, o *object, key string) (*object, bool) {
	v, ok := o.get(key)
	if !ok {
		return nil, false
	}
	sub, ok := v.(*object)
	if !ok {
		p.fail(at(place, key), "must be an object")
	}
	return sub, ok
}

// older maps keys of XState v4 to their current names.
var older = map[string]string{"cond": "guard", "internal": "reenter", "data": "output", "in": "the guard xstate.stateIn"}

// keys rejects keys that are not read.
func (p *parser) keys(place string, o *object, of string, known []string) {
	for _, k := range o.keys {
		if slices.Contains(known, k) {
			continue
		}
		if now, ok := older[k]; ok {
			p.fail(at(place, k), "is a key of XState v4: use %s", now)
			continue
		}
		p.fail(at(place, k), "is not a key of %s", of)
	}
}
