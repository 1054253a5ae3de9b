package postgres

import (
	"context"
	"database/sql/driver"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// Driver implements sqldb.Native.
func (t *tx) Driver(ctx context.Context) (driver.Conn, error) {
	if t.done {
		return nil, sqldb.ErrDone
	}
	if t.conn.std == nil {
		return nil, fault.Invalidf("transaction", "must be one of the application")
	}
	defer t.alive.Use()()
	return t.conn.std, t.runner.Run(ctx, t.before(true)...)
}

// Use implements sqldb.Native.
func (t *tx) Use() (done func()) { return t.alive.Use() }

// Enter implements sqldb.Native. The planner has its own settings since Driver or Pgx.
func (t *tx) Enter(context.Context) error { return nil }

// State implements sqldb.Native.
func (t *tx) State() sqldb.State {
	defer t.alive.Use()()
	switch {
	case t.done || t.conn.IsClosed():
		return sqldb.Ended
	case t.begin != nil:
		return sqldb.Open
	}
	switch t.conn.PgConn().TxStatus() {
	case 'T':
		return sqldb.Open
	case 'E':
		return sqldb.Aborted
	}
	return sqldb.Ended
}

// Pgx returns the transaction for the application. The guard is called for each
// statement.
func (t *tx) Pgx(ctx context.Context, guard sqldb.Guard) (*AppTx, error) {
	if t.done {
		return nil, sqldb.ErrDone
	}
	defer t.alive.Use()()
	// pgx makes a pgx.Tx, which is needed for large objects, only together with a statement.
	query := "select 1"
	if before := t.before(true); len(before) > 0 {
		query = textOf(before)
	}
	inner, err := t.conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: query, CommitQuery: "select 1"})
	if err != nil {
		return nil, translate(err)
	}
	app := &application{conn: t.conn.Conn, inner: inner, guard: guard}
	return &AppTx{Tx: inner, app: app}, nil
}

// textOf returns statements without values as one text.
func textOf(stmts []sqldb.Stmt) string {
	texts := make([]string, len(stmts))
	for i, s := range stmts {
		texts[i] = s.SQL
		if wait, ok := s.LockLimit(); ok {
			texts[i] = "set local lock_timeout = " + strconv.FormatInt(wait.Milliseconds(), 10)
		}
	}
	return strings.Join(texts, "; ")
}
