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

// ErrReadOnly is returned by a Tx of View that is asked to change something.
var ErrReadOnly = errors.New("transaction is read-only")

// Tx is one unit of work: reads, then recorded changes.
//
// Changes are recorded and applied in their order when the function of Update
// returns; until then they cost nothing and lock nothing. Reads before the
// first change see one snapshot. A read after a change, or SQL of your own,
// first applies what was recorded, so that it sees it; from then on the
// transaction is open on a connection of its own.
//
// After the first error a Tx is poisoned: every method returns that error,
// nothing more reaches the database, and Update rolls back even if its
// function returns nil. So the errors of single calls need not be checked one
// by one.
//
// A Tx belongs to the goroutine of its function and is dead when that returns.
type Tx struct {
	eng      *Engine
	ctx      context.Context
	unit     unit.Unit
	now      time.Time
	err      error
	hasRead  bool // a read was asked for
	hasSeen  bool // a read was answered
	readOnly bool
	ended    bool

	snapshot sqldb.Tx     // the read phase, nil until the first read
	live     sqldb.Runner // the open transaction, nil until it is needed
	own      sqldb.Tx     // live, if we began it
	arrays   bool         // live takes array values
	flushed  int          // statements of the unit that live has run

	committed []func()   // what to do after the commit
	rows      sqldb.Rows // the result of the last Query, open or not
}

func (e *Engine) newTx(ctx context.Context, id string) *Tx {
	return &Tx{eng: e, ctx: ctx, now: e.options.Clock.Now().UTC(), unit: unit.Unit{ID: id, Refs: outbox.RefMap{}}}
}

// ID returns the unit's idempotency key: unique to this call of Update and the
// same each time its function is run again.
func (tx *Tx) ID() string { return tx.unit.ID }

// Context returns the context of the unit, with its deadline.
func (tx *Tx) Context() context.Context { return tx.ctx }

// Now returns the time at which this run of the unit began.
func (tx *Tx) Now() time.Time { return tx.now }

// usable returns the error that keeps the Tx from being used, if any.
func (tx *Tx) usable() error {
	if tx.ended {
		return sqldb.ErrDone
	}
	return tx.err
}

// writable returns the error that keeps the Tx from recording, if any.
func (tx *Tx) writable() error {
	if err := tx.usable(); err != nil {
		return err
	}
	if tx.readOnly {
		return tx.fail(ErrReadOnly)
	}
	return nil
}

// fail poisons the Tx with its first error and returns that.
func (tx *Tx) fail(err error) error {
	if tx.err == nil {
		tx.err = tx.explain(bare(err))
	}
	return tx.err
}

