package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
)

// broken makes connections that the server has ended: they cannot be closed in order.
type broken struct{ driver.Conn }

func (b broken) Connect(context.Context) (driver.Conn, error) { return b, nil }
func (broken) Driver() driver.Driver                          { return nil }
func (broken) Close() error                                   { return errors.New("bad connection") }

// What was committed is committed: connections that the server has ended are no failure
// of Close.
func TestConnectionsThatAreGoneAreClosed(t *testing.T) {
	t.Parallel()
	db := &DB{read: sql.OpenDB(broken{}), write: sql.OpenDB(broken{}), group: sql.OpenDB(broken{}), urgent: sql.OpenDB(broken{})}
	for _, pool := range []*sql.DB{db.read, db.write, db.group, db.urgent} {
		conn, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil { // it is in the pool now
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := db.read.PingContext(t.Context()); err == nil {
		t.Error("the pool is open")
	}
}
