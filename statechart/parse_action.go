package statechart

// actions compiles the value of a key: an action, a list of actions, or nothing.
func (p *parser) actions(place string, o *object, key string) []action {
	v, ok := o.get(key)
	if !ok {
		return nil
	}
	l, ok := v.([]any)
	if !ok {
		return appendAction(nil, p.action(place, v))
	}
	var all []action
	for i, e := range l {
		all = appendAction(all, p.action(nth(place, i), e))
	}
	return all
}

func appendAction(all []action, a action) []action {
	if a == nil {
		return all
	}
	return append(all, a)
}

// action compiles an action: a name, or an object with a type. It returns nil if the action is
// rejected.
func (p *parser) action(place string, v any) action {
	if name, ok := v.(string); ok {
		return p.namedAction(place, name, place, nil)
	}
	o, ok := v.(*object)
	if !ok {
		p.fail(place, "must be a name or an object with a type")
		return nil
	}
	name := p.text(place, o, "type")
	if name == "" {
		p.fail(at(place, "type"), "must name an action")
		return nil
	}
	if builtIn, ok := builtInName(name); ok {
		return p.builtInAction(place, builtIn, p.arguments(place, o))
	}
	if _, ok := p.reg.Actions[name]; !ok && name == "choose" {
		return p.choose(p.arguments(place, o))
	}
	p.keys(place, o, "an action", []string{"type", "params"})
	return p.namedAction(at(place, "type"), name, at(place, "params"), o.value("params"))
}

func (p *parser) namedAction(place, name, paramsPlace string, v any) action {
	params := p.params(paramsPlace, v)
	switch a := p.reg.Actions[name].(type) {
	case Assign:
		return &assignAction{name: name, fn: a, params: params}
	case Check:
		return &checkAction{name: name, fn: a, params: params}
	case Effect:
	default:
		if _, builtIn := builtInName(name); builtIn || !p.reg.Open {
			p.fail(place, "names the action %q, which is not registered", name)
			return nil
		}
	}
	p.m.effects = append(p.m.effects, name)
	return &effectAction{name: name, params: params}
}

func (p *parser) builtInAction(place, name string, args *arguments) action {
	switch name {
	case "raise":
		args.only(p, "event", "delay", "id")
		return &raiseAction{event: p.event(args), delay: p.optionalDelay(args), id: p.sendID(args)}
	case "sendTo":
		args.only(p, "actorRef", "to", "target", "event", "delay", "id")
		return &sendAction{to: p.receiver(args), event: p.event(args), delay: p.optionalDelay(args), id: p.sendID(args)}
	case "forwardTo":
		args.only(p, "actorRef", "to", "target", "delay", "id")
		return &sendAction{to: p.receiver(args), delay: p.optionalDelay(args), id: p.sendID(args)}
	case "cancel":
		args.only(p, "sendId", "id")
		v, key := args.first("sendId", "id")
		return &cancelAction{id: p.textTemplate(args.at(key), v)}
	case "emit":
		args.only(p, "event")
		return &emitAction{event: p.event(args)}
	case "log":
		args.only(p, "message", "value", "args", "label")
		v, key := args.first("message", "value", "args")
		return &logAction{value: p.template(args.at(key), v, "context", "event")}
	case "assign":
		return p.assign(args)
	case "spawnChild", "spawn":
		return p.spawn(args)
	case "stopChild", "stop":
		args.only(p, "actorRef", "id")
		v, key := args.first("actorRef", "id")
		return &stopAction{id: p.textTemplate(args.at(key), v)}
	case "choose":
		return p.choose(args)
	default:
		p.fail(at(place, "type"), "names the built-in action %q, which does not exist", name)
		return nil
	}
}

func (p *parser) assign(args *arguments) action {
	args.only(p, "assignment", "context")
	v, key := args.first("assignment", "context")
	t := p.template(args.at(key), v, "context", "event")
	if l, ok := t.(literal); ok {
		if _, ok := l.value.(map[string]any); !ok {
			p.fail(args.at(key), "must be an object")
		}
	}
	return &assignTemplate{assignment: t}
}

func (p *parser) spawn(args *arguments) action {
	args.only(p, "src", "id", "input", "systemId", "syncSnapshot")
	x := &spawnAction{}
	x.src, _ = args.object.value("src").(string)
	x.logic = p.actor(args.at("src"), x.src)
	if v, ok := args.get("id"); ok {
		x.id = p.textTemplate(args.at("id"), v)
	}
	if v, ok := args.get("input"); ok {
		x.input = p.template(args.at("input"), v, "context", "event")
	}
	x.sync, _ = args.object.value("syncSnapshot").(bool)
	if v, ok := args.get("systemId"); ok {
		if x.systemID, ok = v.(string); !ok {
			p.fail(args.at("systemId"), "must be a string")
		}
	}
	return x
}

func (p *parser) choose(args *arguments) action {
	args.only(p, "branches")
	l, ok := args.object.value("branches").([]any)
	if !ok {
		p.fail(args.at("branches"), "must be a list of branches")
	}
	x := &chooseAction{}
	for i, e := range l {
		place := nth(args.at("branches"), i)
		o, ok := e.(*object)
		if !ok {
			p.fail(place, "must be an object")
			continue
		}
		p.keys(place, o, "a branch", []string{"guard", "actions"})
		b := branch{actions: p.actions(at(place, "actions"), o, "actions")}
		if g, ok := o.get("guard"); ok {
			b.guard = p.guard(at(place, "guard"), g)
		}
		x.branches = append(x.branches, b)
	}
	return x
}

// event compiles the event that an action sends. A static event is built once.
func (p *parser) event(args *arguments) eventSource {
	place := args.at("event")
	v, ok := args.object.value("event").(*object)
	if !ok {
		p.fail(place, "must be an object with a type")
		return eventSource{}
	}
	t := p.template(place, v, "context", "event")
	l, static := t.(literal)
	if !static {
		return eventSource{value: t}
	}
	e, err := eventFrom(l.value)
	if err != nil {
		p.fail(place, "%v", err)
		return eventSource{}
	}
	return eventSource{static: staticMessage(e)}
}

func (p *parser) optionalDelay(args *arguments) *delay {
	v, ok := args.get("delay")
	if !ok || v == nil {
		return nil
	}
	d := p.delay(args.at("delay"), v)
	return &d
}

func (p *parser) sendID(args *arguments) string {
	v, ok := args.get("id")
	if !ok {
		return ""
	}
	id, ok := v.(string)
	if !ok || id == "" {
		p.fail(args.at("id"), "must be a string")
	}
	return id
}
