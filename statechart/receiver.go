package statechart

import (
	"fmt"
	"slices"
	"strings"
)

// A receiver identifies the actor that receives an event.
type receiver struct {
	systemID string
	id       template
}

// find returns the actor. If the state being entered is about to invoke the actor, it returns
// the actor's id instead.
func (x receiver) find(r *run) (to *actor, later string, err error) {
	if x.systemID != "" {
		if to = r.a.tree.bySystemID[x.systemID]; to == nil {
			to = r.a // as in XState, no target means the actor itself
		}
		return to, "", nil
	}
	id, err := evalString("actorRef", x.id, r.scope())
	if err != nil {
		return nil, "", err
	}
	switch {
	case id == "#_parent":
		to = r.a.parent
	case id == "#_self" || id == "#_internal":
		to = r.a
	case strings.HasPrefix(id, "#_"):
		to = r.now.children.get(id[2:])
	case slices.Contains(r.entering, id):
		return nil, id, nil
	default:
		to = r.now.children.get(id)
	}
	return to, "", r.exists(to, id)
}

func (r *run) exists(to *actor, id string) error {
	if to != nil {
		return nil
	}
	return fmt.Errorf("Unable to send event to actor '%s' from machine '%s'.", //nolint:staticcheck,revive // XState's text
		id, r.a.logic.machine.id)
}

// receiver compiles the actorRef of an action.
func (p *parser) receiver(args *arguments) receiver {
	v, key := args.first("actorRef", "to", "target")
	if o, ok := v.(*object); ok {
		if id, ok := o.value("systemId").(string); ok && id != "" {
			return receiver{systemID: id}
		}
	}
	return receiver{id: p.textTemplate(args.at(key), v)}
}

// textTemplate compiles a value that must be a text.
func (p *parser) textTemplate(place string, v any) template {
	t := p.template(place, v, "context", "event")
	if l, ok := t.(literal); ok {
		if s, ok := l.value.(string); !ok || s == "" {
			p.fail(place, "must be a string")
		}
	}
	return t
}
