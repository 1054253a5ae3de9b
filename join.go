package perdure

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/driver/postgres"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// JoinSQL runs fn as a unit of work inside a transaction that the caller began
// on the same database through database/sql and will commit or roll back.
//
// When JoinSQL returns nil, everything that fn recorded has been applied and
// its outbox entry is written. The entry's place in the order is then locked:
// commit soon, and take no other locks before. After an error the caller must
// roll back. Conflicts are not retried: only the caller can start over.
//
// Call Wake after the commit if dispatchers and readers of the outbox shall not
// wait for their next poll.
func (e *Engine) JoinSQL(ctx context.Context, tx *sql.Tx, fn func(*Tx) error) error {
	if tx == nil {
		return fault.Invalidf("transaction", "is nil")
	}
	return e.join(ctx, sqldb.StdRunner{Conn: tx, Dialect: e.db.Dialect()}, fn)
}

// JoinPgx is JoinSQL for a transaction of pgx, on PostgreSQL.
func (e *Engine) JoinPgx(ctx context.Context, tx pgx.Tx, fn func(*Tx) error) error {
	if e.db.Dialect().Name != sqldb.Postgres {
		return fault.Invalidf("transaction", "is of pgx, but the engine's database is %s", e.db.Dialect().Name)
	}
	if tx == nil {
		return fault.Invalidf("transaction", "is nil")
	}
	return e.join(ctx, postgres.Join(tx), fn)
}

// Wake tells the dispatchers and the readers of the outbox in this process that
// something was committed. Update does it by itself.
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
