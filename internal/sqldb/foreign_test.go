package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perdure/perdure/internal/sqldb"
)

// pqError has the form of lib/pq's *Error.
type pqError struct{ Code, Constraint string }

func (e *pqError) Error() string    { return "pq: refused" }
func (e *pqError) SQLState() string { return e.Code }

// cgoError has the form of mattn/go-sqlite3's Error.
type cgoError struct{ Code, ExtendedCode int }

func (e cgoError) Error() string { return "UNIQUE constraint failed: users.name" }

func TestErrorsOfAllDriversAreRecognized(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		&pqError{"23505", "users_key"},
		&pgconn.PgError{Code: "23505", ConstraintName: "users_key"},
		fmt.Errorf("insert: %w", &pqError{"23505", "users_key"}),
	} {
		got, ok := sqldb.Server(err)
		if !ok || got.State != "23505" || got.Constraint != "users_key" {
			t.Errorf("%T: got %+v, %v", err, got, ok)
		}
	}
	if got, ok := sqldb.Server(errors.New("plain")); ok {
		t.Errorf("a plain error is %+v", got)
	}
	code, _, ok := sqldb.FileCode(fmt.Errorf("insert: %w", cgoError{19, 2067}))
	if !ok || code != 2067 {
		t.Errorf("the code is %d, %v", code, ok)
	}
	if code, _, ok := sqldb.FileCode(errors.New("plain")); ok {
		t.Errorf("a plain error has the code %d", code)
	}
	if !sqldb.IsUnavailable(cgoError{13, 13}) || sqldb.IsUnavailable(cgoError{19, 2067}) {
		t.Error("a full disk and a duplicate are not told apart")
	}
}

// wrapped has the form of bun.Tx and sqlx.Tx.
type wrapped struct {
	*sql.Tx
	name string
}

// prepared has the form of GORM's PreparedStmtTX.
type prepared struct{ Tx interface{ sqldb.StdConn } }

func (prepared) ExecContext(context.Context, string, ...any) (sql.Result, error) { return nil, nil }

func (prepared) QueryContext(context.Context, string, ...any) (*sql.Rows, error) { return nil, nil }

// plain has no transaction inside.
type plain struct{ prepared }

func TestTheTransactionInsideALibrarysTransactionIsFound(t *testing.T) {
	t.Parallel()
	tx := &sql.Tx{}
	for _, conn := range []sqldb.StdConn{tx, wrapped{tx, "bun"}, &wrapped{tx, "sqlx"}, &prepared{tx}, prepared{&wrapped{tx, "both"}}} {
		if got := sqldb.Unwrap(conn); got != sqldb.StdConn(tx) {
			t.Errorf("%T: got %T", conn, got)
		}
	}
	for _, conn := range []sqldb.StdConn{&sql.Conn{}, &plain{}, &prepared{}} {
		if got := sqldb.Unwrap(conn); got != conn {
			t.Errorf("%T: got %T", conn, got)
		}
	}
}
