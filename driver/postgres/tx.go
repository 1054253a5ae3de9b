package postgres

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perdure/perdure/internal/sqldb"
)

// commitTimeout bounds the wait for the response to COMMIT.
const commitTimeout = 30 * time.Second

// batcher has the common methods of *pgx.Conn and pgx.Tx.
type batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// runner runs lists of statements as one pipeline each.
type runner struct {
	conn batcher
	// simple is true if the connection uses the simple protocol. A batch has the protocol of
	// its connection, so statements are then sent one by one, with the extended protocol.
	simple bool
}

// newRunner returns a runner for a connection or a transaction on it.
func newRunner(on batcher, conn *pgx.Conn) runner {
	return runner{conn: on, simple: conn != nil && plansOf(conn).simple}
}

// Join returns a Runner for a transaction that the caller has started and will end.
func Join(tx pgx.Tx) sqldb.Runner { return newRunner(tx, tx.Conn()) }

// Run implements sqldb.Runner.
func (r runner) Run(ctx context.Context, stmts ...sqldb.Stmt) error {
	if len(stmts) == 0 {
		return nil
	}
	if r.simple {
		return r.oneByOne(ctx, stmts)
	}
	batch := &pgx.Batch{}
	for _, s := range stmts {
		query, args := textAndArgs(s)
		batch.Queue(query, args...)
	}
	results := r.conn.SendBatch(ctx, batch)
	err := collect(results, stmts)
	if closing := results.Close(); err == nil && closing != nil {
		err = &sqldb.StmtError{Index: len(stmts) - 1, Err: translate(closing)}
	}
	return err
}

// textAndArgs returns a statement for pgx.
func textAndArgs(s sqldb.Stmt) (query string, args []any) {
	if wait, ok := s.LockLimit(); ok {
		return "select set_config('lock_timeout', $1, true)", []any{strconv.FormatInt(wait.Milliseconds(), 10)}
	}
	return s.SQL, s.Args
}

// oneByOne runs statements with a round trip each.
func (r runner) oneByOne(ctx context.Context, stmts []sqldb.Stmt) error {
	for i, s := range stmts {
		query, args := textAndArgs(s)
		if !s.Exact {
			args = append([]any{pgx.QueryExecModeExec}, args...)
		}
		rows, err := r.conn.Query(ctx, query, args...)
		var n int64
		if err == nil {
			n, err = read(rows, s)
		}
		if err != nil {
			return sqldb.Failed(i, s, translate(err))
		}
		if err := sqldb.CheckRows(i, s, n); err != nil {
			return err
		}
	}
	return nil
}

func collect(results pgx.BatchResults, stmts []sqldb.Stmt) error {
	for i, s := range stmts {
		rows, err := result(results, s)
		if err != nil {
			return sqldb.Failed(i, s, translate(err))
		}
		if err := sqldb.CheckRows(i, s, rows); err != nil {
			return err
		}
	}
	return nil
}

func result(results pgx.BatchResults, s sqldb.Stmt) (int64, error) {
	if s.Row == nil {
		tag, err := results.Exec()
		return tag.RowsAffected(), err
	}
	rows, err := results.Query()
	if err != nil {
		return 0, err
	}
	return read(rows, s)
}

// read reads the rows of a statement. It returns their number, or the number of affected
// rows.
func read(rows pgx.Rows, s sqldb.Stmt) (int64, error) {
	defer rows.Close()
	if s.Row == nil {
		rows.Close()
		return rows.CommandTag().RowsAffected(), rows.Err()
	}
	scan := rows.Scan
	if !s.Exact {
		scan = bounded(rows)
	}
	var n int64
	for rows.Next() {
		if err := s.Row(scan); err != nil {
			return n, err
		}
		n++
	}
	return n, rows.Err()
}

// Query implements sqldb.Runner.
func (r runner) Query(ctx context.Context, query string, args ...any) (sqldb.Rows, error) {
	rows, err := r.conn.Query(ctx, query, args...)
	if err != nil {
		return nil, translate(err)
	}
	return pgxRows{rows}, nil
}

type pgxRows struct{ pgx.Rows }

func (r pgxRows) Err() error { return translate(r.Rows.Err()) }

func (r pgxRows) Close() error {
	r.Rows.Close()
	return nil
}

// tx is a transaction on a pooled connection. BEGIN is sent together with the first
// statement, so that it does not need its own round trip.
type tx struct {
	runner
	conn  *lease
	begin []sqldb.Stmt
	ran   *sqldb.Counter
	// unsteered restore the planner's own settings. free is true if they have run.
	unsteered []sqldb.Stmt
	free      bool
	done      bool
	alive     sqldb.Alive
	// room is where the transaction returns its permission to use a connection; nil if it
	// needs none.
	room chan struct{}
}

