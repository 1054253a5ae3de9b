package interleave

import (
	"context"
	"database/sql"
	"sync/atomic"
)

// Conn is a session's connection. Each call of Exec, Query and QueryRow is a
// step: it waits until the schedule has it run. What the session does after it,
// until the next one, belongs to the step.
type Conn struct {
	conn    *sql.Conn
	backend atomic.Int64 // what the database calls this connection

	arrived chan event    // the session says: at its next step, or ended
	proceed chan struct{} // the schedule says: run the step
}

// event says where a session has arrived.
type event struct {
	ended bool
	err   error // with ended: the session's error
}

// newConn returns a session's connection. The schedule must not wait for a
// session that has given up, so proceed has room for its word.
func newConn(conn *sql.Conn) *Conn {
	return &Conn{conn: conn, arrived: make(chan event), proceed: make(chan struct{}, 1)}
}

// Exec executes a statement as one step and returns how many rows it changed.
func (c *Conn) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if err := c.Turn(ctx); err != nil {
		return 0, err
	}
	result, err := c.conn.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Query runs a query as one step. The caller reads and closes the rows before
// the next step.
func (c *Conn) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := c.Turn(ctx); err != nil {
		return nil, err
	}
	return c.conn.QueryContext(ctx, query, args...)
}

// QueryRow runs a query for one row as one step.
func (c *Conn) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	_ = c.Turn(ctx) // its only error is the context's, which the query returns too
	return c.conn.QueryRowContext(ctx, query, args...)
}

// Turn ends the step before and waits for the turn of the next one. Exec, Query
// and QueryRow call it. A session that runs code with a connection of its own,
// the engine's say, calls Turn from a hook before each statement, and Watch
// once. Its error is the context's: the schedule has been given up.
func (c *Conn) Turn(ctx context.Context) error {
	select {
	case c.arrived <- event{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-c.proceed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Watch says that the session's statements run on another connection than this
// one: the one that PostgreSQL knows by this process id, or MariaDB by this
// connection id. The runner then asks the database about that one's waits.
func (c *Conn) Watch(id int64) { c.backend.Store(id) }

// SQL returns the connection itself, for statements that are no steps.
func (c *Conn) SQL() *sql.Conn { return c.conn }