// explain names the reason for a broken connection: when the context ends, the
// drivers of MySQL and PostgreSQL break off, and some of their calls say only
// that.
func (tx *Tx) explain(err error) error {
	if cause := tx.ctx.Err(); cause != nil && sqldb.IsTransient(err) && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// bare removes the wrapping that only our own layers need.
func bare(err error) error {
	var u *unit.CulpritError
	if errors.As(err, &u) {
		err = u.Err
	}
	var s *sqldb.StmtError
	if errors.As(err, &s) {
		err = s.Err
	}
	return err
}

// record adds statements and what the outbox shows of them to the unit.
func (tx *Tx) record(stmts []sqldb.Stmt, mutations ...outbox.Mutation) error {
	if len(tx.unit.Mutations)+len(mutations) > unit.MaxMutations {
		return tx.fail(fault.Invalidf("unit of work", "has more than %d mutations", unit.MaxMutations))
	}
	tx.unit.Stmts = append(tx.unit.Stmts, stmts...)
	tx.unit.Mutations = append(tx.unit.Mutations, mutations...)
	return nil
}

// open turns the unit into an open transaction that has applied everything
// recorded so far.
func (tx *Tx) open() (sqldb.Runner, error) {
	if err := tx.closeRows(); err != nil {
		return nil, err
	}
	if tx.live == nil {
		tx.endSnapshot()
		own, err := tx.eng.db.Begin(tx.ctx, sqldb.Write)
		if err != nil {
			return nil, tx.fail(err)
		}
		tx.own, tx.live, tx.arrays = own, own, true
	}
	pending := tx.unit.Stmts[tx.flushed:]
	tx.flushed = len(tx.unit.Stmts)
	if err := tx.live.Run(tx.ctx, pending...); err != nil {
		return nil, tx.fail(err)
	}
	return tx.live, nil
}

// reader returns what a read runs on: the snapshot of the read phase, or the
// open transaction once something was recorded.
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

// commit ends the unit successfully or not at all.
func (tx *Tx) commit() error {
	tx.endSnapshot()
	if tx.live == nil {
		if tx.unit.Clean() {
			return nil
		}
		return tx.eng.committer.Commit(tx.ctx, &tx.unit)
	}
	last, err := tx.finish()
	if err != nil {
		return err
	}
	err = bare(tx.own.Commit(tx.ctx, last...))
	var uncertain *sqldb.Uncertain
	if errors.As(err, &uncertain) {
		return &fault.Uncertain{Unit: tx.unit.ID, Err: uncertain.Err}
	}
	return err
}

// finish applies what is left and reserves the outbox number, as the last
// lock. It returns the statements that must follow before COMMIT.
func (tx *Tx) finish() ([]sqldb.Stmt, error) {
	if err := tx.closeRows(); err != nil {
		return nil, err
	}
	rest := tx.unit
	rest.Stmts = tx.unit.Stmts[tx.flushed:]
	tx.flushed = len(tx.unit.Stmts)
	last, err := tx.eng.writer().Apply(tx.ctx, tx.live, []*unit.Unit{&rest}, tx.arrays)
	if err != nil {
		return nil, tx.fail(err)
	}
	return last, nil
}

// closeRows closes the rows that the user left open: the connection can do
// nothing else before. It returns what broke their stream.
func (tx *Tx) closeRows() error {
	if tx.rows != nil {
		_ = tx.rows.Close() // an error has poisoned the Tx
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

// end releases whatever the Tx still holds. After a commit that is nothing.
func (tx *Tx) end() {
	tx.ended = true
	_ = tx.closeRows()
	tx.endSnapshot()
	if tx.own != nil {
		tx.own.Rollback()
	}
}

// Rows streams the result of Query. The next use of its Tx closes it.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// Exec runs a statement of your own, in the database's own SQL and
// placeholders, and returns the number of rows it affected. It is part of the
// unit but not of its outbox entry.
func (tx *Tx) Exec(query string, args ...any) (int64, error) {
	if err := tx.writable(); err != nil {
		return 0, err
	}
	if strings.TrimSpace(query) == "" { // some drivers panic
		return 0, tx.fail(fault.Invalidf("statement", "is empty"))
	}
	run, err := tx.open()
	if err != nil {
		return 0, err
	}
	var affected int64
	stmt := sqldb.Stmt{SQL: query, Args: args, Exact: true, Done: func(n int64) error { affected = n; return nil }}
	if err := run.Run(tx.ctx, stmt); err != nil {
		return 0, tx.fail(fmt.Errorf("exec: %w", bare(err)))
	}
	return affected, nil
}

// Query runs a query of your own, in the database's own SQL and placeholders.
// In Update it runs in the open transaction, in View on the snapshot.
func (tx *Tx) Query(query string, args ...any) (Rows, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	if strings.TrimSpace(query) == "" { // some drivers panic
		return nil, tx.fail(fault.Invalidf("query", "is empty"))
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

// txRows poisons its Tx when the stream breaks.
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

// Close also looks for the error that the user did not ask for: after some of
// them the database has rolled back, and what follows must not reach it.
func (r txRows) Close() error {
	err := r.Rows.Close()
	return errors.Join(r.Err(), err)
}
