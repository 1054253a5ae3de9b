package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/perdure/perdure/internal/sqldb"
)

// rawOf returns the connection of the driver.
func rawOf(conn *sql.Conn) (raw driver.Conn, err error) {
	err = conn.Raw(func(c any) error {
		raw = c.(driver.Conn)
		return nil
	})
	return raw, err
}

func stateOf(done bool) sqldb.State {
	if done {
		return sqldb.Ended
	}
	return sqldb.Open
}

// Driver implements sqldb.Native.
func (tx *writeTx) Driver(context.Context) (driver.Conn, error) {
	if tx.done {
		return nil, sqldb.ErrDone
	}
	return rawOf(tx.w.Conn)
}

// Enter implements sqldb.Native.
func (tx *writeTx) Enter(context.Context) error { return nil }

// State implements sqldb.Native. The client does not know it.
func (tx *writeTx) State() sqldb.State { return stateOf(tx.done) }

// Use implements sqldb.Native.
func (tx *writeTx) Use() (done func()) { return func() {} }

// Driver implements sqldb.Native.
func (tx *readTx) Driver(context.Context) (driver.Conn, error) {
	if tx.done {
		return nil, sqldb.ErrDone
	}
	return rawOf(tx.conn.Conn)
}

// Enter implements sqldb.Native.
func (tx *readTx) Enter(context.Context) error { return nil }

// State implements sqldb.Native. The client does not know it.
func (tx *readTx) State() sqldb.State { return stateOf(tx.done) }

// Use implements sqldb.Native.
func (tx *readTx) Use() (done func()) { return func() {} }
