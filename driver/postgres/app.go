package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// errClosed is the error of a transaction whose unit of work has ended.
var errClosed = fmt.Errorf("%w: %w", pgx.ErrTxClosed, sqldb.ErrDone)

// application is the use of a transaction by the application.
type application struct {
	conn  *pgx.Conn
	inner pgx.Tx // for large objects
	guard sqldb.Guard

	mu         sync.Mutex // held while a statement runs: another goroutine may outlive the unit; see lock
	closed     atomic.Bool
	stream     func() // closes the rows or the batch that the application has open
	large      atomic.Bool
	lent       bool // the application uses the connection itself
	savepoints int
}

// errBusy is the error of a statement while another one runs: in another goroutine, or in a
// function that pgx calls for the rows of a batch.
var errBusy = errors.New("the transaction is busy with another statement")

// lock locks the transaction for a statement. It does not wait.
func (a *application) lock() error {
	switch {
	case a.mu.TryLock():
		return nil
	case a.closed.Load():
		return errClosed
	}
	return errBusy
}

// close closes the rows that the application left open. Later calls return errClosed.
func (a *application) close() {
	if a.closed.Swap(true) {
		return
	}
	a.mu.Lock() // waits for a statement that still runs
	defer a.mu.Unlock()
	a.endStream()
	if a.large.Load() && !a.conn.IsClosed() { // pgx must know that its transaction is closed
		ctx, cancel := sqldb.RollbackContext()
		defer cancel()
		_ = a.inner.Commit(ctx) // runs the commit query above; an error is found by State
	}
}

// endStream closes open rows. The lock must be held.
func (a *application) endStream() {
	if a.stream != nil {
		a.stream()
		a.stream = nil
	}
}

// AppTx is the transaction of a unit, or a nested transaction in it, for the application. It
// implements pgx.Tx.
type AppTx struct {
	pgx.Tx    // for methods that later versions of pgx add
	app       *application
	savepoint string // empty: the transaction of the unit
	done      bool   // the nested transaction has ended
}

// Close ends the use of the transaction by the application.
func (t *AppTx) Close() { t.app.close() }

// run runs a statement between the calls of the guard. stop must be called when the context
// is no longer needed. The lock must be held.
func (t *AppTx) run(ctx context.Context, query string, fn func(ctx context.Context) error) (stop context.CancelFunc, err error) {
	stop = func() {}
	if t.app.closed.Load() {
		return stop, errClosed
	}
	if t.done {
		return stop, pgx.ErrTxClosed
	}
	if err := t.app.guard.Before(query); err != nil {
		return stop, err
	}
	ctx, stop = sqldb.Using(ctx, t.app.guard)
	err = fn(ctx)
	t.app.guard.After(query, err)
	return stop, err
}

// once runs a statement whose result is complete when fn returns.
func (t *AppTx) once(ctx context.Context, query string, fn func(ctx context.Context) error) error {
	if err := t.app.lock(); err != nil {
		return err
	}
	defer t.app.mu.Unlock()
	stop, err := t.run(ctx, query, fn)
	stop()
	return err
}

// Begin implements pgx.Tx: a nested transaction is a savepoint.
func (t *AppTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.app.lock(); err != nil {
		return nil, err
	}
	t.app.savepoints++
	name := "perdure_app_" + strconv.Itoa(t.app.savepoints)
	t.app.mu.Unlock()
	if _, err := t.Exec(ctx, "savepoint "+name); err != nil {
		return nil, err
	}
	return &AppTx{Tx: t.Tx, app: t.app, savepoint: name}, nil
}

// Commit implements pgx.Tx. The engine commits the transaction of a unit.
func (t *AppTx) Commit(ctx context.Context) error { return t.end(ctx, "release savepoint ") }

// Rollback implements pgx.Tx. The engine rolls back the transaction of a unit.
func (t *AppTx) Rollback(ctx context.Context) error { return t.end(ctx, "rollback to savepoint ") }

