package stacks_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// stack is an application with one library.
type stack struct {
	eng *perdure.Engine
	// insert writes a note in the transaction of a unit.
	insert func(tx *perdure.Tx, id int) error
	// nested writes a note in a nested transaction, which fails afterwards. Nil if the library
	// has no nested transactions.
	nested func(tx *perdure.Tx, id int) error
	// joined writes a note in a transaction of the library, joins it, and commits it if fn
	// returns nil.
	joined func(ctx context.Context, id int, fn func(tx *perdure.Tx) error) error
}

var errMine = errors.New("mine")

// onPostgres are the libraries that only PostgreSQL has. sqlc writes other code for each
// database.
var onPostgres = map[string]func(t *testing.T, db enginetest.Database) stack{
	"pgx":                usingPgx,
	"sqlc, pgx":          usingSqlcPgx,
	"sqlc, database/sql": usingSqlcSQL,
	"lib/pq":             usingPq,
}

// everywhere are the libraries for all databases.
var everywhere = map[string]func(t *testing.T, db enginetest.Database) stack{
	"database/sql":          usingSQL,
	"GORM":                  func(t *testing.T, db enginetest.Database) stack { return usingGORM(t, db, false) },
	"GORM with PrepareStmt": func(t *testing.T, db enginetest.Database) stack { return usingGORM(t, db, true) },
	"bun":                   usingBun,
	"ent":                   usingEnt,
	"sqlx":                  usingSqlx,
}

func TestEachStackCommitsAndRollsBack(t *testing.T) {
	t.Parallel()
	for name, open := range onPostgres {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tryStack(t, enginetest.New(t, enginetest.Postgres), open)
		})
	}
	for name, open := range everywhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enginetest.Each(t, func(t *testing.T, db enginetest.Database) { tryStack(t, db, open) })
		})
	}
}

func tryStack(t *testing.T, db enginetest.Database, open func(*testing.T, enginetest.Database) stack) {
	t.Helper()
	db.Exec(t, "create table notes (id integer primary key, note text)")
	s := open(t, db)
	hooks, err := hook.New(s.eng, "stacks", nil)
	enginetest.NoError(t, err)
	work, err := hook.Define(hooks, "work", func(context.Context, int) error { return nil }, nil)
	enginetest.NoError(t, err)
	p := probe{stack: s, db: db, work: work}
	if s.insert != nil {
		p.commits(t)
		p.rollsBack(t)
		p.failsWithAStatement(t)
	}
	if s.nested != nil {
		p.nests(t)
	}
	p.joins(t)
}

// probe tests one application.
type probe struct {
	stack
	db   enginetest.Database
	work *hook.Hook[int]
}

// has ends the test if there are other numbers of notes and hooks.
func (p probe) has(t *testing.T, want int64) {
	t.Helper()
	notes, hooks := p.db.Int(t, "select count(*) from notes"), p.db.Rows(t, "perdure", "hook_items")
	if notes != want || hooks != want {
		t.Fatalf("there are %d notes and %d hooks, want %d", notes, hooks, want)
	}
}

// unit writes a note and triggers a hook.
func (p probe) unit(id int, result error) error {
	return p.eng.Update(context.Background(), func(tx *perdure.Tx) error {
		if err := p.insert(tx, id); err != nil {
			return err
		}
		if _, err := p.work.TriggerIn(tx, id, nil); err != nil {
			return err
		}
		return result
	})
}

func (p probe) commits(t *testing.T) {
	t.Helper()
	enginetest.NoError(t, p.unit(1, nil))
	enginetest.NoError(t, p.unit(2, nil)) // the libraries have cached what they cache
	p.has(t, 2)
}

func (p probe) rollsBack(t *testing.T) {
	t.Helper()
	enginetest.Is(t, p.unit(3, errMine), errMine)
	p.has(t, 2)
}

// failsWithAStatement drops the error of a statement.
func (p probe) failsWithAStatement(t *testing.T) {
	t.Helper()
	err := p.eng.Update(t.Context(), func(tx *perdure.Tx) error {
		if _, err := p.work.TriggerIn(tx, 3, nil); err != nil {
			return err
		}
		if p.insert(tx, 1) == nil {
			t.Error("a duplicate was written")
		}
		return nil
	})
	enginetest.As[*fault.Duplicate](t, err)
	p.has(t, 2)
}

// nests rolls back a nested transaction, with the hook that was triggered in it.
func (p probe) nests(t *testing.T) {
	t.Helper()
	err := p.eng.Update(t.Context(), func(tx *perdure.Tx) error {
		if err := p.insert(tx, 3); err != nil {
			return err
		}
		if _, err := p.work.TriggerIn(tx, 3, nil); err != nil {
			return err
		}
		if err := p.nested(tx, 4); !errors.Is(err, errMine) {
			t.Errorf("the nested transaction returned %v", err)
		}
		return nil
	})
	enginetest.NoError(t, err)
	p.has(t, 3)
}

func (p probe) joins(t *testing.T) {
	t.Helper()
	before := p.db.Int(t, "select count(*) from notes")
	trigger := func(result error) func(tx *perdure.Tx) error {
		return func(tx *perdure.Tx) error {
			if _, err := p.work.TriggerIn(tx, 9, nil); err != nil {
				return err
			}
			return result
		}
	}
	enginetest.NoError(t, p.joined(t.Context(), 11, trigger(nil)))
	p.has(t, before+1)
	enginetest.Is(t, p.joined(t.Context(), 12, trigger(errMine)), errMine)
	p.has(t, before+1)
	err := p.joined(t.Context(), 13, func(tx *perdure.Tx) error {
		_, err := tx.Exec("insert into notes values (13, 'twice')")
		return err
	})
	if failed := enginetest.As[*fault.Duplicate](t, err); p.db.Name == enginetest.Postgres && failed.Constraint != "notes_pkey" {
		t.Errorf("the constraint is %q", failed.Constraint)
	}
	p.has(t, before+1)
}

// inTx runs fn in a transaction of database/sql.
func inTx(ctx context.Context, db *sql.DB, fn func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}
