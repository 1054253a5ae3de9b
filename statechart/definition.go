package statechart

import (
	"errors"
	"strconv"
)

// A Def is a state of a machine, or the machine itself, written in Go. It has the shape of the
// document: json.Marshal returns a document that Parse reads.
type Def struct {
	// Key is the state's name among its siblings. The root has none.
	Key string
	// ID replaces the id that is derived from the keys.
	ID string
	// Type is "" (derived), "parallel", "final" or "history".
	Type        string
	Description string
	// Initial names the initial state. Begin has the actions of the initial transition.
	Initial string
	Begin   []Call
	// States are in the order of the document.
	States      []Def
	Entry, Exit []Call
	// On are transitions by event. Transitions of the same event are tried in order.
	On []Transition
	// After are transitions by delay.
	After []Transition
	// Always are transitions without an event. Done are transitions that are taken when a final
	// state of this state is reached.
	Always, Done []Transition
	Invoke       []Invocation
	Tags         []string
	Meta         any
	// Output is the output of the root or of a final state.
	Output any
	// Deep and Target are set only for history states.
	Deep   bool
	Target string

	// Version, Context, Delays, Machines and MaxIterations are set only for the root.
	Version       string
	Context       map[string]any
	Delays        map[string]any
	Machines      map[string]Def
	MaxIterations int
}

// A Transition leads to its targets when its guard holds.
type Transition struct {
	// Event is the event of a transition in On.
	Event string
	// Delay is the delay of a transition in After: a number of milliseconds or a name.
	Delay   string
	Targets []string
	Guard   *Call
	Do      []Call
	Reenter bool
}

// A Call names a guard or an action with its params.
type Call struct {
	Type   string
	Params map[string]any
}

// An Invocation is an actor that runs while its state is active.
type Invocation struct {
	ID, Src, SystemID    string
	Input                any
	Done, Fail, Snapshot []Transition
}

// To returns the targets of a transition.
func To(targets ...string) []string { return targets }

// Expr returns a placeholder for the value of an expression.
func Expr(expression string) any { return map[string]any{"$expr": expression} }

// From returns a placeholder for the value at a path: "context.order.id".
func From(path string) any { return map[string]any{"$from": path} }

// When returns a guard that evaluates an expression.
func When(expression string) *Call {
	return &Call{Type: "expr", Params: map[string]any{"when": expression}}
}

// Set returns an action that changes keys of the context.
func Set(assignment map[string]any) Call {
	return Call{Type: "xstate.assign", Params: map[string]any{"assignment": assignment}}
}

// Build compiles a machine that is written in Go. It parses the machine's document.
func Build(d Def, reg *Registry, opts *Options) (*Machine, error) {
	raw, err := d.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return Parse(raw, reg, opts)
}

// MarshalJSON returns the document.
func (d Def) MarshalJSON() ([]byte, error) {
	o, err := d.object()
	if err != nil {
		return nil, err
	}
	return appendJSON(nil, o)
}

// set adds a key unless the value is empty.
func (o *object) set(key string, v any) {
	switch v := v.(type) {
	case nil:
		return
	case string:
		if v == "" {
			return
		}
	case []any:
		if len(v) == 0 {
			return
		}
	case *object:
		if len(v.keys) == 0 {
			return
		}
	}
	o.put(key, v)
}

func (d Def) object() (*object, error) {
	o := &object{}
	o.set("id", d.ID)
	o.set("version", d.Version)
	o.set("type", d.Type)
	o.set("description", d.Description)
	o.set("initial", d.initial())
	o.set("target", d.Target)
	if d.Deep {
		o.set("history", "deep")
	}
	o.set("entry", calls(d.Entry))
	o.set("exit", calls(d.Exit))
	o.set("on", byKey(d.On, func(t Transition) string { return t.Event }))
	o.set("after", byKey(d.After, func(t Transition) string { return t.Delay }))
	o.set("always", transitions(d.Always))
	o.set("onDone", transitions(d.Done))
	o.set("invoke", invocations(d.Invoke))
	if d.MaxIterations != 0 {
		o.set("options", &object{keys: []string{"maxIterations"}, list: []any{int64(d.MaxIterations)}})
	}
	if err := d.values(o); err != nil {
		return nil, err
	}
	return o, d.nested(o)
}

