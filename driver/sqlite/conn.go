package sqlite

import (
	"context"
	"database/sql"
)

// maxStatements bounds the cache of prepared statements. The engine itself has far fewer
// statements, but a user's ad-hoc SQL must not grow the cache indefinitely.
const maxStatements = 512

// conn is a connection that caches its prepared statements, because SQLite needs more
// time to parse most statements than to run them.
type conn struct {
	*sql.Conn
	stmts map[string]*sql.Stmt
}

func newConn(c *sql.Conn) *conn { return &conn{Conn: c, stmts: map[string]*sql.Stmt{}} }

// ExecContext implements sqldb.StdConn with a cached prepared statement.
func (c *conn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	stmt, err := c.prepare(ctx, query) //nolint:sqlclosecheck // kept for the next time
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(ctx, args...)
}

// QueryContext implements sqldb.StdConn with a cached prepared statement.
func (c *conn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := c.prepare(ctx, query) //nolint:sqlclosecheck // kept for the next time
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

func (c *conn) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt, ok := c.stmts[query]; ok {
		return stmt, nil
	}
	if len(c.stmts) >= maxStatements {
		c.forget()
	}
	stmt, err := c.PrepareContext(ctx, query)
	if err == nil {
		c.stmts[query] = stmt
	}
	return stmt, err
}

func (c *conn) forget() {
	for query, stmt := range c.stmts {
		_ = stmt.Close()
		delete(c.stmts, query)
	}
}

func (c *conn) close() error {
	c.forget()
	return c.Close()
}

// discard closes the connection permanently: it may be inside a transaction or unusable.
func (c *conn) discard() {
	c.forget()
	_ = c.Raw(func(any) error { return errBadConn })
	_ = c.Close() // already discarded
}
