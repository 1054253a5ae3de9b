// Package sqldb is the interface of Perdure to a database: transactions that run
// statements, and a dialect that describes the differences.
//
// It allows the same Go code for all databases. PostgreSQL is accessed through native pgx,
// which sends a list of statements in one round trip. SQLite and MySQL are accessed through
// database/sql.
package sqldb

import (
	"context"
	"time"
)

// Access is the purpose of a transaction.
type Access int

const (
	// Write starts a READ COMMITTED transaction on the primary. On SQLite it takes the
	// write lock immediately.
	Write Access = iota
	// Read starts a read-only transaction in which every statement sees the same snapshot.
	Read
	// Urgent starts a Write on one of a few connections that are reserved for the engine's
	// own short statements: a heartbeat must not wait for a connection behind the work
	// whose lease it renews. SQLite has only one writer.
	Urgent
	// Group starts a Write for Perdure's own statements, without code of the application
	// between them. Its connections are reserved: transactions that wait for locks cannot
	// use them up. The server ends the transaction if the process stops for ClientSilence.
	Group
	// Claim starts an Urgent whose commit does not wait for the disk. Losing the commit
	// must be equivalent to never having made it: no other party may learn of it, except
	// through a later Write, whose commit also makes the Claim durable.
	Claim
	// Look starts a Read of a few rows that are found by indexes. On PostgreSQL the planner must
	// use the indexes: its statistics do not know of dead rows.
	Look
)

// Scan copies the columns of the current row into dest.
type Scan func(dest ...any) error

// Stmt is one statement together with the checks of its result, so that a list of
// statements can be sent in one round trip and checked afterwards.
//
// A Stmt may run more than once: a group of units that failed runs again without the
// failing unit. Row and Done must therefore overwrite what they recorded before, not add to
// it.
type Stmt struct {
	// SQL uses the dialect's placeholders.
	SQL string
	// Args are the values of the placeholders.
	Args []any
	// Row is called for each row of the result, in order. Without it the
	// statement is executed for its effect only.
	Row func(Scan) error
	// Done is called with the number of rows that were returned (with Row) or
	// affected (without). Its error fails the transaction.
	Done func(rows int64) error
	// Fail translates an error of the database for this statement. Nil returns it
	// unchanged.
	Fail func(error) error
	// Exact is set for statements of a user and for statements that read a user's tables.
	// They run as they would on the user's own connection. For all other statements
	// PostgreSQL's planner is restricted to indexes. Their results are bounded too: a
	// time outside MinTime and MaxTime, such as PostgreSQL's infinity, is read as the
	// nearer of the two. One such row then does not hide the rest.
	Exact bool
	// Locks names the row for which the statement may have to wait: statements with the
	// same name wait for the same row. Empty: not known.
	Locks string

	// limit is the bound of LimitLocks.
	limit time.Duration
}

// DB is an open database.
type DB interface {
	// Begin starts a transaction. It waits for a connection, at most until
	// ctx is done.
	Begin(ctx context.Context, access Access) (Tx, error)
	// Exclusively runs fn while no other process runs one. It waits for its turn at most
	// until ctx is done. On PostgreSQL and SQLite all of fn is one transaction. MySQL
	// commits with every DDL statement, so fn must be able to run again after an
	// interruption.
	Exclusively(ctx context.Context, fn func(Runner) error) error
	// Dialect describes the database.
	Dialect() Dialect
	// Close does not wait: the caller must have ended its transactions.
	Close() error
}

// Runner runs statements in a transaction that its owner commits or rolls back.
type Runner interface {
	// Run executes the statements in order, in one round trip if the driver supports it. It
	// stops at the first error and returns it as a *StmtError. After an error only Rollback
	// may follow.
	Run(ctx context.Context, stmts ...Stmt) error
	// Query runs one statement and streams its rows. The rows must be closed
	// before the next call.
	Query(ctx context.Context, sql string, args ...any) (Rows, error)
}

// Tx is a transaction that the caller commits or rolls back. It is used by one goroutine at
// a time.
type Tx interface {
	Runner
	// Commit runs the last statements and COMMIT, in one round trip if the driver supports
	// it. An error after COMMIT was sent is an *Uncertain, unless the database itself
	// rejected the COMMIT.
	Commit(ctx context.Context, last ...Stmt) error
	// Rollback rolls the transaction back. It may follow any error and may be called twice.
	// A connection that does not respond is closed.
	Rollback()
}

// Rows streams the result of a query.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// Exec returns a statement that is run for its effect.
func Exec(sql string, args ...any) Stmt { return Stmt{SQL: sql, Args: args} }

// Each calls row for every row that query returns, in its own snapshot.
func Each(ctx context.Context, db DB, row func(Scan) error, query string, args ...any) error {
	tx, err := db.Begin(ctx, Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return tx.Run(ctx, Stmt{SQL: query, Args: args, Row: row})
}