// values adds the fields that are plain data.
func (d Def) values(o *object) error {
	tags := make([]any, len(d.Tags))
	for i, t := range d.Tags {
		tags[i] = t
	}
	o.set("tags", tags)
	return errors.Join(
		o.setValue("meta", d.Meta, d.Meta != nil),
		o.setValue("output", d.Output, d.Output != nil),
		o.setValue("context", d.Context, d.Context != nil),
		o.setValue("delays", d.Delays, d.Delays != nil))
}

func (o *object) setValue(key string, v any, given bool) error {
	if !given {
		return nil
	}
	c, err := Canonical(v)
	o.set(key, c)
	return err
}

// nested adds states and machines.
func (d Def) nested(o *object) error {
	states := &object{}
	for _, s := range d.States {
		sub, err := s.object()
		if err != nil {
			return err
		}
		states.put(s.Key, sub)
	}
	o.set("states", states)
	machines := map[string]any{}
	for name, m := range d.Machines {
		sub, err := m.object()
		if err != nil {
			return err
		}
		machines[name] = sub
	}
	if len(machines) > 0 {
		o.set("machines", machines)
	}
	return nil
}

func (d Def) initial() any {
	if len(d.Begin) == 0 {
		return d.Initial
	}
	o := &object{}
	o.set("target", d.Initial)
	o.set("actions", calls(d.Begin))
	return o
}

func calls(all []Call) []any {
	out := make([]any, len(all))
	for i, c := range all {
		out[i] = c.value()
	}
	return out
}

func (c Call) value() any {
	if c.Params == nil {
		return c.Type
	}
	return &object{keys: []string{"type", "params"}, list: []any{c.Type, jsonValue{c.Params}}}
}

// jsonValue is a value that is made canonical when it is written.
type jsonValue struct{ v any }

// MarshalJSON returns the data.
func (j jsonValue) MarshalJSON() ([]byte, error) {
	c, err := Canonical(j.v)
	if err != nil {
		return nil, err
	}
	return appendJSON(nil, c)
}

func transitions(all []Transition) []any {
	out := make([]any, len(all))
	for i, t := range all {
		out[i] = t.value()
	}
	return out
}

// byKey groups transitions by event or delay, in the order of first occurrence.
func byKey(all []Transition, key func(Transition) string) *object {
	o := &object{}
	for _, t := range all {
		l, _ := o.value(key(t)).([]any)
		o.put(key(t), append(l, t.value()))
	}
	return o
}

func (t Transition) value() *object {
	o := &object{}
	targets := make([]any, len(t.Targets))
	for i, name := range t.Targets {
		targets[i] = name
	}
	o.set("target", targets)
	if t.Guard != nil {
		o.set("guard", t.Guard.value())
	}
	o.set("actions", calls(t.Do))
	if t.Reenter {
		o.set("reenter", true)
	}
	return o
}

func invocations(all []Invocation) []any {
	out := make([]any, len(all))
	for i, v := range all {
		o := &object{}
		o.set("id", v.ID)
		o.set("src", v.Src)
		o.set("systemId", v.SystemID)
		if v.Input != nil {
			o.set("input", jsonValue{v.Input})
		}
		o.set("onDone", transitions(v.Done))
		o.set("onError", transitions(v.Fail))
		o.set("onSnapshot", transitions(v.Snapshot))
		out[i] = o
	}
	return out
}

// Millis returns a number of milliseconds in the format of After.
func Millis(n int64) string { return strconv.FormatInt(n, 10) }
