package statechart

import (
	"strings"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
)

// MaxEvent is the maximum size of an event that ParseEvent accepts, in bytes.
const MaxEvent = 1 << 20

// The names of the interpreter's own events.
const (
	reserved   = "xstate."
	initEvent  = "xstate.init"
	stopEvent  = "xstate.stop"
	routeEvent = "xstate.route"

	doneStatePrefix  = "xstate.done.state."
	doneActorPrefix  = "xstate.done.actor."
	errorActorPrefix = "xstate.error.actor."
	snapshotPrefix   = "xstate.snapshot."
	afterPrefix      = "xstate.after."
)

// An Event is a message to an actor: in JSON, an object with a type.
type Event struct {
	// Type names the event.
	Type string
	// Data holds the other keys of the object. It must not be changed after the event was
	// passed on.
	Data map[string]any
}

// ParseEvent reads an event from outside. It rejects the events that [Tree.Send] rejects.
func ParseEvent(raw []byte) (Event, error) {
	if err := edge.JSON("event", raw, MaxEvent); err != nil {
		return Event{}, err
	}
	v, err := decode("event", raw)
	if err != nil {
		return Event{}, err
	}
	e, err := eventFrom(plain(v))
	if err != nil {
		return Event{}, fault.Invalidf("event", "%v", err)
	}
	return e, e.checkOutside()
}

// eventFrom splits a value into type and data.
func eventFrom(v any) (Event, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return Event{}, errNoObject
	}
	typ, ok := m["type"].(string)
	if !ok || typ == "" {
		return Event{}, errNoType
	}
	if len(m) == 1 {
		return Event{Type: typ}, nil
	}
	data := clone(m, 0)
	delete(data, "type")
	return Event{Type: typ, Data: data}, nil
}

// checkOutside rejects events that must not be sent from outside.
func (e Event) checkOutside() error {
	if e.Type == "" {
		return fault.Invalidf("event.type", "must not be empty")
	}
	if err := edge.Text("event.type", e.Type, edge.MaxKey); err != nil {
		return err
	}
	if e.Type == "*" {
		return fault.Invalidf("event.type", "must not be *, which matches any event")
	}
	if strings.HasPrefix(e.Type, reserved) && e.Type != routeEvent {
		return fault.Invalidf("event.type", "must not start with %s, which is reserved for the machine", reserved)
	}
	return nil
}

// MarshalJSON returns the event as one object.
func (e Event) MarshalJSON() ([]byte, error) {
	return appendJSON(nil, e.object())
}

// UnmarshalJSON reads an event that MarshalJSON wrote, including the interpreter's own events.
func (e *Event) UnmarshalJSON(raw []byte) error {
	v, err := decode("event", raw)
	if err != nil {
		return err
	}
	if *e, err = eventFrom(plain(v)); err != nil {
		return fault.Invalidf("event", "%v", err)
	}
	return nil
}

// object returns the event as the value that expressions receive.
func (e Event) object() map[string]any {
	m := clone(e.Data, 1)
	m["type"] = e.Type
	return m
}

// A message is an event in flight. Messages are shared and never modified.
type message struct {
	Event
	whole map[string]any
}

func newMessage(typ string, data map[string]any) *message {
	return &message{Event: Event{Type: typ, Data: data}}
}

// staticMessage returns a message that many trees share. All its fields are built now, because
// shared messages must not be modified later.
func staticMessage(e Event) *message { return &message{Event: e, whole: e.object()} }

// asObject returns the event with its type. It builds the object once.
func (m *message) asObject() map[string]any {
	if m.whole == nil {
		m.whole = m.object()
	}
	return m.whole
}

// at returns the value at a path below "event".
func (m *message) at(path []string) any {
	switch {
	case len(path) == 0:
		return m.asObject()
	case path[0] == "type":
		return lookup(m.Type, path[1:])
	default:
		return lookup(m.Data, path)
	}
}
