package interleave

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// Join runs fn in a transaction of database/sql on the session's connection, and commits
// it. With Engine.JoinSQL, fn runs a unit of work. Each statement and the COMMIT is a step.
func (d *DB) Join(ctx context.Context, fn func(*sql.Tx) error) error {
	return d.conn.conn.Raw(func(raw any) error {
		inner, ok := raw.(rawConn)
		if !ok {
			return fmt.Errorf("join transaction: driver connection is a %T", raw)
		}
		db := sql.OpenDB(&steppedConn{rawConn: inner, db: d})
		defer db.Close()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := fn(tx); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		if _, err := d.step(ctx, "commit"); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	})
}

// rawConn is a driver connection of database/sql, as pgx implements it.
type rawConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
}

// steppedConn is a connection whose statements are steps. It is also its own connector.
type steppedConn struct {
	rawConn
	db *DB
}

// Connect implements driver.Connector. There is only one connection.
func (c *steppedConn) Connect(context.Context) (driver.Conn, error) { return c, nil }

// Driver implements driver.Connector. No caller opens a connection by it.
func (c *steppedConn) Driver() driver.Driver { return nil }

// Close implements driver.Conn. The connection belongs to the schedule.
func (c *steppedConn) Close() error { return nil }

// ExecContext implements driver.ExecerContext.
func (c *steppedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	query, err := c.db.step(ctx, query)
	if err != nil {
		return nil, err
	}
	result, err := c.rawConn.ExecContext(ctx, query, args)
	if err != nil {
		c.db.stage.failed(c.db.Dialect().Translate(err))
	}
	return result, err
}

// QueryContext implements driver.QueryerContext.
func (c *steppedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	query, err := c.db.step(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := c.rawConn.QueryContext(ctx, query, args)
	if err != nil {
		c.db.stage.failed(c.db.Dialect().Translate(err))
	}
	return rows, err
}
