package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/statechart"
)

// Machine is a type of actors that is data only.
type Machine struct {
	Name       string          `json:"name"`
	Version    int64           `json:"version" doc:"The newest one, unless another was asked for."`
	Source     string          `json:"source" enum:"go,http"`
	Definition json.RawMessage `json:"definition,omitempty" doc:"The XState machine. Not in lists."`
	Options    *MachineOptions `json:"options,omitempty" doc:"Not in lists."`
	Events     []ActorEvent    `json:"events,omitempty" doc:"The events that it knows. Not in lists."`
}

// MachineOptions configure a type of actors that is data only.
type MachineOptions struct {
	Events        map[string][]string `json:"events,omitempty" doc:"The events that clients and services may send, with * at the end for all that begin so. Default: all."`
	DisableAlarms bool                `json:"disable_alarms,omitempty" doc:"Delays are not stored: they never fire."`
	SystemEvents  bool                `json:"system_events,omitempty" doc:"Actors are sent INITIALIZE, RESUME and MIGRATE."`
	LogRetention  int                 `json:"log_retention,omitempty" minimum:"-2147483648" maximum:"2147483647" doc:"How many steps of an actor are kept at least. Negative: all."`
}

func (o *MachineOptions) options() *actor.DocumentOptions {
	if o == nil {
		return nil
	}
	stored := &actor.DocumentOptions{DisableAlarms: o.DisableAlarms, SystemEvents: o.SystemEvents, LogRetention: o.LogRetention}
	for kind, events := range o.Events {
		if stored.Events == nil {
			stored.Events = map[actor.CallerKind][]string{}
		}
		stored.Events[actor.CallerKind(kind)] = events
	}
	return stored
}

func showOptions(o actor.DocumentOptions) *MachineOptions {
	shown := &MachineOptions{DisableAlarms: o.DisableAlarms, SystemEvents: o.SystemEvents, LogRetention: o.LogRetention}
	for kind, events := range o.Events {
		if shown.Events == nil {
			shown.Events = map[string][]string{}
		}
		shown.Events[string(kind)] = events
	}
	return shown
}

func (a *API) registerMachines() {
	handle(a, "list-machines", a.listMachines)
	handle(a, "check-machine", a.checkMachine)
	handle(a, "put-machine", a.putMachine)
	handle(a, "get-machine", a.getMachine)
	handle(a, "draw-machine", a.drawMachine)
}

func (a *API) listMachines(ctx context.Context, _ *struct{}) (*List[Machine], error) {
	all, err := a.config.Actors.Documents(ctx)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), all, "", func(d actor.Document) Machine { return Machine{Name: d.Name, Version: d.Version, Source: "http"} }), nil
}

// MachineInput is a machine to be checked or stored.
type MachineInput struct {
	Definition json.RawMessage `json:"definition" doc:"The XState machine, whose functions are expressions."`
	Options    *MachineOptions `json:"options,omitempty"`
}

// Check is what is wrong with a machine.
type Check struct {
	Valid    bool            `json:"valid"`
	Problems []ProblemDetail `json:"problems" nullable:"false"`
	Events   []ActorEvent    `json:"events,omitempty" doc:"The events that it knows."`
	Effects  []string        `json:"effects,omitempty" doc:"The actions that happen outside."`
	Tasks    []string        `json:"tasks,omitempty" doc:"The actors that it invokes outside."`
}

// checkMachine says what is wrong with a machine. Nothing is stored. What it names
// outside is listed and not looked for: a process that runs it may have that.
func (a *API) checkMachine(_ context.Context, in *struct{ Body MachineInput }) (*One[Check], error) {
	m, err := statechart.Parse(in.Body.Definition, nil, &statechart.Options{AllowUnknown: true})
	if err != nil {
		details, ok := machineProblems(err)
		if !ok {
			return nil, err
		}
		return one(Check{Problems: details}), nil
	}
	return one(Check{Valid: true, Problems: []ProblemDetail{}, Events: eventsOf(m), Effects: m.Effects(), Tasks: m.Tasks()}), nil
}

