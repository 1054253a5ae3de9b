package perdure

import (
	"context"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
)

func init() {
	host.Provide(
		func(engine host.Engine) *host.Runtime { return engine.(*Engine).runtime() },
		func(tx host.Tx) host.Unit { return (*hostUnit)(tx.(*Tx)) },
	)
}

// runtime returns the parts of the engine that Perdure's own packages use.
func (e *Engine) runtime() *host.Runtime {
	return &host.Runtime{
		DB: e.db, Store: e.store, Committer: e.committer, Hub: e.hub,
		Clock: e.options.Clock, NewID: e.options.NewID, Tracer: e.tracer, Workers: &e.workers, Bounds: &e.bounds, Timeout: e.options.Timeout, Trouble: &e.trouble,
		Migrated: e.migrated,
	}
}

// hostUnit is a Tx as Perdure's own packages use it.
type hostUnit Tx

// Engine implements host.Unit.
func (u *hostUnit) Engine() any { return u.eng }

// Runtime implements host.Unit.
func (u *hostUnit) Runtime() *host.Runtime { return u.eng.runtime() }

// Context implements host.Unit.
func (u *hostUnit) Context() context.Context { return u.ctx }

// Attach implements host.Unit.
func (u *hostUnit) Attach(committed func(), stmts ...sqldb.Stmt) error {
	return (*Tx)(u).attach(committed, stmts...)
}

// Act implements host.Unit.
func (u *hostUnit) Act(a *audit.Act) { u.unit.Acts = append(u.unit.Acts, a) }

// Flush implements host.Unit.
func (u *hostUnit) Flush() error {
	_, err := u.Runner()
	return err
}

// Runner implements host.Unit.
func (u *hostUnit) Runner() (sqldb.Runner, error) {
	tx := (*Tx)(u)
	if err := tx.writable(); err != nil {
		return nil, err
	}
	return tx.open()
}

// Fail implements host.Unit.
func (u *hostUnit) Fail(err error) error { return (*Tx)(u).fail(err) }

func (tx *Tx) attach(committed func(), stmts ...sqldb.Stmt) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if committed != nil {
		tx.committed = append(tx.committed, committed)
	}
	return tx.record(stmts)
}

// act runs fn. If a is not nil, act also records a, and runs its statements that read the
// affected data before and after fn.
func (tx *Tx) act(a *audit.Act, fn func(*Tx) error) error {
	if a == nil {
		return fn(tx)
	}
	(*hostUnit)(tx).Act(a)
	if a.ReadBefore != nil {
		if err := tx.attach(nil, a.ReadBefore()...); err != nil {
			return err
		}
	}
	if err := fn(tx); err != nil || a.ReadAfter == nil {
		return err
	}
	return tx.attach(nil, a.ReadAfter()...)
}
