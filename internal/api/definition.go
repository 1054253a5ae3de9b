package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/remote"
)

// definitionsAge is the maximum age of the cached list of definitions.
const definitionsAge = time.Second

// definitions caches the list of definitions, so that not every start reads it.
type definitions struct {
	mu   sync.Mutex
	all  []fsm.Recorded
	read time.Time
}

// findDefinition returns a definition. Version 0 means the newest one.
func (a *API) findDefinition(ctx context.Context, name string, version int) (fsm.Recorded, error) {
	for _, fresh := range []bool{false, true} {
		all, err := a.recorded(ctx, fresh)
		if err != nil {
			return fsm.Recorded{}, err
		}
		for _, d := range all {
			if d.Name == name && (version == 0 || d.Version == version) {
				return d, nil
			}
		}
	}
	id := name
	if version != 0 {
		id = fmt.Sprintf("%s version %d", name, version)
	}
	return fsm.Recorded{}, &fault.NotFound{Kind: "definition", ID: id}
}

func (a *API) recorded(ctx context.Context, fresh bool) ([]fsm.Recorded, error) {
	d := &a.definitions
	d.mu.Lock()
	defer d.mu.Unlock()
	now := a.rt.Clock.Now()
	if !fresh && d.all != nil && now.Sub(d.read) < definitionsAge {
		return d.all, nil
	}
	all, err := a.config.Machines.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	d.all, d.read = all, now
	return all, nil
}

// Definition is a state machine that some process runs.
type Definition struct {
	Name     string              `json:"name"`
	Source   string              `json:"source" enum:"go,http" doc:"Location of the steps: a program, or HTTP endpoints."`
	Queue    string              `json:"queue"`
	Latest   int                 `json:"latest" doc:"Newest version."`
	Schema   json.RawMessage     `json:"schema,omitempty" doc:"JSON Schema of the state of the newest version, if known."`
	Versions []DefinitionVersion `json:"versions" nullable:"false" doc:"Versions, newest first."`
}

// DefinitionVersion is one version of a state machine.
type DefinitionVersion struct {
	Version   int              `json:"version"`
	FirstStep string           `json:"first_step"`
	Queue     string           `json:"queue"`
	OnCancel  string           `json:"on_cancel,omitempty" doc:"Step that runs when an instance is cancelled or passes its deadline. Default: none; the instance is cancelled immediately."`
	Steps     []DefinitionStep `json:"steps" nullable:"false"`
	Edges     []DefinitionEdge `json:"edges,omitempty" doc:"Transitions between steps of its newest instances, if the definition keeps a history. Omitted from lists."`

	revision string // of a definition with remote steps
}

// DefinitionEdge is a transition from one step to another.
type DefinitionEdge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Count int    `json:"count" doc:"Number of instances that took it."`
}

// DefinitionStep is a step of a state machine.
type DefinitionStep struct {
	Name    string   `json:"name"`
	URL     string   `json:"url,omitempty" doc:"URL of a remote step."`
	Timeout Duration `json:"timeout,omitempty"`
}

// ByName is the input of a route for one resource with a name.
type ByName struct {
	Name string `path:"name" maxLength:"128"`
}

func (a *API) listDefinitions(ctx context.Context, _ *struct{}) (*List[Definition], error) {
	all, err := a.allDefinitions(ctx)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), all, "", func(d Definition) Definition { return d }), nil
}

type getDefinitionInput struct {
	ByName
	Reading
	Version int `query:"version" minimum:"0" maximum:"2147483647" doc:"Version to return. Default: all versions. The ETag covers the returned versions: to change a version with remote steps, request only that version."`
}

func (a *API) getDefinition(ctx context.Context, in *getDefinitionInput) (*Tagged[Definition], error) {
	all, err := a.allDefinitions(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		if in.Version != 0 {
			d.Versions = slices.DeleteFunc(d.Versions, func(v DefinitionVersion) bool { return v.Version != in.Version })
		}
		if d.Name == in.Name && len(d.Versions) > 0 {
			return a.answerDefinition(ctx, d, in.Reading)
		}
	}
	return nil, &fault.NotFound{Kind: "definition", ID: in.Name}
}

// answerDefinition shows a definition. A definition in Go code cannot be changed here and
// has no ETag.
func (a *API) answerDefinition(ctx context.Context, d Definition, in Reading) (*Tagged[Definition], error) {
	if err := a.addEdges(ctx, d); err != nil {
		return nil, err
	}
	var revisions []any
	for _, v := range d.Versions {
		if v.revision != "" {
			revisions = append(revisions, v.revision)
		}
	}
	if revisions == nil {
		return tagged(d, ""), nil
	}
	etag, err := etagOf(revisions...)
	if err != nil {
		return nil, err
	}
	return tagged(d, etag).unlessKnown(in)
}

// addEdges adds to each version the transitions that were taken.
func (a *API) addEdges(ctx context.Context, d Definition) error {
	edges, err := a.inspect.Edges(ctx, d.Name)
	for _, e := range edges {
		for i := range d.Versions {
			if v := &d.Versions[i]; v.Version == e.Version {
				v.Edges = append(v.Edges, DefinitionEdge{From: e.From, To: e.To, Count: e.Count})
			}
		}
	}
	return err
}

func (a *API) allDefinitions(ctx context.Context) ([]Definition, error) {
	recorded, err := a.recorded(ctx, true)
	if err != nil {
		return nil, err
	}
	remotes, err := a.remotes(ctx)
	if err != nil {
		return nil, err
	}
	var all []Definition
	for _, r := range recorded {
		stored, remote := remotes[r.Name][r.Version]
		if len(all) == 0 || all[len(all)-1].Name != r.Name {
			all = append(all, Definition{Name: r.Name, Source: "go", Queue: r.Queue, Latest: r.Version, Schema: r.Schema})
		}
		last := &all[len(all)-1]
		last.Versions = append(last.Versions, showVersion(r, stored))
		if remote && last.Latest == r.Version {
			last.Source = "http"
		}
	}
	return all, nil
}

// showVersion shows a version of a definition. If its steps are remote, stored contains
// them.
func showVersion(r fsm.Recorded, stored remote.Stored) DefinitionVersion {
	shown := DefinitionVersion{
		Version: r.Version, Queue: r.Queue, OnCancel: r.OnCancel, Steps: make([]DefinitionStep, len(r.Steps)), revision: stored.Revision,
	}
	for i, step := range r.Steps {
		shown.Steps[i].Name = step
	}
	if len(r.Steps) > 0 { // they could be decoded
		shown.FirstStep = r.Steps[0]
	}
	for i, step := range stored.Steps[:min(len(stored.Steps), len(r.Steps))] {
		shown.Steps[i].URL, shown.Steps[i].Timeout = shownURL(step.URL), Duration(step.Timeout)
	}
	return shown
}
