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

	did footprint // what the step that runs did until now; the session's

	arrived chan event    // the session says: at its next step, or ended
	proceed chan struct{} // the schedule says: run the step
}

// event says where a session has arrived.
type event struct {
	did   footprint // what the step before did
	next  footprint // what the next step does, as far as is known
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
func (c *Conn) Turn(ctx context.Context) error { return c.turn(ctx, anything) }

// TurnFor is Turn for a statement inside a transaction, by whose text orders that make no
// difference are left out. All that follows in the step must be told by Also. Sessions
// that share variables use Turn.
func (c *Conn) TurnFor(ctx context.Context, text string) error { return c.turn(ctx, footprintOf(text)) }

// Also says that another statement belongs to the step that runs.
func (c *Conn) Also(text string) { c.did = max(c.did, footprintOf(text)) }

func (c *Conn) turn(ctx context.Context, next footprint) error {
	if complete() {
		next = anything
	}
	select {
	case c.arrived <- event{did: c.did, next: next}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-c.proceed:
		c.did = next
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
