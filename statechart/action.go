package statechart

import "fmt"

// An action runs during a macrostep. Its changes to the context and the children are visible
// immediately. Its sends, timers and other outputs are deferred to the end of the macrostep.
type action interface {
	do(r *run) error
}

type (
	assignAction struct {
		name   string
		fn     Assign
		params template
	}
	assignTemplate struct{ assignment template }
	effectAction   struct {
		name   string
		params template
	}
	checkAction struct {
		name   string
		fn     Check
		params template
	}
	logAction   struct{ value template }
	raiseAction struct {
		event eventSource
		delay *delay
		id    string
	}
	sendAction struct {
		to    receiver
		event eventSource
		delay *delay
		id    string
	}
	cancelAction struct{ id template }
	emitAction   struct{ event eventSource }
	spawnAction  struct {
		src, systemID string
		logic         logic
		id            template // nil: generated
		input         template // nil: none
		sync          bool
	}
	stopAction   struct{ id template }
	chooseAction struct{ branches []branch }
	branch       struct {
		guard   guard // nil: always
		actions []action
	}
)

func (x *assignAction) do(r *run) error {
	params, err := evalParams(x.params, r.scope())
	if err != nil {
		return err
	}
	update, err := x.fn.call(r.args(params))
	if err != nil {
		return err
	}
	v, err := Canonical(update)
	if err != nil {
		return err
	}
	return r.assign(v.(map[string]any))
}

func (x *assignTemplate) do(r *run) error {
	v, err := x.assignment.eval(r.scope())
	if err != nil {
		return err
	}
	update, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("assignment is not an object")
	}
	return r.assign(update)
}

// assign changes keys of a copy of the context, because the old context may be shared.
func (r *run) assign(update map[string]any) error {
	r.changed = true
	before := r.now.size
	after, most := before, r.a.tree.machine.limits.context
	for k, v := range update {
		n, err := r.a.tree.measure(r.a, v, max(most, before), LimitContext, most)
		if err != nil {
			return err
		}
		after += n + len(k) + 4
		if old, has := r.now.context[k]; has {
			after -= sizeOf(old) + len(k) + 4
		}
	}
	if err := r.a.grow(before, after); err != nil {
		return err
	}
	c := clone(r.now.context, len(update))
	for k, v := range update {
		c[k] = v
	}
	r.now.context, r.now.size = c, after
	return nil
}

func (x *effectAction) do(r *run) error {
	params, err := evalParams(x.params, r.scope())
	if err != nil {
		return err
	}
	if err := r.a.tree.charge(r.a, params); err != nil {
		return err
	}
	return r.a.outward(outwardOp{name: x.name, params: params})
}

func (x *checkAction) do(r *run) error {
	params, err := evalParams(x.params, r.scope())
	if err != nil {
		return err
	}
	return r.a.outward(outwardOp{check: x.fn, args: r.args(params)})
}

func (x *logAction) do(r *run) error {
	v, err := x.value.eval(r.scope())
	if err != nil {
		return err
	}
	if err := r.a.tree.charge(r.a, v); err != nil {
		return err
	}
	return r.a.outward(outwardOp{log: true, value: v})
}

func (x *raiseAction) do(r *run) error {
	m, err := x.event.get(r)
	if err != nil {
		return err
	}
	if x.delay == nil {
		r.queue = append(r.queue, m)
		return r.a.tree.count(r.a)
	}
	ms, err := x.delay.eval(r)
	if err != nil {
		return err
	}
	return r.a.deferOp(op{kind: opSchedule, to: r.a, event: m, delay: ms, id: x.id})
}

func (x *sendAction) do(r *run) error {
	m, err := x.event.get(r)
	if err != nil {
		return err
	}
	o := op{kind: opSend, event: m, id: x.id}
	if x.delay != nil {
		o.kind = opSchedule
		if o.delay, err = x.delay.eval(r); err != nil {
			return err
		}
	}
	to, later, err := x.to.find(r)
	if err != nil {
		return err
	}
	o.to = to
	if err := r.a.deferOp(o); err != nil {
		return err
	}
	if later != "" {
		r.unresolved = append(r.unresolved, unresolved{index: len(r.a.deferred) - 1, id: later})
	}
	return nil
}

func (x *cancelAction) do(r *run) error {
	id, err := evalString("sendId", x.id, r.scope())
	if err != nil {
		return err
	}
	return r.a.deferOp(op{kind: opCancel, id: id})
}

func (x *emitAction) do(r *run) error {
	m, err := x.event.get(r)
	if err != nil {
		return err
	}
	return r.a.deferOp(op{kind: opEmit, event: m})
}

func (x *spawnAction) do(r *run) error {
	c := &actor{tree: r.a.tree, parent: r.a, src: x.src, logic: x.logic, systemID: x.systemID, sync: x.sync}
	var err error
	if x.input != nil {
		if c.input, err = x.input.eval(r.scope()); err != nil {
			return err
		}
		if err := r.a.tree.charge(r.a, c.input); err != nil {
			return err
		}
	}
	if x.id == nil {
		c.id = fmt.Sprintf("%s.%d", x.src, r.a.tree.sequence+1)
	} else if c.id, err = evalString("id", x.id, r.scope()); err != nil {
		return err
	}
	if err := c.create(); err != nil {
		return err
	}
	r.changed = true
	if old := r.now.children.get(c.id); old != nil {
		r.a.stopChild(old)
	}
	r.now.children = r.now.children.with(c)
	return r.a.deferOp(op{kind: opStart, to: c})
}

func (x *stopAction) do(r *run) error {
	id, err := evalString("actorRef", x.id, r.scope())
	if err != nil {
		return err
	}
	r.changed = true
	if c := r.now.children.get(id); c != nil {
		r.now.children = r.now.children.without(id)
		r.a.stopChild(c)
	}
	return nil
}

func (x *chooseAction) do(r *run) error {
	for _, b := range x.branches {
		if b.guard != nil {
			ok, err := b.guard.test(r)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
		}
		return r.do(b.actions)
	}
	return nil
}

// An eventSource is the event that an action sends: static, computed, or the event being
// handled.
type eventSource struct {
	static *message
	value  template
}

func (e eventSource) get(r *run) (*message, error) {
	if e.static != nil {
		return e.static, nil
	}
	if e.value == nil {
		return r.event, nil
	}
	v, err := e.value.eval(r.scope())
	if err != nil {
		return nil, err
	}
	if err := r.a.tree.charge(r.a, v); err != nil {
		return nil, err
	}
	event, err := eventFrom(v)
	if err != nil {
		return nil, fmt.Errorf("event %w", err)
	}
	return &message{Event: event}, nil
}
