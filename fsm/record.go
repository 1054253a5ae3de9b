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

// Recorded is a machine that some process has served.
type Recorded struct {
	Name    string
	Version int
	// Queue is where its instances run unless they say otherwise.
	Queue string
	// Steps are its steps; it begins with the first.
	Steps []string
	// OnCancel is the step that runs when an instance is cancelled or passes its
	// deadline. Empty: the instance ends.
	OnCancel string
	// Schema is the JSON Schema of its state; nil if it is not known.
	Schema json.RawMessage
}

// record notes the machines that this process serves, once, so that tools which
// were not compiled with them can show and start them.
func (m *Machines) record(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var stmts []sqldb.Stmt
	// In order, so that two processes that begin together cannot deadlock.
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
		return fmt.Errorf("record machines: %w", err)
	}
	for key := range m.known {
		m.recorded[key] = true
	}
	return nil
}

// Announce records the machines that this process serves, as its first run does,
// so that others can start them before that.
func (m *Machines) Announce(ctx context.Context) error { return m.record(ctx) }

func (d *Definition[S]) describe() store.RecordedDefinition {
	return store.RecordedDefinition{
		Definition: store.Definition{FSM: d.name, Version: d.version}, First: d.first, Queue: d.queue, Steps: d.Steps(), Schema: schemaOf[S](), CancelStep: edge.Optional(d.onCancel),
	}
}

// Definitions returns the machines that some process has served, by name and the
// newest version first.
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
		return nil, fmt.Errorf("list machines: %w", err)
	}
	return all, nil
}

// StartNamed starts an instance of a machine that some process has served, with a
// state in JSON that this process cannot check. Version 0 means the newest one.
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

// Definition returns the machine to start instances with, from a state in JSON
// that this process cannot check. It has no code: another process runs it.
func (r Recorded) Definition() *Definition[json.RawMessage] {
	steps := make([]StepOf[json.RawMessage], len(r.Steps))
	for i, step := range r.Steps {
		steps[i] = Step(step, elsewhere)
	}
	return Define(r.Name, r.Version, steps...).Queue(r.Queue).OnCancel(r.OnCancel)
}

// elsewhere stands for the code of a step, which another process has.
func elsewhere(context.Context, *Run[json.RawMessage]) (Outcome, error) {
	return Outcome{}, fault.Invalidf("step", "is not known here")
}

// schemaOf returns the JSON Schema of a state, for forms, or nil where the type does
// not tell how it looks in JSON.
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
