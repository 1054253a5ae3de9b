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

// Dialect returns the dialect of PostgreSQL, for callers with their own transaction.
func Dialect() sqldb.Dialect { return dialect }

var dialect = sqldb.Dialect{
	Name:        sqldb.Postgres,
	Translate:   translate,
	Lanes:       4,
	ServerClock: true,
}

// translate converts PostgreSQL's errors to errors of packages fault and sqldb.
func translate(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e, ok := sqldb.Server(err)
	if !ok {
		return connection(err)
	}
	switch e.State {
	case "23505":
		return &fault.Duplicate{Constraint: e.Constraint, Err: err}
	case "23503":
		return &fault.Restricted{Constraint: e.Constraint, Err: err}
	case "55P03": // lock not available
		return &sqldb.Transient{Err: &sqldb.LockTimeout{Err: err}}
	case "40001", // serialization failure
		"40P01",                            // deadlock
		"53300",                            // too many connections
		"57P01", "57P02", "57P03", "25P03", // the server is stopping or starting, or has ended an idle transaction
		"25006": // read-only: a failover is in progress
		return &sqldb.Transient{Err: err}
	}
	return err
}

// connection marks the error of a broken connection as transient. COMMIT was not sent on
// the connection (the caller handles that case), so the transaction can be retried on
// another one.
func connection(err error) error {
	var network net.Error
	var connect *pgconn.ConnectError
	if errors.As(err, &network) || errors.As(err, &connect) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err) ||
		errors.Is(err, driver.ErrBadConn) { // error of a joined *sql.Tx
		return &sqldb.Transient{Err: err}
	}
	return err
}
