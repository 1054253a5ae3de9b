// Package host gives Perdure's own packages access to the internals of an engine and of a
// unit of work: its store, its clock, its committer, and statements in the unit. Package
// perdure provides them through this package, so that they are not part of its public
// API.
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

// Runtime has the internals of an engine.
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
	Trouble   *unit.Trouble  // of units of work
	Migrated  store.Migrated // set by Open; zero with NoMigrate
}

// Now returns the time for a statement. It returns nil if the server's clock decides. The
// clock of a test decides on every database.
func (r *Runtime) Now() store.Now {
	if r.DB.Dialect().ServerClock && clock.OfMachine(r.Clock) {
		return nil
	}
	now := r.Clock.Now().UTC().Truncate(time.Microsecond)
	return &now
}

// Unit has the internals of a *perdure.Tx.
type Unit interface {
	// Engine returns the *perdure.Engine that the unit belongs to. Runtime returns its
	// internals.
	Engine() any
	Runtime() *Runtime
	// Context returns the context of the unit.
	Context() context.Context
	// Attach records statements in the unit, and a function to call after the unit is
	// committed. The outbox does not contain the statements.
	Attach(committed func(), stmts ...sqldb.Stmt) error
	// Act adds an act of an operator or an API token to the unit. The transaction that
	// commits the unit writes the entries of the act to the audit log. An act can also be
	// passed in the context of Update.
	Act(a *audit.Act)
	// Flush applies the statements that were recorded so far, so that their results are
	// known before the unit is committed. The transaction is open from then on.
	Flush() error
	// Runner returns the open transaction of the unit, after applying the statements that
	// were recorded so far. It is for statements that depend on the results of earlier
	// ones.
	Runner() (sqldb.Runner, error)
	// Fail makes the unit fail with an error. It returns the first error that the unit
	// failed with.
	Fail(err error) error
}

// Engine and Tx have methods that only *perdure.Engine and *perdure.Tx have, so that no
// other types can be passed.
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

// Provide sets the functions behind Of and In. Package perdure calls it during
// initialization.
func Provide(engine func(engine Engine) *Runtime, tx func(tx Tx) Unit) {
	engineOf, unitOf = engine, tx
}

// Of returns the internals of a *perdure.Engine.
func Of(engine Engine) *Runtime { return engineOf(engine) }

// In returns the internals of a *perdure.Tx.
func In(tx Tx) Unit { return unitOf(tx) }
