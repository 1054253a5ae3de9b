package perdure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/outbox"
)

// ErrReadOnly is returned by methods of a Tx of View that would change something.
var ErrReadOnly = errors.New("transaction is read-only")

// Tx is one unit of work: it reads, then records changes.
//
// Changes are applied in the order in which they were recorded, when the function of
// Update returns. Until then they cost nothing and lock nothing. All reads before the
// first change see one snapshot. A read after a change, and Exec and Query, first apply
// the recorded changes, so that they see them. From then on, the unit has an open
// transaction on its own connection.
//
// After its first error a Tx is failed: every method returns that error, no further
// statement reaches the database, and Update rolls back even if its function returns nil.
// So the function need not check the error of every call.
//
// A Tx must be used only by the goroutine of its function, and not after the function
// returns.
type Tx struct {
	eng      *Engine
	ctx      context.Context
	unit     unit.Unit
	now      time.Time
	err      error
	hasRead  bool // a read was requested
	hasSeen  bool // a read returned a result
	readOnly bool
	ended    bool

	snapshot sqldb.Tx      // the read phase, nil until the first read
	live     sqldb.Runner  // the open transaction, nil until it is needed
	own      sqldb.Tx      // live, if this Tx started it
	joined   any           // the caller's transaction, if live is that
	arrays   bool          // live accepts array values
	wait     time.Duration // the longest wait of live for a locked row; 0 means no limit
	flushed  int           // statements of the unit that live has run
	release  func()        // called when own has ended

	committed []func()     // called after the commit
	rows      sqldb.Rows   // the result of the last Query, open or not
	app       *application // the application's use of the transaction, nil if there is none

	savepoints []savepoint // of the application, the last one is the innermost
}

func (e *Engine) newTx(ctx context.Context, id string) *Tx {
	return &Tx{eng: e, ctx: ctx, now: e.options.Clock.Now().UTC(), unit: unit.Unit{ID: id, Refs: outbox.RefMap{}}}
}

// ID returns the unit's idempotency key. It is unique to this call of Update, and the
// same each time the function is run.
func (tx *Tx) ID() string { return tx.unit.ID }

// Context returns the context of the unit, with its deadline.
func (tx *Tx) Context() context.Context { return tx.ctx }

// Now returns the time at which this run of the unit started.
func (tx *Tx) Now() time.Time { return tx.now }

// usable returns an error if the Tx has ended or failed.
func (tx *Tx) usable() error {
	if tx.ended {
		return sqldb.ErrDone
	}
	return tx.err
}

// writable returns an error if the Tx cannot record changes.
func (tx *Tx) writable() error {
	if err := tx.usable(); err != nil {
		return err
	}
	if tx.readOnly {
		return tx.fail(ErrReadOnly)
	}
	return nil
}

// fail sets the error of the Tx, unless it has failed before, and returns the first
// error.
func (tx *Tx) fail(err error) error {
	if tx.err == nil {
		tx.err = tx.explain(bare(err))
	}
	return tx.err
}

