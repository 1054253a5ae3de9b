package api

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/statechart"
)

// Actor is a durable instance of a statechart.
type Actor struct {
	Type        string          `json:"type"`
	ID          string          `json:"id"`
	Status      actor.Status    `json:"status" enum:"active,done,error,stopped,quarantined"`
	State       string          `json:"state" doc:"Active states, as text."`
	Version     int64           `json:"version" doc:"Number of its transitions."`
	Statechart  StatechartRef   `json:"statechart"`
	Origin      string          `json:"origin" enum:"spawn,import,fork"`
	Error       string          `json:"error,omitempty" doc:"Error of a failed or quarantined actor."`
	Caller      *ActorCaller    `json:"caller,omitempty" doc:"Caller that spawned it."`
	CreatedAt   Time            `json:"created_at"`
	UpdatedAt   Time            `json:"updated_at"`
	NextTimerAt Time            `json:"next_timer_at,omitzero"`
	Value       json.RawMessage `json:"value,omitempty" doc:"State value, as in XState."`
	Input       json.RawMessage `json:"input,omitempty" doc:"Omitted from lists."`
	Context     map[string]any  `json:"context,omitempty" doc:"Omitted from lists."`
	Active      []string        `json:"active,omitempty" doc:"Ids of the active states. Omitted from lists."`
	Children    []ActorChild    `json:"children,omitempty" doc:"Omitted from lists."`
	Timers      []Timer         `json:"timers,omitempty" doc:"Omitted from lists."`
	Invocations []Invocation    `json:"invocations,omitempty" doc:"Running invocations. Omitted from lists."`
	Snapshot    json.RawMessage `json:"snapshot,omitempty" doc:"Stored snapshot, if the server does not have the statechart. Omitted from lists."`
	Events      []ActorEvent    `json:"events,omitempty" doc:"Events of its statechart. Omitted from lists."`
}

// StatechartRef names a version of a statechart.
type StatechartRef struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
}

// ActorCaller is the caller of an actor.
type ActorCaller struct {
	Type string `json:"type" enum:"client,service,system" doc:"Type of caller. The type system is reserved."`
	ID   string `json:"id" maxLength:"256"`
}

// ActorChild is an actor within an actor.
type ActorChild struct {
	ID       string       `json:"id"`
	Status   string       `json:"status"`
	State    string       `json:"state"`
	Active   []string     `json:"active,omitempty"`
	Children []ActorChild `json:"children,omitempty"`
}

// Invocation is an invoked promise that has not returned a result.
type Invocation struct {
	Src   string `json:"src" doc:"Name of the invocation."`
	Path  string `json:"path" doc:"Actor in the tree that invoked it."`
	Input any    `json:"input,omitempty"`
}

// ActorEvent is an event that a statechart handles.
type ActorEvent struct {
	Type string `json:"type"`
}

func showActor(r actor.Record) Actor {
	shown := Actor{
		Type: r.Ref.Type, ID: r.Ref.ID, Status: r.Status, State: stateText(r.Value), Version: r.Version, Statechart: StatechartRef{r.Ref.Type, r.Machine},
		Origin: r.Origin, Error: r.Reason, CreatedAt: Time(r.Created), UpdatedAt: Time(r.Updated), Value: r.Value,
	}
	if r.Caller.Kind != "" {
		shown.Caller = &ActorCaller{Type: string(r.Caller.Kind), ID: r.Caller.ID}
	}
	return shown
}

// stateText formats a state value: "open.waiting, paid".
func stateText(value json.RawMessage) string {
	var v any
	if json.Unmarshal(value, &v) != nil {
		return ""
	}
	return strings.Join(leaves("", v), ", ")
}

// leaves returns the paths of the innermost states of a state value.
func leaves(path string, value any) []string {
	switch v := value.(type) {
	case string:
		return []string{join(path, v)}
	case map[string]any:
		var all []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, leaves(join(path, name), v[name])...)
		}
		if len(all) > 0 {
			return all
		}
	}
	if path == "" {
		return nil
	}
	return []string{path}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// ByActor is the input of a route for one actor.
type ByActor struct {
	Type string `path:"type" maxLength:"128"`
	ID   string `path:"id" maxLength:"256"`
}

func (in ByActor) ref() actor.Ref { return actor.Ref{Type: in.Type, ID: in.ID} }

// callerOf returns the caller as which a request addresses an actor. With an actor token it
// is the caller of the token. With another token it is the caller that the request names,
// or a service with the token's name. It fails with status 403 for a caller that the token
// does not allow.
func callerOf(ctx context.Context, named string) (actor.Caller, error) {
	p := requestOf(ctx).principal
	if p.Actor != nil {
		caller := actor.Caller{Kind: actor.CallerKind(p.Actor.CallerKind), ID: p.Actor.CallerID}
		if named != "" && named != string(caller.Kind)+":"+caller.ID {
			return actor.Caller{}, errForbidden("the actor token is for another caller")
		}
		return caller, nil
	}
	if named == "" {
		return actor.Caller{Kind: actor.Service, ID: p.Name}, nil
	}
	kind, id, ok := strings.Cut(named, ":")
	if kind == string(actor.System) {
		return actor.Caller{}, errForbidden("caller type \"system\" is reserved")
	}
	if !ok || kind != string(actor.Client) && kind != string(actor.Service) {
		return actor.Caller{}, NewProblem(422, codeInvalid, "caller must be client:<id> or service:<id>")
	}
	return actor.Caller{Kind: actor.CallerKind(kind), ID: id}, nil
}

