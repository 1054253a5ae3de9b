// Package host gives Perdure's own packages what they need of an engine and of a unit of
// work: its store, its clock, its committer, and statements in the unit. It keeps that out of
// the public API of package perdure, which provides it.
package host

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/internal/wake"
	"github.com/perdure/perdure/schema"
)

// Runtime is the inside of an engine.
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

// Now returns the time for a statement: none where the server's clock decides. A clock of
// a test decides everywhere.
func (r *Runtime) Now() store.Now {
	if r.DB.Dialect().ServerClock && clock.OfMachine(r.Clock) {
		return nil
	}
	now := r.Clock.Now().UTC().Truncate(time.Microsecond)
	return &now
}

// Unit is the inside of a *perdure.Tx.
type Unit interface {
	// Engine returns the *perdure.Engine that the unit belongs to, Runtime its inside.
	Engine() any
	Runtime() *Runtime
	// Context returns the context that the unit runs with.
	Context() context.Context
	// Attach records statements in the unit, and what to do after it was committed. The
	// outbox does not show them.
	Attach(committed func(), stmts ...sqldb.Stmt) error
	// Act says that the unit does an act of an operator or a token. The transaction that
	// commits the unit writes the entries of the act to the audit log. The context of
	// Update can say the same.
	Act(a *audit.Act)
	// Flush applies what was recorded so far, so that its results are known before the
	// unit is committed. The transaction is open from then on.
	Flush() error
	// Runner returns the open transaction of the unit, with what was recorded so far
	// applied, for a statement that depends on what the last one found.
	Runner() (sqldb.Runner, error)
	// Fail makes the unit fail with an error, and returns the error that it fails with.
	Fail(err error) error
}

// Engine and Tx have methods that only *perdure.Engine and *perdure.Tx have, so that nothing
// else can be passed.
type (
	Engine interface {
		Schemas() []*schema.Schema
		Wake()
	}
	Tx interface {
		ID() string
		Now() time.Time
		DeleteRow(row *schema.Row) error
	}
)

var (
	engineOf func(engine Engine) *Runtime
	unitOf   func(tx Tx) Unit
)

// Provide sets the functions behind Of and In. Package perdure calls it when it is
// initialised.
func Provide(engine func(engine Engine) *Runtime, tx func(tx Tx) Unit) {
	engineOf, unitOf = engine, tx
}

// Of returns the inside of a *perdure.Engine.
func Of(engine Engine) *Runtime { return engineOf(engine) }

// In returns the inside of a *perdure.Tx.
func In(tx Tx) Unit { return unitOf(tx) }