// Run implements sqldb.Runner.
func (t *tx) Run(ctx context.Context, stmts ...sqldb.Stmt) error {
	t.ran.Add(len(stmts))
	return t.send(ctx, stmts)
}

// send runs statements, preceded by the statements of before.
func (t *tx) send(ctx context.Context, stmts []sqldb.Stmt) error {
	if t.done {
		return sqldb.ErrDone
	}
	defer t.alive.Use()()
	if t.begin != nil && !slices.ContainsFunc(stmts, func(s sqldb.Stmt) bool { _, ok := s.LockLimit(); return !ok }) {
		t.begin = append(t.begin, stmts...) // a limit is sent with the first statement
		return nil
	}
	before := t.before(slices.ContainsFunc(stmts, func(s sqldb.Stmt) bool { return s.Exact }))
	if len(before) == 0 {
		return t.runner.Run(ctx, stmts...)
	}
	return shift(t.runner.Run(ctx, slices.Concat(before, stmts)...), len(before))
}

// before returns the statements that must run first: once, the statements that start the
// transaction, and, before the first statement of the user, the statements that restore
// the planner's settings.
func (t *tx) before(users bool) []sqldb.Stmt {
	before := t.begin
	t.begin = nil
	if users && !t.free {
		t.free = true
		before = slices.Concat(before, t.unsteered)
	}
	return before
}

// shift subtracts the number of preceding statements from the index of a failed
// statement.
func shift(err error, before int) error {
	var failed *sqldb.StmtError
	if errors.As(err, &failed) {
		failed.Index = max(failed.Index-before, 0)
	}
	return err
}

// Query implements sqldb.Runner.
func (t *tx) Query(ctx context.Context, query string, args ...any) (sqldb.Rows, error) {
	if t.done {
		return nil, sqldb.ErrDone
	}
	done := t.alive.Use()
	if err := t.runner.Run(ctx, t.before(true)...); err != nil {
		done()
		return nil, err
	}
	t.ran.Add(1)
	rows, err := t.runner.Query(ctx, query, args...)
	if err != nil {
		done()
		return nil, err
	}
	return t.alive.Rows(rows, done), nil
}

// Commit implements sqldb.Tx. The results of the last statements must be checked before
// COMMIT is sent, so they need their own round trip. The exception is a list in which no
// statement has a result to check.
func (t *tx) Commit(ctx context.Context, last ...sqldb.Stmt) error {
	if t.done {
		return sqldb.ErrDone
	}
	if t.begin != nil && len(last) == 0 { // no statement has run
		t.Rollback()
		return nil
	}
	if hasChecks(last) {
		if err := t.Run(ctx, last...); err != nil {
			return err
		}
		last = nil
	}
	return t.commit(ctx, last)
}

func hasChecks(stmts []sqldb.Stmt) bool {
	for _, s := range stmts {
		if s.Done != nil {
			return true
		}
	}
	return false
}

// commit sends the last statements and COMMIT together. If the server refuses one of
// them, it skips COMMIT, and the transaction is certainly rolled back.
func (t *tx) commit(ctx context.Context, last []sqldb.Stmt) error {
	t.alive.End()
	ctx, cancel := sqldb.CommitContext(ctx, commitTimeout)
	defer cancel()
	t.ran.Add(len(last))
	err := t.send(ctx, append(last, sqldb.Exec("commit")))
	var failed *sqldb.StmtError
	switch {
	case err == nil && t.conn.PgConn().TxStatus() == 'I':
		t.ran.Commit()
		t.end()
		return nil
	case err == nil:
		err = errors.New("the server rolled the transaction back at commit")
	case errors.As(err, &failed) && !rolledBack(err, failed.Index < len(last)):
		err = sqldb.NewUncertain(err)
	}
	t.Rollback()
	return err
}

// rolledBack reports whether an error proves that COMMIT did not happen. All statements
// were sent together, so a connection that broke before the first response proves
// nothing, even if pgconn.SafeToRetry returns true. An error from the server is proof,
// except a fatal error in response to COMMIT itself: the backend may have been terminated
// after the commit.
func rolledBack(err error, before bool) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (before || e.SeverityUnlocalized == "ERROR")
}

// Rollback implements sqldb.Tx.
func (t *tx) Rollback() {
	if t.done {
		return
	}
	t.alive.End()
	if t.begin == nil && t.conn.PgConn().TxStatus() != 'I' {
		ctx, cancel := sqldb.RollbackContext()
		_, _ = t.conn.Exec(ctx, "rollback") // on failure the pool drops the connection
		cancel()
	}
	t.end()
}

func (t *tx) end() {
	t.alive.End()
	t.done = true
	t.conn.release()
	if t.room != nil {
		t.room <- struct{}{}
	}
}