// ActorMatch filters a list of actors.
type ActorMatch struct {
	Type   string         `query:"type" json:"type,omitempty" maxLength:"128"`
	Status []actor.Status `query:"status" json:"status,omitempty" enum:"active,done,error,stopped,quarantined"`
	State  string         `query:"state" json:"state,omitempty" maxLength:"512" doc:"Path of an active state, for example open.waiting."`
}

func (m ActorMatch) narrows() bool { return m.Type+m.State != "" || len(m.Status) > 0 }

func (m ActorMatch) filter() actor.Filter {
	return actor.Filter{Type: m.Type, Statuses: m.Status, State: m.State}
}

type actorFilter struct {
	Paging
	ActorMatch
}

func (a *API) listActors(ctx context.Context, in *actorFilter) (*List[Actor], error) {
	rows, next, err := a.config.Actors.List(ctx, in.filter(), in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), rows, next, showActor), nil
}

// getActor shows all data of an actor.
func (a *API) getActor(ctx context.Context, in *ByActor) (*One[Actor], error) {
	r, err := a.config.Actors.Get(ctx, in.ref())
	if err != nil {
		return nil, err
	}
	shown := showActor(r)
	shown.Input = r.Input
	timers, err := a.config.Actors.Timers(ctx, in.ref())
	if err != nil {
		return nil, err
	}
	for _, t := range timers {
		shown.Timers = append(shown.Timers, showTimer(t))
	}
	if len(timers) > 0 {
		shown.NextTimerAt = Time(timers[0].Due)
	}
	if state, err := a.config.Actors.State(ctx, in.ref()); err == nil { // an actor that cannot be loaded is shown without its state
		shown.Context, shown.Active, shown.Children = state.Context, state.Active, showChildren(state.Children)
	} else {
		shown.Snapshot = r.Snapshot
	}
	if pending, err := a.config.Actors.Pending(ctx, in.ref()); err == nil {
		for _, op := range pending {
			shown.Invocations = append(shown.Invocations, Invocation{Src: op.Src, Path: op.Path, Input: op.Input})
		}
	}
	if m, _, err := a.config.Actors.Machine(ctx, in.Type); err == nil {
		shown.Events = eventsOf(m)
	}
	return one(shown), nil
}

func eventsOf(m *statechart.Machine) []ActorEvent {
	var all []ActorEvent
	for _, e := range m.Events() {
		all = append(all, ActorEvent{Type: e})
	}
	return all
}

func showChildren(states []statechart.State) []ActorChild {
	var all []ActorChild
	for _, s := range states {
		all = append(all, ActorChild{
			ID: s.ID, Status: fmt.Sprint(s.Status), State: strings.Join(leaves("", s.Value), ", "), Active: s.Active, Children: showChildren(s.Children),
		})
	}
	return all
}

// LogEntry is one transition of an actor.
type LogEntry struct {
	Seq     int64           `json:"seq"`
	At      Time            `json:"at" doc:"Time of the transition, by the clock of the actor."`
	Kind    actor.EntryKind `json:"kind" doc:"Cause: start, event, timer, done, error or stop."`
	Event   json.RawMessage `json:"event,omitempty"`
	Caller  string          `json:"caller,omitempty"`
	From    []string        `json:"from" nullable:"false" doc:"Ids of the active states before the transition."`
	To      []string        `json:"to" nullable:"false" doc:"Ids of the active states after the transition."`
	State   string          `json:"state"`
	Output  json.RawMessage `json:"output" doc:"Events and logs that the transition emitted."`
	Version int64           `json:"version"`
}

type logInput struct {
	ByActor
	After int64 `query:"after" minimum:"0" maximum:"9007199254740991" doc:"Number of a transition; only later transitions are returned."`
	Limit int   `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

// ActorLog is the log of an actor, transition by transition.
type ActorLog struct {
	Data []LogEntry `json:"data" nullable:"false"`
	Next *int64     `json:"next_after" required:"true" doc:"Value of after for the next page; null on the last page."`
}

func (a *API) getLog(ctx context.Context, in *logInput) (*One[ActorLog], error) {
	entries, err := a.config.Actors.Log(ctx, in.ref(), in.After, in.Limit+1)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		if _, err := a.config.Actors.Get(ctx, in.ref()); err != nil {
			return nil, err
		}
	}
	root := in.Type
	if m, _, err := a.config.Actors.Machine(ctx, in.Type); err == nil {
		root = m.ID()
	}
	list := ActorLog{Data: []LogEntry{}}
	before := []string{}
	for _, e := range entries[:min(in.Limit, len(entries))] {
		shown := LogEntry{
			Seq: e.Sequence, At: Time(e.At), Kind: e.Kind, Event: e.Event, From: before, To: activeIDs(root, e.Value), State: stateText(e.Value),
			Output: showOutput(e.Output), Version: e.Sequence,
		}
		if e.Caller != nil {
			shown.Caller = string(e.Caller.Kind) + ":" + e.Caller.ID
		}
		before, list.Data = shown.To, append(list.Data, shown)
	}
	if len(entries) > in.Limit {
		list.Next = &entries[in.Limit-1].Sequence
	}
	return one(list), nil
}

// showOutput returns what a transition emitted and logged.
func showOutput(s actor.Output) json.RawMessage {
	raw, err := json.Marshal(s)
	if err != nil { // it was stored as JSON
		return json.RawMessage("{}")
	}
	return raw
}

// activeIDs returns the default ids of the states in a value. A document may give its
// states other ids.
func activeIDs(root string, value json.RawMessage) []string {
	ids := []string{root}
	var v any
	if json.Unmarshal(value, &v) != nil {
		return ids
	}
	for _, leaf := range leaves("", v) {
		path := root
		for _, name := range strings.Split(leaf, ".") {
			if path += "." + name; !slices.Contains(ids, path) {
				ids = append(ids, path)
			}
		}
	}
	return ids
}
