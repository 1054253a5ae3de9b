package apptx

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync/atomic"

	"github.com/perdure/perdure/internal/sqldb"
)

// conn passes statements to the connection of the driver. The connection belongs to the
// unit of work: it is not closed or reset here.
type conn struct {
	inner  driver.Conn
	guard  sqldb.Guard
	closed *atomic.Bool // the unit has closed the transaction
}

// run runs a statement between the calls of the guard. stop must be called when ctx is no
// longer needed.
func (c *conn) run(ctx context.Context, query string, fn func(ctx context.Context) error) (stop context.CancelFunc, err error) {
	if err := c.guard.Before(query); err != nil {
		return func() {}, err
	}
	ctx, stop = sqldb.Using(ctx, c.guard)
	err = fn(ctx)
	if !errors.Is(err, driver.ErrSkip) {
		c.guard.After(query, err)
	}
	return stop, alive(err)
}

// alive returns err in a form that database/sql does not repeat: a statement of a
// transaction must not run on another connection.
func alive(err error) error {
	if errors.Is(err, driver.ErrBadConn) {
		return &lostError{err}
	}
	return err
}

// lostError is driver.ErrBadConn without its identity.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	inner, ok := c.inner.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	stop, err := c.run(ctx, query, func(ctx context.Context) (err error) {
		result, err = inner.ExecContext(ctx, query, args)
		return err
	})
	stop()
	return result, err
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	inner, ok := c.inner.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	var result driver.Rows
	stop, err := c.run(ctx, query, func(ctx context.Context) (err error) {
		result, err = inner.QueryContext(ctx, query, args)
		return err
	})
	if err != nil {
		stop()
		return nil, err
	}
	return &rows{Rows: result, query: query, guard: c.guard, stop: stop}, nil
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	var prepared driver.Stmt
	stop, err := c.run(ctx, "", func(ctx context.Context) (err error) {
		if inner, ok := c.inner.(driver.ConnPrepareContext); ok {
			prepared, err = inner.PrepareContext(ctx, query)
			return err
		}
		prepared, err = c.inner.Prepare(query)
		return err
	})
	stop()
	if err != nil {
		return nil, err
	}
	return &stmt{inner: prepared, conn: c, query: query}, nil
}

// Prepare implements driver.Conn.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// Begin implements driver.Conn.
func (c *conn) Begin() (driver.Tx, error) { return wrapped{c}, nil }

// BeginTx implements driver.ConnBeginTx. The transaction has been started before.
func (c *conn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return wrapped{c}, nil }

// CheckNamedValue implements driver.NamedValueChecker.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if inner, ok := c.inner.(driver.NamedValueChecker); ok {
		return inner.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// Close implements driver.Conn.
func (c *conn) Close() error { return nil }

// wrapped is the transaction of the unit.
type wrapped struct{ conn *conn }

// Commit implements driver.Tx.
func (t wrapped) Commit() error { return t.conn.guard.Refuse() }

// Rollback implements driver.Tx.
func (t wrapped) Rollback() error {
	if t.conn.closed.Load() {
		return nil
	}
	return t.conn.guard.Refuse()
}