// machineProblems returns what Parse has found wrong, place by place.
func machineProblems(err error) ([]ProblemDetail, bool) {
	var problems statechart.Problems
	if !errors.As(err, &problems) {
		return nil, false
	}
	var details []ProblemDetail
	for _, p := range problems {
		details = append(details, ProblemDetail{Location: p.Field, Message: p.Reason})
	}
	return details, true
}

type putMachineInput struct {
	ByName
	Replacing
	Body MachineInput
}

func (a *API) putMachine(ctx context.Context, in *putMachineInput) (*Tagged[Machine], error) {
	var check func(*actor.Document) error
	if in.Replacing != (Replacing{}) {
		check = func(newest *actor.Document) error { return allow(in, newest, machineTag) }
	}
	d, err := a.config.Actors.RegisterDocumentIf(ctx, in.Name, in.Body.Definition, in.Body.Options.options(), check)
	if details, ok := machineProblems(err); ok {
		p := NewProblem(http.StatusUnprocessableEntity, codeInvalid, "the machine cannot be run")
		p.Errors = details
		return nil, p
	}
	if err != nil {
		return nil, err
	}
	return a.answerMachine(ctx, d)
}

// machineTag names a version of a machine. To change a machine is to replace its
// newest version.
func machineTag(d *actor.Document) (string, error) { return etagOf(d) }

func (a *API) answerMachine(ctx context.Context, d actor.Document) (*Tagged[Machine], error) {
	etag, err := machineTag(&d)
	return tagged(a.showMachine(ctx, d), etag), err
}

func (a *API) showMachine(ctx context.Context, d actor.Document) Machine {
	shown := Machine{Name: d.Name, Version: d.Version, Source: "http", Definition: d.Machine, Options: showOptions(d.Options)}
	if m, _, err := a.config.Actors.MachineOf(ctx, d.Name, d.Version); err == nil {
		shown.Events = eventsOf(m)
	}
	return shown
}

// ByMachine is the input of a route for one machine.
type ByMachine struct {
	ByName
	Version int64 `query:"version" minimum:"1" maximum:"9007199254740991" doc:"Default: the newest."`
}

type getMachineInput struct {
	ByMachine
	Reading
}

// getMachine shows a machine. One that is written in Go cannot be changed here and has
// no ETag.
func (a *API) getMachine(ctx context.Context, in *getMachineInput) (*Tagged[Machine], error) {
	d, err := a.config.Actors.Document(ctx, in.Name, in.Version)
	var missing *fault.NotFound
	if err == nil {
		answer, err := a.answerMachine(ctx, d)
		if err != nil {
			return nil, err
		}
		return answer.unlessKnown(in.Reading)
	} else if !errors.As(err, &missing) {
		return nil, err
	}
	m, version, err := a.config.Actors.MachineOf(ctx, in.Name, in.Version)
	if err != nil {
		return nil, err
	}
	return tagged(Machine{Name: in.Name, Version: version, Source: "go", Events: eventsOf(m)}, ""), nil
}

type drawInput struct {
	ByMachine
	Active string `query:"active" maxLength:"8192" doc:"The ids of the states to light, with commas between."`
}

// Drawing is a picture of a machine.
type Drawing struct {
	ContentType string `header:"Content-Type"`
	CSP         string `header:"Content-Security-Policy"`
	Body        []byte
}

// drawMachine draws a machine. The picture can do nothing, whatever a document has in
// its names.
func (a *API) drawMachine(ctx context.Context, in *drawInput) (*Drawing, error) {
	m, _, err := a.config.Actors.MachineOf(ctx, in.Name, in.Version)
	if err != nil {
		return nil, fmt.Errorf("draw: %w", err)
	}
	var active []string
	if in.Active != "" {
		active = strings.Split(in.Active, ",")
	}
	svg := a.drawings.get(drawingKey{m, in.Active}, func() []byte { return statechart.SVG(m, active) })
	const csp = "default-src 'none'; style-src 'unsafe-inline'"
	return &Drawing{ContentType: "image/svg+xml", CSP: csp, Body: svg}, nil
}
