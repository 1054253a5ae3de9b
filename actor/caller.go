package actor

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// Ref names an actor.
type Ref struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// String returns the type and the id, separated by a slash.
func (r Ref) String() string { return r.Type + "/" + r.ID }

func (r Ref) stored() store.ActorRef { return store.ActorRef{Type: r.Type, ID: r.ID} }

func refOf(r store.ActorRef) Ref { return Ref{Type: r.Type, ID: r.ID} }

// check rejects a name that cannot be stored.
func (r Ref) check() error {
	if err := edge.Name("actor type", r.Type); err != nil {
		return err
	}
	return edge.Key("actor id", r.ID)
}

// find returns a *fault.NotFound if no actor can have the name.
func (r Ref) find() error {
	if r.check() != nil {
		return notFound(r)
	}
	return nil
}

// CallerKind is the kind of a caller.
type CallerKind string

// The kinds of callers.
const (
	// Client is a user of the application.
	Client CallerKind = "client"
	// Service is another program of the same owner.
	Service CallerKind = "service"
	// System is this program itself. Requests from outside must never use it.
	System CallerKind = "system"
)

// Caller identifies the sender of an event or the creator of an actor.
type Caller struct {
	Kind CallerKind `json:"type"`
	// ID is the caller's name. Clients and services have one.
	ID string `json:"id"`
}

func (c Caller) check() error {
	switch c.Kind {
	case Client, Service:
		return edge.Key("caller id", c.ID)
	case System:
		return edge.Text("caller id", c.ID, edge.MaxKey)
	}
	return fault.Invalidf("caller type", "must be client, service or system, got %q", c.Kind)
}

// mark sets the caller in an object that is passed to a machine. It overwrites any existing
// value. The system has no mark.
func (c Caller) mark(data map[string]any) map[string]any {
	marked := make(map[string]any, len(data)+1)
	for k, v := range data {
		marked[k] = v
	}
	delete(marked, "caller")
	if c.Kind != System {
		marked["caller"] = map[string]any{"type": string(c.Kind), "id": c.ID}
	}
	return marked
}

// The events that only the system sends. TypeOptions.SystemEvents enables INITIALIZE, RESUME
// and MIGRATE for a type.
const (
	// EventInitialize follows the start of an actor.
	EventInitialize = "INITIALIZE"
	// EventResume is sent after a process has loaded an actor and fired its overdue timers.
	EventResume = "RESUME"
	// EventMigrate is sent after a migration to another version of the machine.
	EventMigrate = "MIGRATE"
	// EventConnect and EventDisconnect are sent by programs that serve subscriptions.
	EventConnect    = "CONNECT"
	EventDisconnect = "DISCONNECT"
)

// systemEvents are the events that only the system may send.
var systemEvents = []string{EventInitialize, EventResume, EventMigrate, EventConnect, EventDisconnect}

// prepare checks an event of a caller and returns it as the machine receives it.
func (k *kind) prepare(c Caller, e statechart.Event) (statechart.Event, error) {
	if err := c.check(); err != nil {
		return e, err
	}
	raw, err := edge.Marshal("event", e, k.options.MaxEvent)
	if err != nil {
		return e, err
	}
	if e, err = statechart.ParseEvent(raw); err != nil {
		return e, err
	}
	if c.Kind == System {
		e.Data = c.mark(e.Data)
		return e, nil
	}
	if slices.Contains(systemEvents, e.Type) {
		return e, fault.Invalidf("event.type", "%s is reserved for the system", e.Type)
	}
	if !k.allows(c.Kind, e.Type) {
		return e, &fault.Restricted{Constraint: "events of type " + k.name + " for callers of type " + string(c.Kind)}
	}
	e.Data = c.mark(e.Data)
	if k.options.Check == nil {
		return e, nil
	}
	return e, k.options.Check(c, e)
}

// allows reports whether callers of a kind may send an event.
func (k *kind) allows(c CallerKind, event string) bool {
	allowed, restricted := k.options.Events[c]
	if !restricted {
		return true
	}
	for _, name := range allowed {
		if prefix, wild := strings.CutSuffix(name, "*"); name == event || wild && strings.HasPrefix(event, prefix) {
			return true
		}
	}
	return false
}
