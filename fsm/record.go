package fsm

import (
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Recorded is a definition that some process has served.
type Recorded struct {
	Name    string
	Version int
	// Queue is the default queue of its instances.
	Queue string
	// Steps are its steps. An instance starts with the first.
	Steps []string
	// OnCancel is the step that runs when an instance is cancelled or passes its
	// deadline. Empty: the instance is finished.
	OnCancel string
	// Schema is the JSON Schema of its state, or nil if it is not known.
	Schema json.RawMessage
}

// record records the definitions that this process serves, once, so that tools that were
// not compiled with them can show and start them.
func (m *Machines) record(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var stmts []sqldb.Stmt
	// Sorted, so that two processes that start concurrently cannot deadlock.
	keys := slices.SortedFunc(maps.Keys(m.known), func(a, b definition) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.version, b.version))
	})
	for _, key := range keys {
		if m.recorded[key] {
			continue
		}
		stmt, err := m.rt.Store.RecordDefinition(m.known[key].describe(), m.rt.Now())
		if err != nil {
			return fmt.Errorf("record fsm %s: %w", key.name, err)
		}
		policies, err := m.recordPolicies(key, m.known[key].policies())
		if err != nil {
			return fmt.Errorf("record retry policies of fsm %s: %w", key.name, err)
		}
		stmts = append(stmts, stmt, policies)
	}
	if len(stmts) == 0 {
		return nil
	}
	if err := m.transact(ctx, func(tx sqldb.Tx) error { return tx.Run(ctx, stmts...) }); err != nil {
		return fmt.Errorf("record definitions: %w", err)
	}
	for key := range m.known {
		m.recorded[key] = true
	}
	return nil
}

// Announce records the definitions that this process serves, as its first run does, so
// that other processes can start instances of them before that.
func (m *Machines) Announce(ctx context.Context) error { return m.record(ctx) }

func (d *Definition[S]) describe() store.RecordedDefinition {
	return store.RecordedDefinition{
		Definition: store.Definition{FSM: d.name, Version: d.version}, First: d.order[0], Queue: d.options.Queue, Steps: d.Steps(), Schema: schemaOf[S](), CancelStep: edge.Optional(d.options.OnCancel),
	}
}

// Definitions returns the definitions that some process has served, by name, the newest
// version first.
func (m *Machines) Definitions(ctx context.Context) ([]Recorded, error) {
	var all []Recorded
	err := m.read(ctx, m.rt.Store.RecordedDefinitions(func(d store.RecordedDefinition) {
		r := Recorded{Name: d.FSM, Version: d.Version, Queue: d.Queue, Steps: d.Steps, OnCancel: edge.Value(d.CancelStep)}
		if d.Schema != nil {
			r.Schema = json.RawMessage(*d.Schema)
		}
		all = append(all, r)
	}))
	if err != nil {
		return nil, fmt.Errorf("list definitions: %w", err)
	}
	return all, nil
}

// StartNamed starts an instance of a definition that some process has served. This
// process cannot check the JSON state. Version 0 means the newest version.
func (m *Machines) StartNamed(ctx context.Context, name string, version int, state json.RawMessage, options *StartOptions) (Started, error) {
	all, err := m.Definitions(ctx)
	if err != nil {
		return Started{}, err
	}
	for _, d := range all {
		if d.Name == name && (version == 0 || d.Version == version) {
			return m.startRecorded(ctx, d, state, options)
		}
	}
	return Started{}, &fault.NotFound{Kind: "definition", ID: fmt.Sprintf("%s version %d", name, version)}
}

func (m *Machines) startRecorded(ctx context.Context, d Recorded, state json.RawMessage, options *StartOptions) (Started, error) {
	if err := edge.JSON("state", state, m.options.MaxState); err != nil {
		return Started{}, err
	}
	return Start(ctx, m.eng, d.Definition(), state, options)
}

// Definition returns a definition with which instances can be started. This process
// cannot check their JSON state. The definition has no code: another process runs it.
func (r Recorded) Definition() *Definition[json.RawMessage] {
	steps := make([]StepOf[json.RawMessage], len(r.Steps))
	for i, step := range r.Steps {
		steps[i] = Step(step, elsewhere, nil)
	}
	return Define(r.Name, r.Version, &DefinitionOptions[json.RawMessage]{Queue: r.Queue, OnCancel: r.OnCancel}, steps...)
}

// elsewhere replaces the code of a step, which another process has.
func elsewhere(context.Context, *Run[json.RawMessage]) (Outcome, error) {
	return Outcome{}, fault.Invalidf("step", "is not defined in this process")
}

// schemaOf returns the JSON Schema of a state, for forms, or nil if the type does not
// determine its JSON form.
func schemaOf[S any]() *string {
	var state S
	switch any(&state).(type) {
	case json.Marshaler, encoding.TextMarshaler:
		return nil
	}
	schema, err := jsonschema.For[S](nil)
	if err != nil {
		return nil
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil
	}
	text := string(raw)
	return &text
}
