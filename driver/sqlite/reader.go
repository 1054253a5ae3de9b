package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

// readers are the connections for reading. Waiting for a free connection ends when the
// context is cancelled.
type readers struct {
	db   *sql.DB
	ran  *sqldb.Counter
	free chan *conn // nil represents a connection that is not open
	// closed is closed by the method close.
	closed chan struct{}

	open, waits, waited atomic.Int64
}

func newReaders(db *sql.DB, ran *sqldb.Counter) *readers {
	r := &readers{db: db, ran: ran, free: make(chan *conn, maxReaders), closed: make(chan struct{})}
	for range maxReaders {
		r.free <- nil
	}
	return r
}

// begin starts a snapshot.
func (r *readers) begin(ctx context.Context) (sqldb.Tx, error) {
	c, err := r.take(ctx)
	if err != nil {
		return nil, fmt.Errorf("get read connection: %w", translate(err))
	}
	if _, err := c.ExecContext(ctx, "begin"); err != nil {
		r.drop(c) // the transaction may have started, see writer.begin
		return nil, translate(err)
	}
	return &readTx{StdRunner: sqldb.StdRunner{Conn: c, Dialect: dialect, Ran: r.ran}, readers: r, conn: c}, nil
}

func (r *readers) take(ctx context.Context) (*conn, error) {
	c, err := r.wait(ctx)
	if err != nil || c != nil {
		return c, err
	}
	opened, err := r.db.Conn(ctx)
	if err != nil {
		r.free <- nil
		return nil, err
	}
	r.open.Add(1)
	return newConn(opened), nil
}

func (r *readers) wait(ctx context.Context) (*conn, error) {
	select {
	case c := <-r.free:
		return c, nil
	default:
	}
	from := clock.System.Now()
	defer func() {
		r.waits.Add(1)
		r.waited.Add(int64(clock.System.Now().Sub(from)))
	}()
	select {
	case c := <-r.free:
		return c, nil
	case <-r.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// drop discards a connection that must not be used again, and makes room for a new one.
func (r *readers) drop(c *conn) {
	c.discard()
	r.open.Add(-1)
	r.free <- nil
}

func (r *readers) pool() sqldb.Pool {
	return sqldb.Pool{
		Name: "read", Max: maxReaders, Open: r.open.Load(), InUse: maxReaders - int64(len(r.free)),
		Waits: r.waits.Load(), Waited: time.Duration(r.waited.Load()),
	}
}

// close closes the connections. Connections that are still in use are closed with their
// database.
func (r *readers) close() error {
	close(r.closed)
	var errs []error
	for range maxReaders {
		select {
		case c := <-r.free:
			if c != nil {
				errs = append(errs, c.close())
			}
		default:
		}
	}
	return errors.Join(errs...)
}

// readTx is a snapshot on one of the readers.
type readTx struct {
	sqldb.StdRunner
	readers *readers
	conn    *conn
	done    bool
}

// Run implements sqldb.Runner. The connection outlives the snapshot, so statements after
// its end must be refused.
func (tx *readTx) Run(ctx context.Context, stmts ...sqldb.Stmt) error {
	if tx.done {
		return sqldb.ErrDone
	}
	return tx.StdRunner.Run(ctx, stmts...)
}

// Query implements sqldb.Runner.
func (tx *readTx) Query(ctx context.Context, query string, args ...any) (sqldb.Rows, error) {
	if tx.done {
		return nil, sqldb.ErrDone
	}
	return tx.StdRunner.Query(ctx, query, args...)
}

// Commit implements sqldb.Tx: a snapshot has nothing to commit.
func (tx *readTx) Commit(ctx context.Context, last ...sqldb.Stmt) error {
	if tx.done {
		return sqldb.ErrDone
	}
	err := tx.Run(ctx, last...)
	tx.Rollback()
	return err
}

// Rollback implements sqldb.Tx.
func (tx *readTx) Rollback() {
	if tx.done {
		return
	}
	tx.done = true
	ctx, cancel := sqldb.RollbackContext()
	defer cancel()
	if _, err := tx.conn.ExecContext(ctx, "rollback"); err != nil {
		tx.readers.drop(tx.conn) // a connection inside a transaction must not be reused
		return
	}
	tx.readers.free <- tx.conn
}
