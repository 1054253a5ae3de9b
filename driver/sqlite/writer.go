package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// errClosed is the error of a transaction that starts after Close.
var errClosed = fmt.Errorf("database is closed: %w", sql.ErrConnDone)

// writer is the only connection that writes. turn is a channel with one token, so that
// waiting for the writer ends when the context is cancelled.
type writer struct {
	*conn
	turn   chan struct{}
	closed chan struct{} // closed by close
	ran    *sqldb.Counter
	// full is true if commits are synced to disk. synced is true if the next commit would
	// be synced.
	full, synced bool
	path         string // the file
	stall        stall
}

func newWriter(c *sql.Conn, path string, full bool, ran *sqldb.Counter) *writer {
	w := &writer{conn: newConn(c), ran: ran, turn: make(chan struct{}, 1), closed: make(chan struct{}), full: full, synced: full, path: path}
	w.turn <- struct{}{}
	return w
}

func (w *writer) begin(ctx context.Context, access sqldb.Access) (sqldb.Tx, error) {
	select {
	case <-w.turn:
	case <-w.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, &fault.Locked{Lock: "database", Holder: cmp.Or(w.holder(), ownHolder), Err: ctx.Err()}
	}
	tx := &writeTx{StdRunner: sqldb.StdRunner{Conn: w, Dialect: dialect, Ran: w.ran}, w: w}
	err := w.sync(ctx, access != sqldb.Claim)
	if err == nil {
		err = w.lock(ctx)
	}
	if err != nil {
		// The transaction may have started: if the context is cancelled concurrently, the
		// driver returns the context's error although it holds the lock. Without the
		// rollback, no process could write any more.
		tx.Rollback()
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = &fault.Locked{Lock: "database", Holder: w.holder(), Err: err}
		}
		return nil, err
	}
	return tx, nil
}

// closeWait bounds the time for which close waits for the transaction that holds the
// writer.
const closeWait = 5 * time.Second

// close closes the connection when no transaction holds it. If a transaction still holds
// it after closeWait, the connection is closed with its database. Transactions that wait
// for the writer fail.
func (w *writer) close() error {
	close(w.closed)
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	select {
	case <-w.turn: // the turn is not returned
		return w.conn.close()
	case <-ctx.Done():
		return nil
	}
}

// sync sets whether the next commit is synced to disk. A synced commit also syncs all
// earlier commits, because they precede it in the same file.
func (w *writer) sync(ctx context.Context, sync bool) error {
	if !w.full || sync == w.synced {
		return nil
	}
	level := "normal"
	if sync {
		level = "full"
	}
	w.synced = false // until the pragma has succeeded
	if _, err := w.Conn.ExecContext(ctx, "pragma synchronous = "+level); err != nil {
		return translate(err)
	}
	w.synced = sync
	return nil
}

// lock takes SQLite's write lock, which another process may hold. SQLite's own wait does
// not end when the context is cancelled, so it is short and repeated.
func (w *writer) lock(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, busyTotal)
	defer cancel()
	for {
		_, err := w.ExecContext(waiting, "begin immediate")
		if err == nil || !isBusy(err) {
			w.stall.end()
			return translate(err)
		}
		if err := w.stall.wait(w.path); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for another process: %w", ctx.Err())
		}
		if waiting.Err() != nil {
			return translate(err)
		}
	}
}

// writeTx is the transaction that holds the writer.
type writeTx struct {
	sqldb.StdRunner
	w    *writer
	done bool
}

// Run implements sqldb.Runner. The connection outlives the transaction, so statements
// after its end must be refused.
func (tx *writeTx) Run(ctx context.Context, stmts ...sqldb.Stmt) error {
	if tx.done {
		return sqldb.ErrDone
	}
	return tx.StdRunner.Run(ctx, stmts...)
}

// Query implements sqldb.Runner.
func (tx *writeTx) Query(ctx context.Context, query string, args ...any) (sqldb.Rows, error) {
	if tx.done {
		return nil, sqldb.ErrDone
	}
	return tx.StdRunner.Query(ctx, query, args...)
}

// commitTimeout bounds the sync of a commit on a slow disk.
const commitTimeout = 30 * time.Second

// Commit implements sqldb.Tx.
func (tx *writeTx) Commit(ctx context.Context, last ...sqldb.Stmt) error {
	if tx.done {
		return sqldb.ErrDone
	}
	if err := tx.Run(ctx, last...); err != nil {
		return err
	}
	ctx, cancel := sqldb.CommitContext(ctx, commitTimeout)
	defer cancel()
	_, err := tx.w.ExecContext(ctx, "commit")
	if err != nil {
		tx.Rollback()
		return commitError(err)
	}
	tx.Ran.Commit()
	tx.end()
	return nil
}

// Rollback implements sqldb.Tx. After some errors (a full disk, an interrupt) SQLite has
// already rolled back, and the statement has no effect.
func (tx *writeTx) Rollback() {
	if tx.done {
		return
	}
	ctx, cancel := sqldb.RollbackContext()
	defer cancel()
	_, _ = tx.w.ExecContext(ctx, "rollback")
	tx.end()
}

func (tx *writeTx) end() {
	tx.done = true
	tx.w.turn <- struct{}{}
}

// commitError returns an *sqldb.Uncertain if the commit may be on disk. That is the case
// if the commit failed while it was being synced. It is also the case if the commit
// exceeded its timeout, because the driver then does not report the result. Otherwise
// SQLite has refused the commit.
func commitError(err error) error {
	if isIOError(err) || errors.Is(err, context.DeadlineExceeded) {
		return &sqldb.Uncertain{Err: err}
	}
	return translate(err)
}
