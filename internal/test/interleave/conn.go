package interleave

import (
	"context"
	"database/sql"
	"sync/atomic"
)

// Conn is a session's connection. Each call of Exec, Query and QueryRow is a step: it waits
// until the schedule runs it. The session's actions after a step, until the next one,
// belong to the step.
type Conn struct {
	conn    *sql.Conn
	backend atomic.Int64 // the database's id of this connection

	did   footprint // what the running step has done so far; owned by the session
	wrote bool      // whether the open transaction has written; owned by the session

	arrived chan event    // from the session: it is at its next step, or has ended
	proceed chan struct{} // from the schedule: run the step
}

// event is the place at which a session has arrived.
type event struct {
	did   footprint // what the previous step did
	next  footprint // what the next step does, as far as it is known
	ended bool
	err   error // if ended: the session's error
}

// newConn returns a session's connection. proceed is buffered, so that the schedule does
// not wait for a session that was cancelled.
func newConn(conn *sql.Conn) *Conn {
	return &Conn{conn: conn, arrived: make(chan event), proceed: make(chan struct{}, 1)}
}

// Exec executes a statement as one step and returns the number of changed rows.
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

// Turn ends the previous step and waits for the turn of the next one. Exec, Query and
// QueryRow call it. A session that runs code with its own connection, for example the
// engine's, calls Turn from a hook before each statement, and Watch once. Its error is the
// context's: the schedule has been cancelled.
func (c *Conn) Turn(ctx context.Context) error { return c.turn(ctx, anything) }

// TurnFor is Turn for a statement inside a transaction. The text of the statement is used
// to leave out orders that make no difference. Also must announce all further statements of
// the step. Sessions that share variables use Turn.
func (c *Conn) TurnFor(ctx context.Context, text string) error {
	return c.turn(ctx, c.inTransaction(text))
}

// Also announces that another statement belongs to the running step.
func (c *Conn) Also(text string) { c.did = c.did.and(c.inTransaction(text)) }

// inTransaction returns the footprint of a statement of the open transaction, if there is one.
func (c *Conn) inTransaction(text string) footprint {
	f := footprintOf(text)
	first := !c.wrote
	c.wrote = f.effect == isWrite || c.wrote && f.effect == isRead
	if first {
		return f.first()
	}
	return f
}

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

// Watch declares that the session's statements run on another connection than this one. id
// is PostgreSQL's process id, or MariaDB's connection id, of that connection. The runner
// then queries the database for the waits of that connection.
func (c *Conn) Watch(id int64) { c.backend.Store(id) }

// SQL returns the connection itself, for statements that are not steps.
func (c *Conn) SQL() *sql.Conn { return c.conn }
