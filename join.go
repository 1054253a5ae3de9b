package perdure

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/driver/postgres"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// SQLConn runs statements in a transaction of database/sql. *sql.Tx implements it, and so
// do *sqlx.Tx, bun.Tx, the ConnPool of a GORM transaction, and the transaction of an ent
// client with the feature sql/execquery. A *sql.Conn implements it too, if the caller has
// started a transaction on it.
type SQLConn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// JoinSQL runs fn as a unit of work inside the caller's transaction. The caller has
// started it on the same database through database/sql, and will commit it or roll it
// back.
//
// When JoinSQL returns nil, everything that fn recorded has been applied and its outbox
// entry is written. The entry's place in the order is then locked: the caller must commit
// soon, and must take no other locks before it commits. All writers of the outbox wait for
// it: if the caller sends nothing for 4 s, PostgreSQL ends its session. On MySQL and
// MariaDB, a waiting writer kills the session, if its user has the PROCESS privilege. After
// an error the caller must roll back. Conflicts are not retried: only the caller can restart its transaction.
//
// After the commit, dispatchers in all processes start the work within 100 ms. The engine
// asks the database for the end of the transaction. The readers of the outbox in this
// process are woken too.
func (e *Engine) JoinSQL(ctx context.Context, tx SQLConn, fn func(*Tx) error) error {
	if sqldb.IsNil(tx) {
		return fault.Invalidf("transaction", "must not be nil")
	}
	conn := sqldb.Unwrap(tx)
	if _, ok := conn.(*sql.DB); ok {
		return fault.Invalidf("transaction", "must be a transaction, got a *sql.DB")
	}
	return e.join(ctx, sqldb.StdRunner{Conn: conn, Dialect: e.db.Dialect()}, conn, fn)
}

// JoinPgx is JoinSQL for a pgx transaction on PostgreSQL.
func (e *Engine) JoinPgx(ctx context.Context, tx pgx.Tx, fn func(*Tx) error) error {
	if e.db.Dialect().Name != sqldb.Postgres {
		return fault.Invalidf("transaction", "must be of the engine's database %s, got one of pgx", e.db.Dialect().Name)
	}
	if sqldb.IsNil(tx) {
		return fault.Invalidf("transaction", "must not be nil")
	}
	return e.join(ctx, postgres.Join(tx), tx, fn)
}

// Wake makes the dispatchers in all processes, and the readers of the outbox in this
// process, look for work now. Update and the Join methods do this automatically. Call Wake
// after changing Perdure's tables without the engine.
func (e *Engine) Wake() {
	e.outbox.Wake()
	e.hub.Hint()
}

func (e *Engine) join(ctx context.Context, run sqldb.Runner, joined any, fn func(*Tx) error) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.running.Done()
	id, err := e.newUnitID()
	if err != nil {
		return err
	}
	cluster, clustered := e.db.(sqldb.Clustered)
	if clustered {
		run = cluster.Guard(run)
	}
	tx := e.newTx(ctx, id)
	tx.live, tx.joined = run, joined
	defer tx.end()
	if err := fn(tx); err != nil || tx.err != nil {
		return first(err, tx.err)
	}
	transaction := tx.mark()
	last, err := tx.finish()
	if err != nil {
		return err
	}
	if clustered && !tx.unit.Clean() {
		last = append(last, cluster.Fence()...)
	}
	if err := run.Run(ctx, last...); err != nil {
		return tx.fail(err)
	}
	if *transaction != "" {
		e.joins.Watch(*transaction, tx.announce)
	}
	return nil
}

// mark adds the statement that identifies the transaction to the unit. The result is set
// when the statement has run. It remains empty if there is nothing to announce.
func (tx *Tx) mark() *string {
	transaction := new(string)
	if tx.eng.joins == nil || tx.unit.Clean() {
		return transaction
	}
	tx.unit.Stmts = append(tx.unit.Stmts, tx.eng.joins.Mark(func(id string) { *transaction = id }))
	return transaction
}
