package perdure

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/driver/postgres"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// JoinSQL runs fn as a unit of work inside the caller's transaction. The caller has
// started it on the same database through database/sql, and will commit it or roll it
// back.
//
// When JoinSQL returns nil, everything that fn recorded has been applied and its outbox
// entry is written. The entry's place in the order is then locked: the caller must commit
// soon, and must take no other locks before it commits. After an error the caller must
// roll back. Conflicts are not retried: only the caller can restart its transaction.
//
// Call Wake after the commit to wake dispatchers and readers of the outbox. Otherwise
// they wait for their next poll.
func (e *Engine) JoinSQL(ctx context.Context, tx *sql.Tx, fn func(*Tx) error) error {
	if tx == nil {
		return fault.Invalidf("transaction", "is nil")
	}
	return e.join(ctx, sqldb.StdRunner{Conn: tx, Dialect: e.db.Dialect()}, fn)
}

// JoinPgx is JoinSQL for a pgx transaction on PostgreSQL.
func (e *Engine) JoinPgx(ctx context.Context, tx pgx.Tx, fn func(*Tx) error) error {
	if e.db.Dialect().Name != sqldb.Postgres {
		return fault.Invalidf("transaction", "is of pgx, but the engine's database is %s", e.db.Dialect().Name)
	}
	if tx == nil {
		return fault.Invalidf("transaction", "is nil")
	}
	return e.join(ctx, postgres.Join(tx), fn)
}

// Wake wakes the dispatchers and the readers of the outbox in this process after a
// commit. Update does this automatically.
func (e *Engine) Wake() {
	e.outbox.Wake()
	e.hub.PublishAll()
}

func (e *Engine) join(ctx context.Context, run sqldb.Runner, fn func(*Tx) error) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.running.Done()
	id, err := e.newUnitID()
	if err != nil {
		return err
	}
	tx := e.newTx(ctx, id)
	tx.live = run
	defer tx.end()
	if err := fn(tx); err != nil || tx.err != nil {
		return first(err, tx.err)
	}
	last, err := tx.finish()
	if err != nil {
		return err
	}
	if err := run.Run(ctx, last...); err != nil {
		return tx.fail(err)
	}
	return nil
}