func (t *AppTx) end(ctx context.Context, statement string) error {
	if t.savepoint == "" {
		if err := t.app.lock(); err != nil {
			return err
		}
		defer t.app.mu.Unlock()
		if t.app.closed.Load() {
			return errClosed
		}
		return t.app.guard.Refuse()
	}
	_, err := t.Exec(ctx, statement+t.savepoint)
	if err := t.app.lock(); err != nil {
		return err
	}
	defer t.app.mu.Unlock()
	t.done = true
	return err
}

// Exec implements pgx.Tx.
func (t *AppTx) Exec(ctx context.Context, query string, args ...any) (tag pgconn.CommandTag, err error) {
	err = t.once(ctx, query, func(ctx context.Context) (err error) {
		tag, err = t.app.conn.Exec(ctx, query, args...)
		return err
	})
	return tag, err
}

// Prepare implements pgx.Tx.
func (t *AppTx) Prepare(ctx context.Context, name, query string) (description *pgconn.StatementDescription, err error) {
	err = t.once(ctx, "", func(ctx context.Context) (err error) {
		description, err = t.app.conn.Prepare(ctx, name, query)
		return err
	})
	return description, err
}

// CopyFrom implements pgx.Tx.
func (t *AppTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, from pgx.CopyFromSource) (copied int64, err error) {
	err = t.once(ctx, "", func(ctx context.Context) (err error) {
		copied, err = t.app.conn.CopyFrom(ctx, table, columns, from)
		return err
	})
	return copied, err
}

// Query implements pgx.Tx.
func (t *AppTx) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	if err := t.app.lock(); err != nil {
		return &appRows{app: t.app, err: err}, err
	}
	defer t.app.mu.Unlock()
	var rows pgx.Rows
	stop, err := t.run(ctx, query, func(ctx context.Context) (err error) {
		rows, err = t.app.conn.Query(ctx, query, args...)
		return err
	})
	if rows == nil {
		stop()
		return &appRows{app: t.app, err: err}, err // as pgx: QueryRow needs rows
	}
	tracked := t.app.track(rows, query, stop)
	if err != nil { // there is nothing to read
		tracked.close()
	}
	return tracked, err
}

// QueryRow implements pgx.Tx.
func (t *AppTx) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	rows, _ := t.Query(ctx, query, args...) // Scan returns the error
	return appRow{rows}
}

// SendBatch implements pgx.Tx. Transaction control is not possible in a batch.
func (t *AppTx) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	if err := t.app.lock(); err != nil {
		return failedBatch(t.app, err)
	}
	defer t.app.mu.Unlock()
	for _, q := range batch.QueuedQueries {
		if kind, _ := sqldb.ControlOf(q.SQL); kind != sqldb.NoControl {
			return failedBatch(t.app, fault.Invalidf("batch", "must not start, end or divide a transaction, got %q", q.SQL))
		}
	}
	var results pgx.BatchResults
	stop, err := t.run(ctx, "", func(ctx context.Context) error {
		results = t.app.conn.SendBatch(ctx, batch)
		return nil
	})
	if err != nil {
		stop()
		return failedBatch(t.app, err)
	}
	b := &appBatch{BatchResults: results, app: t.app, stop: stop}
	t.app.stream = func() { _ = b.close() }
	return b
}

// LargeObjects implements pgx.Tx.
func (t *AppTx) LargeObjects() pgx.LargeObjects {
	t.app.large.Store(true)
	t.app.lend()
	return t.app.inner.LargeObjects()
}

// Conn implements pgx.Tx. The connection must not be used after the unit, and not to end
// the transaction.
func (t *AppTx) Conn() *pgx.Conn {
	t.app.lend()
	return t.app.conn
}

// lend leaves the connection to the application until the unit ends. Statements that bypass
// the AppTx must not meet a ping of sqldb.Alive, so the server waits longer for them.
func (a *application) lend() {
	if a.lock() != nil {
		return // a statement is running, or the unit has ended
	}
	defer a.mu.Unlock()
	if a.lent || a.closed.Load() {
		return
	}
	a.lent = true
	a.guard.Use() // until the end
	if a.stream == nil && a.conn.PgConn().TxStatus() == 'T' {
		_, _ = a.conn.Exec(a.guard.Context(), lentLimit) // an error is found by the next statement
	}
}
