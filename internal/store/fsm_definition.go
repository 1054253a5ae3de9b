package store

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// RecordedDefinition is a definition as it is recorded for tools.
type RecordedDefinition struct {
	Definition
	First, Queue string
	Steps        []string
	// Schema is the JSON Schema of the state, nil if it is not known.
	Schema *string
	// CancelStep is the step that runs when an instance is cancelled, nil if there is none.
	CancelStep *string
}

// RecordDefinition returns the statement that records a definition.
func (s *Store) RecordDefinition(d RecordedDefinition, now Now) (sqldb.Stmt, error) {
	steps, err := json.Marshal(d.Steps)
	return s.stmt("DefinitionRecord", d.FSM, d.Version, d.First, d.Queue, string(steps), d.Schema, d.CancelStep, at(now)), err
}

// RecordedDefinitions returns the statement that reads all recorded definitions, the newest
// version of each first.
func (s *Store) RecordedDefinitions(found func(RecordedDefinition)) sqldb.Stmt {
	list := s.stmt("DefinitionList")
	list.Row = func(scan sqldb.Scan) error {
		var d RecordedDefinition
		var steps string
		if err := scan(&d.FSM, &d.Version, &d.First, &d.Queue, &steps, &d.Schema, &d.CancelStep); err != nil {
			return err
		}
		_ = json.Unmarshal([]byte(steps), &d.Steps) // best effort: shows the steps that can be decoded
		found(d)
		return nil
	}
	return list
}

// PolicySet holds the retry policies, as JSON, of the instances of a definition that were
// started between Since and the time of the next set.
type PolicySet struct {
	Since time.Time
	Retry string
}

// RecordPolicies returns the statement that records the retry policies that instances of a
// definition have from now on. Nothing changes if they equal the newest set.
func (s *Store) RecordPolicies(d Definition, retry string, now Now) sqldb.Stmt {
	return s.stmt("PolicyRecord", d.FSM, d.Version, retry, at(now))
}

// ListPolicies returns the statement that reads the policy sets of a definition, oldest first.
func (s *Store) ListPolicies(d Definition, found func(PolicySet)) sqldb.Stmt {
	return read(s.stmt("PolicyList", d.FSM, d.Version), found, func(p *PolicySet) []any { return []any{&p.Since, &p.Retry} })
}

// ChangePolicies returns the statement that changes a policy set of a definition.
func (s *Store) ChangePolicies(d Definition, p PolicySet) sqldb.Stmt {
	return s.stmt("PolicyChange", p.Retry, d.FSM, d.Version, p.Since)
}
