// Package apptx gives the application the transaction of a unit of work as a *sql.Tx.
//
// The *sql.Tx belongs to a *sql.DB of one connection, which wraps the connection of the
// driver. So Perdure sees each statement and its result, and the application cannot end
// the transaction: sql.Tx itself has no way to refuse Commit.
package apptx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"

	"github.com/perdure/perdure/internal/sqldb"
)

// Tx is a transaction that the application uses.
type Tx struct {
	// Tx is the transaction for the application.
	*sql.Tx
	db     *sql.DB
	closed *atomic.Bool
}

// Open returns a transaction on a connection on which a transaction has been started. The
// guard is called for each statement.
func Open(inner driver.Conn, guard sqldb.Guard) (*Tx, error) {
	t := &Tx{closed: new(atomic.Bool)}
	t.db = sql.OpenDB(&connector{inner: inner, guard: guard, closed: t.closed})
	t.db.SetMaxOpenConns(1)
	// The context of the unit is merged into each statement's. Here it would end the
	// transaction from another goroutine.
	tx, err := t.db.BeginTx(context.WithoutCancel(guard.Context()), nil)
	if err != nil {
		return nil, errors.Join(err, t.db.Close())
	}
	t.Tx = tx
	return t, nil
}

// Close waits for the statements that run, and closes rows and prepared statements that the
// application left open. Later calls of the application return sql.ErrTxDone. The
// transaction of the database continues.
func (t *Tx) Close() {
	t.closed.Store(true)
	_ = t.Rollback() // of the wrapper; an error means that the application has ended it before
	_ = t.db.Close()
}

// connector returns the connection once.
type connector struct {
	inner  driver.Conn
	guard  sqldb.Guard
	closed *atomic.Bool
	used   atomic.Bool
}

// Connect implements driver.Connector.
func (c *connector) Connect(context.Context) (driver.Conn, error) {
	if c.used.Swap(true) {
		return nil, sql.ErrTxDone
	}
	return &conn{inner: c.inner, guard: c.guard, closed: c.closed}, nil
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return nowhere{} }

// nowhere is a driver that opens nothing.
type nowhere struct{}

// Open implements driver.Driver.
func (nowhere) Open(string) (driver.Conn, error) { return nil, sql.ErrTxDone }
