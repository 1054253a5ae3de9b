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

// Statechart is a stored statechart.
type Statechart struct {
	Name       string             `json:"name"`
	Version    int64              `json:"version" doc:"Version. Default: the newest."`
	Source     string             `json:"source" enum:"go,http"`
	Definition json.RawMessage    `json:"definition,omitempty" doc:"XState document. Omitted from lists."`
	Options    *StatechartOptions `json:"options,omitempty" doc:"Omitted from lists."`
	Events     []ActorEvent       `json:"events,omitempty" doc:"Events of the statechart. Omitted from lists."`
}

// StatechartOptions configure a stored statechart.
type StatechartOptions struct {
	Events        map[string][]string `json:"events,omitempty" doc:"Events that clients and services may send. A * at the end matches any suffix. Default: all."`
	DisableTimers bool                `json:"disable_timers,omitempty" doc:"Disables timers: delayed transitions never fire."`
	SystemEvents  bool                `json:"system_events,omitempty" doc:"Sends the events INITIALIZE, RESUME and MIGRATE to the actors."`
	LogRetention  int                 `json:"log_retention,omitempty" minimum:"-2147483648" maximum:"2147483647" doc:"Minimum number of transitions kept in the log of an actor. Negative: all."`
}

func (o *StatechartOptions) options() *actor.StatechartOptions {
	if o == nil {
		return nil
	}
	stored := &actor.StatechartOptions{DisableTimers: o.DisableTimers, SystemEvents: o.SystemEvents, LogRetention: o.LogRetention}
	for kind, events := range o.Events {
		if stored.Events == nil {
			stored.Events = map[actor.CallerKind][]string{}
		}
		stored.Events[actor.CallerKind(kind)] = events
	}
	return stored
}

func showOptions(o actor.StatechartOptions) *StatechartOptions {
	shown := &StatechartOptions{DisableTimers: o.DisableTimers, SystemEvents: o.SystemEvents, LogRetention: o.LogRetention}
	for kind, events := range o.Events {
		if shown.Events == nil {
			shown.Events = map[string][]string{}
		}
		shown.Events[string(kind)] = events
	}
	return shown
}

func (a *API) listStatecharts(ctx context.Context, _ *struct{}) (*List[Statechart], error) {
	all, err := a.config.Actors.Statecharts(ctx)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), all, "", func(d actor.Statechart) Statechart {
		return Statechart{Name: d.Name, Version: d.Version, Source: "http"}
	}), nil
}

// StatechartInput is a statechart to be validated or stored.
type StatechartInput struct {
	Definition json.RawMessage    `json:"definition" doc:"XState document whose functions are expressions."`
	Options    *StatechartOptions `json:"options,omitempty"`
}

// Check is the list of the problems of a statechart.
type Check struct {
	Valid       bool            `json:"valid"`
	Problems    []ProblemDetail `json:"problems" nullable:"false"`
	Events      []ActorEvent    `json:"events,omitempty" doc:"Events of the statechart."`
	Effects     []string        `json:"effects,omitempty" doc:"Names of its effects."`
	Invocations []string        `json:"invocations,omitempty" doc:"Names of its invocations."`
}

// checkStatechart validates a statechart without storing it. External names are listed but
// not resolved, because the process that runs the statechart may have them.
func (a *API) checkStatechart(_ context.Context, in *struct{ Body StatechartInput }) (*One[Check], error) {
	m, err := statechart.Parse(in.Body.Definition, nil, &statechart.Options{AllowUnknown: true})
	if err != nil {
		details, ok := statechartProblems(err)
		if !ok {
			return nil, err
		}
		return one(Check{Problems: details}), nil
	}
	return one(Check{Valid: true, Problems: []ProblemDetail{}, Events: eventsOf(m), Effects: m.Effects(), Invocations: m.Invocations()}), nil
}

// statechartProblems returns the problems that Parse has found, with their places.
func statechartProblems(err error) ([]ProblemDetail, bool) {
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

type putStatechartInput struct {
	ByName
	Replacing
	Body StatechartInput
}

func (a *API) putStatechart(ctx context.Context, in *putStatechartInput) (*Tagged[Statechart], error) {
	var check func(*actor.Statechart) error
	if in.Replacing != (Replacing{}) {
		check = func(newest *actor.Statechart) error { return allow(in, newest, statechartTag) }
	}
	d, err := a.config.Actors.StoreStatechartIf(ctx, in.Name, in.Body.Definition, in.Body.Options.options(), check)
	if details, ok := statechartProblems(err); ok {
		p := NewProblem(http.StatusUnprocessableEntity, codeInvalid, "the statechart cannot be run")
		p.Errors = details
		return nil, p
	}
	if err != nil {
		return nil, err
	}
	return a.answerStatechart(ctx, d)
}

// statechartTag returns the ETag of a version of a statechart. A change of a statechart
// replaces its newest version.
func statechartTag(d *actor.Statechart) (string, error) { return etagOf(d) }

func (a *API) answerStatechart(ctx context.Context, d actor.Statechart) (*Tagged[Statechart], error) {
	etag, err := statechartTag(&d)
	return tagged(a.showStatechart(ctx, d), etag), err
}

func (a *API) showStatechart(ctx context.Context, d actor.Statechart) Statechart {
	shown := Statechart{Name: d.Name, Version: d.Version, Source: "http", Definition: d.Machine, Options: showOptions(d.Options)}
	if m, _, err := a.config.Actors.MachineOf(ctx, d.Name, d.Version); err == nil {
		shown.Events = eventsOf(m)
	}
	return shown
}

// ByStatechart is the input of a route for one statechart.
type ByStatechart struct {
	ByName
	Version int64 `query:"version" minimum:"1" maximum:"9007199254740991" doc:"Default: the newest version."`
}

type getStatechartInput struct {
	ByStatechart
	Reading
}

// getStatechart returns a statechart. A statechart that is written in Go cannot be changed
// here and has no ETag.
func (a *API) getStatechart(ctx context.Context, in *getStatechartInput) (*Tagged[Statechart], error) {
	d, err := a.config.Actors.Statechart(ctx, in.Name, in.Version)
	var missing *fault.NotFound
	if err == nil {
		answer, err := a.answerStatechart(ctx, d)
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
	return tagged(Statechart{Name: in.Name, Version: version, Source: "go", Events: eventsOf(m)}, ""), nil
}

type drawInput struct {
	ByStatechart
	Active string `query:"active" maxLength:"8192" doc:"Comma-separated ids of the states to highlight."`
}

// Drawing is a picture of a statechart.
type Drawing struct {
	ContentType string `header:"Content-Type"`
	CSP         string `header:"Content-Security-Policy"`
	Body        []byte
}

// drawStatechart draws a statechart. The picture has no active content, whatever names a
// document contains.
func (a *API) drawStatechart(ctx context.Context, in *drawInput) (*Drawing, error) {
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