// explain adds the cause to the error of a broken connection. When the context is
// cancelled, the drivers of MySQL and PostgreSQL close the connection, and some of their
// calls report only that.
func (tx *Tx) explain(err error) error {
	if cause := tx.ctx.Err(); cause != nil && sqldb.IsTransient(err) && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// bare removes wrapping errors that only Perdure's internal layers need.
func bare(err error) error {
	var u *unit.UnitError
	if errors.As(err, &u) {
		err = u.Err
	}
	var s *sqldb.StmtError
	if errors.As(err, &s) {
		err = s.Err
	}
	return err
}

// record adds statements to the unit, and the mutations that describe them in the outbox.
func (tx *Tx) record(stmts []sqldb.Stmt, mutations ...outbox.Mutation) error {
	if err := tx.room(len(mutations)); err != nil {
		return err
	}
	tx.unit.Stmts = append(tx.unit.Stmts, stmts...)
	for _, m := range mutations {
		tx.unit.Describe(m)
	}
	return nil
}

// room fails the Tx if its outbox entry cannot hold n more mutations or events.
func (tx *Tx) room(n int) error {
	if tx.unit.Recorded()+n > unit.MaxMutations {
		return tx.fail(fault.Invalidf("unit of work", "must have at most %d mutations and events", unit.MaxMutations))
	}
	return nil
}

// open starts the transaction of the unit, if it is not open, and applies the statements
// that were recorded so far.
func (tx *Tx) open() (sqldb.Runner, error) {
	if err := tx.closeRows(); err != nil {
		return nil, err
	}
	if err := tx.checkState(); err != nil {
		return nil, err
	}
	if tx.live == nil {
		tx.endSnapshot()
		if err := tx.eng.nested(); err != nil {
			return nil, tx.fail(err)
		}
		own, err := tx.eng.db.Begin(tx.ctx, sqldb.Write)
		if err != nil {
			return nil, tx.fail(err)
		}
		tx.own, tx.live, tx.arrays = own, own, true
		tx.release = tx.eng.hold()
		if err := own.Run(tx.ctx, sqldb.LimitLocks(unit.Within(tx.ctx, tx.wait))); err != nil {
			return nil, tx.fail(err)
		}
	}
	pending := tx.unit.Stmts[tx.flushed:]
	tx.flushed = len(tx.unit.Stmts)
	if err := tx.live.Run(tx.ctx, pending...); err != nil {
		return nil, tx.fail(err)
	}
	return tx.live, nil
}

// reader returns the runner for a read: the snapshot of the read phase, or, after the
// first recorded change, the open transaction.
func (tx *Tx) reader() (sqldb.Runner, error) {
	tx.hasRead = true
	if tx.live != nil || len(tx.unit.Stmts) > 0 {
		return tx.open()
	}
	if err := tx.closeRows(); err != nil {
		return nil, err
	}
	if tx.snapshot == nil {
		snapshot, err := tx.eng.db.Begin(tx.ctx, sqldb.Read)
		if err != nil {
			return nil, tx.fail(err)
		}
		tx.snapshot = snapshot
	}
	return tx.snapshot, nil
}

// commit commits the unit. It writes all changes or none.
func (tx *Tx) commit() error {
	tx.endSnapshot()
	if tx.live == nil {
		if tx.unit.Clean() {
			return nil
		}
		if err := tx.eng.nested(); err != nil {
			return err
		}
		return tx.eng.committer.Commit(tx.ctx, &tx.unit)
	}
	defer tx.eng.committer.Watch()()
	last, err := tx.finish()
	if err != nil {
		return err
	}
	if err := tx.ctx.Err(); err != nil { // COMMIT itself is not cancelled
		return tx.fail(err)
	}
	err = bare(tx.own.Commit(tx.ctx, last...))
	tx.letGo()
	var uncertain *sqldb.Uncertain
	if errors.As(err, &uncertain) {
		return &fault.Uncertain{Unit: tx.unit.ID, Err: uncertain.Err}
	}
	return err
}

// finish applies the remaining statements and reserves the outbox number, as the last
// lock of the transaction. It returns the statements that must run immediately before
// COMMIT.
func (tx *Tx) finish() ([]sqldb.Stmt, error) {
	if err := tx.closeRows(); err != nil {
		return nil, err
	}
	rest := tx.unit
	rest.Stmts = tx.unit.Stmts[tx.flushed:]
	tx.flushed = len(tx.unit.Stmts)
	how := unit.How{Arrays: tx.arrays, Joined: tx.own == nil}
	if tx.own != nil {
		how.Counter = unit.CounterWait(tx.ctx)
	}
	last, err := tx.eng.writer().Apply(tx.ctx, tx.live, []*unit.Unit{&rest}, how)
	if err != nil {
		return nil, tx.fail(err)
	}
	return last, nil
}

// closeRows closes the rows that the user left open, because they block the connection.
// It returns the error that ended the stream of rows, if any.
func (tx *Tx) closeRows() error {
	if tx.rows != nil {
		_ = tx.rows.Close() // an error has failed the Tx
		tx.rows = nil
	}
	return tx.err
}

func (tx *Tx) endSnapshot() {
	if tx.snapshot != nil {
		tx.snapshot.Rollback()
		tx.snapshot = nil
	}
}

// end releases what the Tx still holds: rows, the snapshot and the open transaction.
// After a commit there is nothing to release.
func (tx *Tx) end() {
	tx.closeApplication()
	tx.ended = true
	_ = tx.closeRows()
	tx.endSnapshot()
	if tx.own != nil {
		tx.own.Rollback()
		tx.letGo()
	}
}

// letGo notes that the goroutine has no open transaction any longer.
func (tx *Tx) letGo() {
	if tx.release != nil {
		tx.release()
		tx.release = nil
	}
}

// Rows streams the result of Query. The next use of its Tx closes it.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// Exec runs a statement in the database's own SQL and placeholders, and returns the
// number of affected rows. The statement is part of the unit but not of its outbox entry.
func (tx *Tx) Exec(query string, args ...any) (int64, error) {
	if err := tx.writable(); err != nil {
		return 0, err
	}
	if strings.TrimSpace(query) == "" { // some drivers panic
		return 0, tx.fail(fault.Invalidf("statement", "must not be empty"))
	}
	run, err := tx.open()
	if err != nil {
		return 0, err
	}
	kind, name := sqldb.ControlOf(query)
	if err := tx.allow(kind, name); err != nil {
		return 0, err
	}
	var affected int64
	stmt := sqldb.Stmt{SQL: query, Args: args, Exact: true, Done: func(n int64) error { affected = n; return nil }}
	if err := run.Run(tx.ctx, stmt); err != nil {
		return 0, tx.fail(fmt.Errorf("exec: %w", bare(err)))
	}
	tx.divided(kind, name)
	return affected, nil
}

// Query runs a query in the database's own SQL and placeholders. In Update it runs in the
// open transaction, in View on the snapshot.
func (tx *Tx) Query(query string, args ...any) (Rows, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	if strings.TrimSpace(query) == "" { // some drivers panic
		return nil, tx.fail(fault.Invalidf("query", "must not be empty"))
	}
	if kind, name := sqldb.ControlOf(query); kind == sqldb.Ends {
		return nil, tx.allow(kind, name)
	} else if kind != sqldb.NoControl {
		return nil, tx.fail(fault.Invalidf("query", "must not be a statement on a savepoint: use Exec"))
	}
	run, err := tx.queryRunner()
	if err != nil {
		return nil, err
	}
	rows, err := run.Query(tx.ctx, query, args...)
	if err != nil {
		return nil, tx.fail(fmt.Errorf("query: %w", err))
	}
	tx.hasSeen = true
	tx.rows = txRows{Rows: rows, tx: tx}
	return tx.rows, nil
}

func (tx *Tx) queryRunner() (sqldb.Runner, error) {
	tx.hasRead = true
	if tx.readOnly {
		return tx.reader()
	}
	return tx.open()
}

// txRows fails its Tx if reading the rows fails.
type txRows struct {
	sqldb.Rows
	tx *Tx
}

func (r txRows) Scan(dest ...any) error {
	if err := r.Rows.Scan(dest...); err != nil {
		return r.tx.fail(fmt.Errorf("scan: %w", err))
	}
	return nil
}

func (r txRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return r.tx.fail(fmt.Errorf("read rows: %w", err))
	}
	return nil
}

// Close also checks Err, which the user may not have called. After some errors the
// database has rolled back the transaction, and no later statement must reach it.
func (r txRows) Close() error {
	err := r.Rows.Close()
	return errors.Join(r.Err(), err)
}
