package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// Dialect describes PostgreSQL, for those who bring their own transaction.
func Dialect() sqldb.Dialect { return dialect }

var dialect = sqldb.Dialect{
	Name:        sqldb.Postgres,
	Translate:   translate,
	Lanes:       4,
	ServerClock: true,
}

// translate gives PostgreSQL's errors their meaning.
func translate(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return connection(err)
	}
	switch e.Code {
	case "23505":
		return &fault.Duplicate{Constraint: e.ConstraintName, Err: err}
	case "23503":
		return &fault.Restricted{Constraint: e.ConstraintName, Err: err}
	case "40001", // serialization failure
		"40P01",                            // deadlock
		"55P03",                            // lock not available
		"53300",                            // too many connections
		"57P01", "57P02", "57P03", "25P03", // the server ends or starts, or ended an idle transaction
		"25006": // read-only: a failover is under way
		return &sqldb.Transient{Err: err}
	}
	return err
}

// connection marks a connection that broke: COMMIT was not sent on it (the
// caller knows when it was), so the transaction may run again on another.
func connection(err error) error {
	var network net.Error
	var connect *pgconn.ConnectError
	if errors.As(err, &network) || errors.As(err, &connect) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err) ||
		errors.Is(err, driver.ErrBadConn) { // of a *sql.Tx that was joined
		return &sqldb.Transient{Err: err}
	}
	return err
}
