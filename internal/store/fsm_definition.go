package store

import (
	"encoding/json"

	"github.com/perdure/perdure/internal/sqldb"
)

// RecordedDefinition is a machine as tools know it.
type RecordedDefinition struct {
	Definition
	First, Queue string
	Steps        []string
	// Schema is the JSON Schema of the state; nil: it is not known.
	Schema *string
	// CancelStep is the step that runs when an instance is cancelled; nil: none.
	CancelStep *string
}

// RecordDefinition returns the statement that records a machine.
func (s *Store) RecordDefinition(d RecordedDefinition, now Now) (sqldb.Stmt, error) {
	steps, err := json.Marshal(d.Steps)
	return s.stmt("DefinitionRecord", d.FSM, d.Version, d.First, d.Queue, string(steps), d.Schema, d.CancelStep, at(now)), err
}

// RecordedDefinitions returns the statement that reads all recorded machines, the
// newest version of each first.
func (s *Store) RecordedDefinitions(found func(RecordedDefinition)) sqldb.Stmt {
	list := s.stmt("DefinitionList")
	list.Row = func(scan sqldb.Scan) error {
		var d RecordedDefinition
		var steps string
		if err := scan(&d.FSM, &d.Version, &d.First, &d.Queue, &steps, &d.Schema, &d.CancelStep); err != nil {
			return err
		}
		_ = json.Unmarshal([]byte(steps), &d.Steps) // shown as far as it can be read
		found(d)
		return nil
	}
	return list
}
