// Package sqldb is what the rest of Perdure knows of a database: transactions
// that run statements, and a dialect that names the differences.
//
// It exists so that there is one Go code for all databases. PostgreSQL is
// reached through native pgx (a list of statements is one round trip there),
// SQLite and MySQL through database/sql.
package sqldb

import "context"

// Access says what a transaction is for.
type Access int

const (
	// Write begins a READ COMMITTED transaction on the primary. On SQLite it
	// takes the write lock at once.
	Write Access = iota
	// Read begins a read-only transaction in which every statement sees the
	// same snapshot.
	Read
	// Urgent begins a Write on one of a few connections that are kept for the
	// engine's own short statements: a heartbeat must not wait for a
	// connection behind the work that it keeps alive. SQLite has but one
	// writer.
	Urgent
	// Claim begins an Urgent whose commit does not wait for the disk. To lose it
	// must be the same as never to have done it: nobody may have been told of it,
	// but through a later Write, which takes it to the disk with it.
	Claim
)

// Scan copies the columns of the current row into dest.
type Scan func(dest ...any) error

// Stmt is one statement together with what its result must be, so that a list
// of them can be sent at once and judged afterwards.
//
// A Stmt may run more than once (a group of units that failed is run again
// without the culprit), so Row and Done must overwrite what they recorded
// before, not add to it.
type Stmt struct {
	// SQL is in the dialect's own placeholders.
	SQL string
	// Args are the values of the placeholders.
	Args []any
	// Row is called for each row of the result, in order. Without it the
	// statement is executed for its effect only.
	Row func(Scan) error
	// Done is called with the number of rows that were returned (with Row) or
	// affected (without). Its error fails the transaction.
	Done func(rows int64) error
	// Fail gives an error of the database its meaning for this statement. nil
	// leaves it as it is.
	Fail func(error) error
	// Exact is set for statements of a user and those that read a user's tables. They
	// run as they would on a connection of the user's own. For all others PostgreSQL's
	// planner is bound to indexes, and a
	// time outside MinTime and MaxTime, such as PostgreSQL's infinity, is read as
	// the nearer of the two, so that one such row does not hide the rest.
	Exact bool
}

// DB is an open database.
type DB interface {
	// Begin starts a transaction. It waits for a connection, at most until
	// ctx is done.
	Begin(ctx context.Context, access Access) (Tx, error)
	// Exclusively runs fn while no other process does, waiting for its turn
	// at most until ctx is done. On PostgreSQL and SQLite all of fn is one
	// transaction; MySQL commits with every DDL statement, so fn must be able
	// to run again after it was cut off.
	Exclusively(ctx context.Context, fn func(Runner) error) error
	// Dialect describes the database.
	Dialect() Dialect
	// Close waits for nothing: the caller has ended its transactions.
	Close() error
}

// Runner runs statements in a transaction that somebody else ends.
type Runner interface {
	// Run executes the statements in order, in one round trip where the
	// driver can. It stops at the first error and returns it as a *StmtError.
	// After an error only Rollback may follow.
	Run(ctx context.Context, stmts ...Stmt) error
	// Query runs one statement and streams its rows. The rows must be closed
	// before the next call.
	Query(ctx context.Context, sql string, args ...any) (Rows, error)
}

// Tx is a transaction of ours. It is used by one goroutine at a time.
type Tx interface {
	Runner
	// Commit runs the last statements and COMMIT in one round trip where
	// the driver can. An error after COMMIT was sent, unless the database
	// itself refused it, is an *Uncertain.
	Commit(ctx context.Context, last ...Stmt) error
	// Rollback ends the transaction; it may follow any error and may be
	// called twice. A connection that does not answer is thrown away.
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

// Each calls row for every row that query returns, in a snapshot of its own.
func Each(ctx context.Context, db DB, row func(Scan) error, query string, args ...any) error {
	tx, err := db.Begin(ctx, Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return tx.Run(ctx, Stmt{SQL: query, Args: args, Row: row})
}
