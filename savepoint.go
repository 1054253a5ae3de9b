package perdure

import (
	"maps"
	"slices"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/outbox"
)

// savepoint is the state of the unit when the application made a savepoint.
type savepoint struct {
	name                                string
	stmts, mutations, events, committed int
	refs                                outbox.RefMap
}

// allow returns an error if the application must not run a statement: the engine starts and
// ends the transaction.
func (tx *Tx) allow(kind sqldb.Control, name string) error {
	switch {
	case kind == sqldb.Ends:
		return tx.fail(fault.ErrEngineCommits)
	case kind == sqldb.RollbackTo && tx.savepoint(name) < 0:
		return tx.fail(fault.Invalidf("savepoint "+name, "must be one of the unit"))
	}
	return nil
}

// divided follows a statement on a savepoint that has run. After a rollback to a savepoint,
// the changes that were recorded since then are not in the database, and must not be in
// the outbox either.
func (tx *Tx) divided(kind sqldb.Control, name string) {
	switch i := tx.savepoint(name); {
	case kind == sqldb.Savepoint:
		tx.savepoints = append(tx.savepoints, savepoint{
			name: name, stmts: len(tx.unit.Stmts), mutations: len(tx.unit.Mutations), events: len(tx.unit.Events), committed: len(tx.committed), refs: maps.Clone(tx.unit.Refs),
		})
	case kind == sqldb.Release && i >= 0:
		tx.savepoints = tx.savepoints[:i]
	case kind == sqldb.RollbackTo && i >= 0:
		tx.rollbackTo(i)
	}
}

// savepoint returns the index of the last savepoint with a name, or -1.
func (tx *Tx) savepoint(name string) int {
	for i, s := range slices.Backward(tx.savepoints) {
		if s.name == name {
			return i
		}
	}
	return -1
}

// rollbackTo removes what was recorded after savepoint i, which remains.
func (tx *Tx) rollbackTo(i int) {
	s := tx.savepoints[i]
	tx.savepoints = tx.savepoints[:i+1]
	tx.unit.Stmts, tx.committed = tx.unit.Stmts[:s.stmts], tx.committed[:s.committed]
	tx.unit.Mutations, tx.unit.Events = tx.unit.Mutations[:s.mutations], tx.unit.Events[:s.events]
	tx.flushed = s.stmts
	clear(tx.unit.Refs)
	maps.Copy(tx.unit.Refs, s.refs)
	if tx.app != nil && tx.app.depth > i {
		tx.app.failed = nil
	}
}
