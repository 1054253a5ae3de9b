package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/perdure/perdure/internal/sqldb"
)

// commitTimeout bounds the wait for the response to COMMIT.
const commitTimeout = 30 * time.Second

// tx is a transaction on a pooled connection.
type tx struct {
	sqldb.StdRunner
	conn  *sql.Conn
	done  bool
	maria bool
	// prefix precedes the statements on MariaDB. It bounds their waits for locks.
	prefix string
	// sliced is true if prefix bounds the whole time of a statement, because the bound is
	// shorter than a second.
	sliced bool
	// meanings and limits are the settings of a caller's session that are changed; see borrow.
	meanings, limits []setting
	shared           bool   // the connection is the caller's
	room             func() // called at the end
	// limited is true if the transaction has changed the lock wait timeout of its
	// session.
	limited bool
	// fence is the statement of sqldb.Clustered. fenced is true if the transaction needs it,
	// claim if it is a sqldb.Claim.
	fence         []sqldb.Stmt
	fenced, claim bool
	guard         guard
	alive         sqldb.Alive
}

// Use implements sqldb.Native.
func (t *tx) Use() (done func()) { return t.alive.Use() }

// Run implements sqldb.Runner.
func (t *tx) Run(ctx context.Context, stmts ...sqldb.Stmt) error {
	defer t.alive.Use()()
	for i, s := range stmts {
		if err := t.one(ctx, s); err != nil {
			return cut(ctx, at(i, err))
		}
	}
	return nil
}

// at sets the index of the statement that failed.
func at(i int, err error) error {
	var failed *sqldb.StmtError
	if errors.As(err, &failed) {
		failed.Index = i
	}
	return err
}

func (t *tx) one(ctx context.Context, s sqldb.Stmt) error {
	if wait, ok := s.LockLimit(); ok {
		return t.limit(ctx, wait)
	}
	if t.claim || len(t.fence) == 0 {
		return t.exec(ctx, s)
	}
	return t.guard.run(s, func(s sqldb.Stmt) error { return t.exec(ctx, s) })
}

func (t *tx) exec(ctx context.Context, s sqldb.Stmt) error {
	change := t.takeBack
	if s.Exact {
		change = t.giveBack
	}
	if err := change(ctx); err != nil {
		return err
	}
	if len(t.fence) > 0 && !t.fenced {
		t.watch(&s)
	}
	if t.prefix == "" || s.Exact { // a user's statement may be of a form that takes no prefix
		return t.StdRunner.Run(ctx, s)
	}
	s.SQL = t.bounded(s)
	if inner := s.Fail; t.sliced {
		s.Fail = func(err error) error {
			err = outOfTime(err)
			if inner != nil {
				err = inner(err)
			}
			return err
		}
	}
	return t.StdRunner.Run(ctx, s)
}

// watch records that the transaction needs the fence if the statement has changed or locked a
// row. The rows of a select that is run only for its locks are not counted.
func (t *tx) watch(s *sqldb.Stmt) {
	need, locks := needsFence(s.SQL, t.claim)
	if !need {
		return
	}
	if locks && s.Row == nil {
		t.fenced = true
		return
	}
	done := s.Done
	s.Done = func(rows int64) error {
		t.fenced = t.fenced || rows > 0
		if done == nil {
			return nil
		}
		return done(rows)
	}
}

// largeStatement is the size in bytes of the values of a statement that may need longer than a
// short bound of lock waits, however often it is tried.
const largeStatement = 64 << 10

// limit bounds the waits for locks. MariaDB takes the bound with each statement. It counts
// whole seconds, so a shorter bound is one of the whole statement. A large statement does not
// wait for locks at all then, and its time has no bound. MySQL 8 has only a variable of the
// session, in whole seconds.
func (t *tx) limit(ctx context.Context, wait time.Duration) error {
	seconds := int64((wait + time.Second - 1) / time.Second)
	if !t.maria {
		t.limited = true
		return t.StdRunner.Run(ctx, sqldb.Exec(fmt.Sprintf("set %s = %d", lockWaitTimeout, seconds)))
	}
	t.sliced = wait < time.Second
	t.prefix = fmt.Sprintf("set statement %s = %d for ", lockWaitTimeout, seconds)
	if t.sliced {
		t.prefix = fmt.Sprintf("set statement max_statement_time = %.3f for ", wait.Seconds())
	}
	return nil
}

