package perdure

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/driver/postgres"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/apptx"
	"github.com/perdure/perdure/internal/sqldb"
)

// Pgx returns the transaction of the unit as a pgx.Tx, for pgx, sqlc and other libraries on
// PostgreSQL:
//
//	err := eng.Update(ctx, func(tx *perdure.Tx) error {
//		own, err := tx.Pgx()
//		if err != nil {
//			return err
//		}
//		if err := queries.WithTx(own).CreateUser(ctx, "ada"); err != nil {
//			return err
//		}
//		_, err = welcome.TriggerIn(tx, "ada", nil)
//		return err
//	})
//
// Changes that were recorded before are applied first. Changes that are recorded later are
// applied before the next statement. Statements of the application are not part of the
// outbox entry.
//
// The engine commits: Commit and Rollback return fault.ErrEngineCommits and fail the unit,
// as do statements with that effect. Begin makes a savepoint. Rolling back to it also
// removes the changes that were recorded since then.
//
// A statement that the database refuses fails the unit, as with Exec, unless the
// application rolls back to a savepoint before it. After a deadlock, a serialization
// failure, a lock timeout or a lost connection, Update runs its function again. Errors are
// those of pgx. Statements end with the context of the unit at the latest.
//
// When the function returns, rows that are still open are closed, and later calls return
// pgx.ErrTxClosed. In View, the transaction is the read-only snapshot. In a function of
// JoinPgx it is the caller's transaction itself.
//
// Pgx returns a *fault.Invalid if the connection of the engine is not one of pgx.
func (tx *Tx) Pgx() (pgx.Tx, error) {
	if joined, ok := tx.joined.(pgx.Tx); ok {
		_, err := (*hostUnit)(tx).Runner()
		return joined, err
	}
	own, err := tx.native()
	if err != nil {
		return nil, err
	}
	if tx.app.pgx == nil {
		native, ok := own.(interface {
			Pgx(ctx context.Context, guard sqldb.Guard) (*postgres.AppTx, error)
		})
		if !ok {
			return nil, tx.fail(fault.Invalidf("database", "must be PostgreSQL through pgx, got %s: use Tx.SQL", tx.eng.db.Dialect().Name))
		}
		if tx.app.pgx, err = native.Pgx(tx.ctx, tx.app); err != nil {
			return nil, tx.fail(err)
		}
	}
	return tx.app.pgx, nil
}

// SQL returns the transaction of the unit as a *sql.Tx, on every database. It is for
// database/sql and the libraries that use it: sqlc, GORM, bun, ent and sqlx. The rules are
// those of Pgx. After the function has returned, calls return sql.ErrTxDone.
//
// Statements that were prepared on another *sql.DB cannot be used in the transaction. On
// MySQL and MariaDB, DDL statements commit implicitly and must not be used.
//
// In a function of JoinSQL, SQL returns the caller's transaction itself. If that is not a
// *sql.Tx, the error is a *fault.Invalid.
func (tx *Tx) SQL() (*sql.Tx, error) {
	if joined, ok := tx.joined.(*sql.Tx); ok {
		_, err := (*hostUnit)(tx).Runner()
		return joined, err
	}
	own, err := tx.native()
	if err != nil {
		return nil, err
	}
	if tx.app.sql == nil {
		conn, err := own.Driver(tx.ctx)
		if err != nil {
			return nil, tx.fail(err)
		}
		if tx.app.sql, err = apptx.Open(conn, tx.app); err != nil {
			return nil, tx.fail(err)
		}
	}
	return tx.app.sql.Tx, nil
}

// native returns the open transaction of the unit, or the snapshot of a View.
func (tx *Tx) native() (sqldb.Native, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	if tx.joined != nil {
		return nil, tx.fail(fault.Invalidf("transaction", "is a %T, which was joined: use that", tx.joined))
	}
	if _, err := tx.queryRunner(); err != nil {
		return nil, err
	}
	own := tx.own
	if tx.readOnly {
		own = tx.snapshot
	}
	native, ok := own.(sqldb.Native)
	if !ok {
		return nil, tx.fail(fault.Invalidf("database", "does not support transactions of the application"))
	}
	if tx.app == nil {
		tx.app = &application{tx: tx, native: native}
	}
	return native, nil
}

// application is the use of the transaction of a unit by the application. It implements
// sqldb.Guard.
type application struct {
	tx     *Tx
	native sqldb.Native
	sql    *apptx.Tx
	pgx    *postgres.AppTx

	failed error // the first error since the last savepoint that was rolled back
	depth  int   // the number of savepoints at that time
	broken bool  // the transaction has ended with the error
}

// Context implements sqldb.Guard.
func (a *application) Context() context.Context { return a.tx.ctx }

// Before implements sqldb.Guard. It applies the changes that were recorded since the last
// statement.
func (a *application) Before(query string) error {
	tx := a.tx
	if err := tx.usable(); err != nil {
		return err
	}
	if err := tx.closeRows(); err != nil { // rows of Tx.Query, which block the connection
		return err
	}
	kind, name := sqldb.ControlOf(query)
	if err := tx.allow(kind, name); err != nil {
		return err
	}
	if a.failed != nil && (kind != sqldb.RollbackTo || a.broken) {
		return a.failed
	}
	if kind != sqldb.RollbackTo && !tx.readOnly && tx.flushed < len(tx.unit.Stmts) {
		if _, err := tx.open(); err != nil {
			return err
		}
	}
	if err := a.native.Enter(tx.ctx); err != nil {
		return tx.fail(err)
	}
	return nil
}

// After implements sqldb.Guard.
func (a *application) After(query string, err error) {
	tx := a.tx
	if err == nil {
		tx.hasSeen = true
		tx.divided(sqldb.ControlOf(query))
		return
	}
	state := a.native.State()
	translated := tx.eng.db.Dialect().Translate(err)
	if a.failed != nil || a.harmless(err) {
		return
	}
	a.failed, a.depth = translated, len(tx.savepoints)
	a.broken = state == sqldb.Ended || !tx.eng.db.Dialect().AbortsTransactions() && sqldb.IsBroken(translated)
}

// harmless reports whether an error did not come from the database, and the transaction
// continues: the driver refused a value, for example.
func (a *application) harmless(err error) bool {
	if !a.tx.eng.db.Dialect().AbortsTransactions() {
		return false
	}
	_, server := sqldb.Server(err)
	return !server && a.native.State() == sqldb.Open
}

// Use implements sqldb.Guard.
func (a *application) Use() (done func()) { return a.native.Use() }

// Refuse implements sqldb.Guard.
func (a *application) Refuse() error { return a.tx.fail(fault.ErrEngineCommits) }

// checkState fails the Tx if the application has left the transaction in a state in which it
// must not be committed.
func (tx *Tx) checkState() error {
	if tx.app == nil || tx.err != nil {
		return tx.err
	}
	switch state := tx.app.native.State(); {
	case tx.app.failed != nil:
		return tx.fail(tx.app.failed)
	case state == sqldb.Aborted:
		return tx.fail(errors.New("the transaction is aborted"))
	case state == sqldb.Ended:
		return tx.fail(fmt.Errorf("transaction has ended: %w", fault.ErrEngineCommits))
	}
	return nil
}

// closeApplication ends the use of the transaction by the application. It waits for a
// statement that still runs in another goroutine.
func (tx *Tx) closeApplication() {
	if tx.app == nil {
		return
	}
	if tx.app.sql != nil {
		tx.app.sql.Close()
	}
	if tx.app.pgx != nil {
		tx.app.pgx.Close()
	}
}
