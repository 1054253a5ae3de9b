package perdure

import (
	"time"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/internal/wake"
)

// Runtime is what Perdure's own packages (hook, fsm, task, actor) build on. Its
// parts are internal, so it is of no use to others.
type Runtime struct {
	DB        sqldb.DB
	Store     *store.Store
	Committer *unit.Committer
	Hub       *wake.Hub
	Clock     clock.Clock
	NewID     func() string
	Tracer    *tracing.Tracer
	Workers   *core.Workers
	Bounds    *core.Bounds
	Timeout   time.Duration
	Migrated  store.Migrated // by Open; nothing with NoMigrate
}

// Runtime returns what Perdure's own packages build on.
func (e *Engine) Runtime() *Runtime {
	return &Runtime{
		DB: e.db, Store: e.store, Committer: e.committer, Hub: e.hub,
		Clock: e.options.Clock, NewID: e.options.NewID, Tracer: e.tracer, Workers: &e.workers, Bounds: &e.bounds, Timeout: e.options.Timeout, Migrated: e.migrated,
	}
}

// Now returns the time for a statement: none where the server's clock decides.
// A clock of a test decides everywhere.
func (r *Runtime) Now() store.Now {
	if r.DB.Dialect().ServerClock && clock.OfMachine(r.Clock) {
		return nil
	}
	now := r.Clock.Now().UTC().Truncate(time.Microsecond)
	return &now
}

// Engine returns the engine that the Tx belongs to.
func (tx *Tx) Engine() *Engine { return tx.eng }

// Attach records statements of one of Perdure's own packages in the unit, and
// what to do after it was committed. The outbox does not show them.
func (tx *Tx) Attach(committed func(), stmts ...sqldb.Stmt) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if committed != nil {
		tx.committed = append(tx.committed, committed)
	}
	return tx.record(stmts)
}

// Act says that the unit does an act of an operator or a token. The transaction that
// commits the unit writes the entries of the act to the audit log. The context of
// Update can say the same.
func (tx *Tx) Act(a *audit.Act) { tx.unit.Acts = append(tx.unit.Acts, a) }

// act runs fn, and the statements that read what the act is about before and after it.
func (tx *Tx) act(a *audit.Act, fn func(*Tx) error) error {
	if a == nil {
		return fn(tx)
	}
	tx.Act(a)
	if a.ReadBefore != nil {
		if err := tx.Attach(nil, a.ReadBefore()...); err != nil {
			return err
		}
	}
	if err := fn(tx); err != nil || a.ReadAfter == nil {
		return err
	}
	return tx.Attach(nil, a.ReadAfter()...)
}

// Flush applies what was recorded so far, so that its results are known before
// the unit is committed. The transaction is open from then on.
func (tx *Tx) Flush() error {
	if err := tx.writable(); err != nil {
		return err
	}
	_, err := tx.open()
	return err
}

// Runner returns the open transaction of the unit, with what was recorded so far
// applied, for one of Perdure's own packages whose next statement depends on what
// the last one found.
func (tx *Tx) Runner() (sqldb.Runner, error) {
	if err := tx.writable(); err != nil {
		return nil, err
	}
	return tx.open()
}

// Fail poisons the Tx with an error of one of Perdure's own packages and
// returns the error that it is poisoned with.
func (tx *Tx) Fail(err error) error { return tx.fail(err) }