// bounded returns the text of a statement with its bound.
func (t *tx) bounded(s sqldb.Stmt) string {
	size := 0
	for _, arg := range s.Args {
		switch v := arg.(type) {
		case string:
			size += len(v)
		case []byte:
			size += len(v)
		case *string:
			if v != nil {
				size += len(*v)
			}
		}
	}
	if t.sliced && size >= largeStatement {
		return "set statement " + lockWaitTimeout + " = 0 for " + s.SQL
	}
	return t.prefix + s.SQL
}

// outOfTime converts the errors of a statement that exceeded its time, or that could not
// have the next number of a table at once. It was probably waiting for a lock.
func outOfTime(err error) error {
	const exceeded, noNumber = 1969, 1467
	var e *mysql.MySQLError
	if errors.As(err, &e) && (e.Number == exceeded || e.Number == noNumber) {
		return &sqldb.Transient{Err: &sqldb.LockTimeout{Err: err}}
	}
	return err
}

// cut adds the error of a cancelled context to the error of a broken connection. The
// driver closes the connection when the context is cancelled, and may report only the
// closed connection.
func cut(ctx context.Context, err error) error {
	if ctx.Err() != nil && sqldb.IsTransient(err) && !errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%w: %v", ctx.Err(), err) //nolint:errorlint // the broken connection is not the reason
	}
	return err
}

// Commit implements sqldb.Tx.
func (t *tx) Commit(ctx context.Context, last ...sqldb.Stmt) error {
	if t.done {
		return sqldb.ErrDone
	}
	if err := t.Run(ctx, last...); err != nil {
		return err
	}
	if t.fenced {
		if err := t.Run(ctx, t.fence...); err != nil {
			return err
		}
	}
	t.alive.End()
	ctx, cancel := sqldb.CommitContext(ctx, commitTimeout)
	defer cancel()
	if _, err := t.conn.ExecContext(ctx, "commit"); err != nil {
		t.Rollback()
		return t.commitError(err)
	}
	t.Ran.Commit()
	t.end()
	return nil
}

// commitError distinguishes a commit that the server refused from a commit whose response
// was lost. A commit may have happened if it was interrupted (1317), if its session was
// killed (1927, 3169) or timed out (4031), or if the server was shutting down (1053). It may
// also have happened if a node lost the cluster while it sent the changes (1047, 1180): the
// other nodes may have them.
func (t *tx) commitError(err error) error {
	var e *mysql.MySQLError
	if !errors.As(err, &e) || slices.Contains([]uint16{1047, 1053, 1180, 1317, 1927, 3169, 4031}, e.Number) {
		return sqldb.NewUncertain(err)
	}
	return t.Dialect.Translate(err)
}

// Rollback implements sqldb.Tx. After a deadlock the server has already
// rolled back and a further ROLLBACK does nothing.
func (t *tx) Rollback() {
	if t.done {
		return
	}
	t.alive.End()
	ctx, cancel := sqldb.RollbackContext()
	defer cancel()
	if _, err := t.conn.ExecContext(ctx, "rollback"); err != nil {
		// A connection that may still be inside a transaction must not return to the
		// pool.
		_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	t.end()
}

// end returns the connection to the pool, with the settings that it had. A session whose
// settings cannot be restored is closed.
func (t *tx) end() {
	t.alive.End()
	t.done = true
	ctx, cancel := sqldb.RollbackContext()
	defer cancel()
	changed := append(t.meanings, t.limits...)
	if err := errors.Join(t.unlimit(ctx), t.restore(ctx, &changed)); err != nil {
		_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = t.conn.Close()
	t.room()
}

// unlimit restores the lock wait timeout of new connections.
func (t *tx) unlimit(ctx context.Context) error {
	if !t.limited || len(t.limits) > 0 { // it is one of them
		return nil
	}
	_, err := t.conn.ExecContext(ctx, "set "+lockWaitTimeout+" = "+lockWaitSeconds)
	return err
}
