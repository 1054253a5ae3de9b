package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

// Borrowed is a SQLite database whose connections belong to the caller's pool.
type Borrowed struct {
	pool *sql.DB
	path string
	// turn has one token, for the writer. The pool may have more connections, but SQLite has
	// one writer, and this process's own writers wait for each other here.
	turn  chan struct{}
	stall stall
	ran   sqldb.Counter
}

// Borrow returns a DB that uses the connections of the caller's pool. Close leaves the pool
// open. No setting of the file is changed, and query_only of a connection only while it has
// a snapshot. Borrow returns an error if a setting breaks a guarantee.
func Borrow(ctx context.Context, pool *sql.DB) (*Borrowed, error) {
	db := &Borrowed{pool: pool, turn: make(chan struct{}, 1)}
	db.turn <- struct{}{}
	if err := db.check(ctx); err != nil {
		return nil, fmt.Errorf("use the application's pool: %w", err)
	}
	return db, nil
}

func (db *Borrowed) check(ctx context.Context) error {
	conn, err := db.pool.Conn(ctx)
	if err != nil {
		return translate(err)
	}
	defer conn.Close()
	if err := checkVersion(ctx, conn); err != nil {
		return err
	}
	var journal string
	var sync, foreign int
	for query, to := range map[string]any{"pragma journal_mode": &journal, "pragma synchronous": &sync, "pragma foreign_keys": &foreign} {
		if err := conn.QueryRowContext(ctx, query).Scan(to); err != nil {
			return fmt.Errorf("%s: %w", query, translate(err))
		}
	}
	var seq int
	var name string
	if err := conn.QueryRowContext(ctx, "pragma database_list").Scan(&seq, &name, &db.path); err != nil {
		return fmt.Errorf("read name of the file: %w", translate(err))
	}
	const full = 2
	switch {
	case journal != "wal":
		return fault.Invalidf("pool", "must open the file with journal_mode=wal, got %s: readers and the writer would wait for each other", journal)
	case sync < full:
		return fault.Invalidf("pool", "must open connections with synchronous=full: acknowledged work could be lost in a power failure")
	case foreign == 0:
		return fault.Invalidf("pool", "must open connections with foreign_keys=on: references would not be checked")
	}
	return nil
}

// Dialect implements sqldb.DB.
func (db *Borrowed) Dialect() sqldb.Dialect { return dialect }

// Pools implements sqldb.Pooled.
func (db *Borrowed) Pools() []sqldb.Pool { return []sqldb.Pool{sqldb.StdPool("main", db.pool)} }

// Ran implements sqldb.Counted.
func (db *Borrowed) Ran() sqldb.Counts { return db.ran.Counts() }

// Close implements sqldb.DB. The pool stays open.
func (db *Borrowed) Close() error { return nil }

// CounterHolder implements sqldb.Watched.
func (db *Borrowed) CounterHolder(context.Context) (string, error) { return holderOf(db.path), nil }

// Begin implements sqldb.DB.
func (db *Borrowed) Begin(ctx context.Context, access sqldb.Access) (sqldb.Tx, error) {
	t := &borrowedTx{db: db, write: access != sqldb.Read && access != sqldb.Look}
	if t.write {
		select {
		case <-db.turn:
		case <-ctx.Done():
			return nil, &fault.Locked{Lock: "database", Holder: cmp.Or(holderOf(db.path), ownHolder), Err: ctx.Err()}
		}
	}
	conn, err := db.pool.Conn(ctx)
	if err != nil {
		t.leave()
		return nil, fmt.Errorf("get connection: %w", translate(err))
	}
	t.conn = conn
	t.StdRunner = sqldb.StdRunner{Conn: conn, Dialect: dialect, Ran: &db.ran}
	if t.write {
		err = db.beginImmediate(ctx, conn)
	} else {
		err = beginReading(ctx, conn)
	}
	if err != nil {
		t.Rollback() // it may have started, see writer.begin
		if t.write && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = &fault.Locked{Lock: "database", Holder: holderOf(db.path), Err: err}
		}
		return nil, err
	}
	return t, nil
}

// busyPause is the pause between two attempts to take the write lock, if the busy timeout of
// the connection is shorter.
const busyPause = 5 * time.Millisecond

// beginImmediate takes SQLite's write lock, which another process may hold. The busy
// timeout of the connection may be zero.
func (db *Borrowed) beginImmediate(ctx context.Context, conn sqldb.StdConn) error {
	waiting, cancel := context.WithTimeout(ctx, busyTotal)
	defer cancel()
	waiting, stop := db.stall.watch(waiting, db.path)
	defer stop()
	for {
		_, err := conn.ExecContext(waiting, "begin immediate")
		if err == nil {
			db.stall.end()
			return nil
		}
		var locked *fault.Locked
		switch {
		case errors.As(context.Cause(waiting), &locked):
			return locked
		case ctx.Err() != nil && (isBusy(err) || errors.Is(err, ctx.Err())):
			return fmt.Errorf("wait for another process: %w", ctx.Err())
		case waiting.Err() != nil:
			return &sqldb.Transient{Err: fmt.Errorf("wait for another process: %v", err)} //nolint:errorlint // it is not the caller's context
		case !isBusy(err):
			return translate(err)
		}
		timer := clock.System.NewTimer(busyPause)
		select {
		case <-timer.C():
		case <-waiting.Done():
			timer.Stop()
		}
	}
}

// beginReading starts a snapshot that refuses writes.
func beginReading(ctx context.Context, conn sqldb.StdConn) error {
	for _, query := range []string{"pragma query_only = 1", "begin"} {
		if _, err := conn.ExecContext(ctx, query); err != nil {
			return translate(err)
		}
	}
	return nil
}

// Exclusively implements sqldb.DB.
func (db *Borrowed) Exclusively(ctx context.Context, fn func(sqldb.Runner) error) error {
	tx, err := db.Begin(ctx, sqldb.Write)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// ours reports whether the pool uses the same library as this package. Two libraries must
// not open the same file in one process: SQLite's locks would not protect it.
func (db *Borrowed) ours() bool {
	t := reflect.TypeOf(db.pool.Driver())
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t != nil && t.PkgPath() == "modernc.org/sqlite"
}

// Watch implements wake.Watcher with a connection of its own, because data versions of
// different connections cannot be compared. Commits of this process are reported too. With
// another library than modernc.org/sqlite, commits of other processes are not watched.
func (db *Borrowed) Watch(ctx context.Context, changed func()) error {
	if !db.ours() {
		<-ctx.Done()
		return ctx.Err()
	}
	own, err := sql.Open("sqlite", fileURI(db.path, "full", true))
	if err != nil {
		return err
	}
	defer own.Close()
	own.SetMaxOpenConns(1)
	version := func(ctx context.Context) (v int64, err error) {
		err = own.QueryRowContext(ctx, "pragma data_version").Scan(&v)
		return v, translate(err)
	}
	return watch(ctx, version, changed)
}

// Diagnose implements sqldb.Diagnoser.
func (db *Borrowed) Diagnose(ctx context.Context) ([]sqldb.Diagnosis, error) {
	return (&DB{read: db.pool}).Diagnose(ctx)
}

// borrowedTx is a transaction on a connection of the caller's pool.
type borrowedTx struct {
	sqldb.StdRunner
	db    *Borrowed
	conn  *sql.Conn
	write bool
	done  bool
}

// Run implements sqldb.Runner.
func (t *borrowedTx) Run(ctx context.Context, stmts ...sqldb.Stmt) error {
	if t.done {
		return sqldb.ErrDone
	}
	return t.StdRunner.Run(ctx, stmts...)
}

// Query implements sqldb.Runner.
func (t *borrowedTx) Query(ctx context.Context, query string, args ...any) (sqldb.Rows, error) {
	if t.done {
		return nil, sqldb.ErrDone
	}
	return t.StdRunner.Query(ctx, query, args...)
}

// Commit implements sqldb.Tx. A snapshot has nothing to commit.
func (t *borrowedTx) Commit(ctx context.Context, last ...sqldb.Stmt) error {
	if t.done {
		return sqldb.ErrDone
	}
	err := t.Run(ctx, last...)
	if !t.write {
		t.Rollback()
	}
	if !t.write || err != nil {
		return err
	}
	ctx, cancel := sqldb.CommitContext(ctx, commitTimeout)
	defer cancel()
	if _, err := t.conn.ExecContext(ctx, "commit"); err != nil {
		t.Rollback()
		return commitError(err)
	}
	t.Ran.Commit()
	t.end()
	return nil
}

// Rollback implements sqldb.Tx. A connection that may still be inside a transaction does not
// return to the pool.
func (t *borrowedTx) Rollback() {
	if t.done {
		return
	}
	ctx, cancel := sqldb.RollbackContext()
	defer cancel()
	_, err := t.conn.ExecContext(ctx, "rollback")
	if err != nil && strings.Contains(err.Error(), "no transaction is active") {
		err = nil
	}
	if err == nil && !t.write {
		_, err = t.conn.ExecContext(ctx, "pragma query_only = 0")
	}
	if err != nil {
		_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	t.end()
}

func (t *borrowedTx) end() {
	t.done = true
	_ = t.conn.Close()
	t.leave()
}

// leave returns the turn of a writer.
func (t *borrowedTx) leave() {
	if t.write {
		t.db.turn <- struct{}{}
	}
}

// Driver implements sqldb.Native.
func (t *borrowedTx) Driver(context.Context) (driver.Conn, error) {
	if t.done {
		return nil, sqldb.ErrDone
	}
	return rawOf(t.conn)
}

// Enter implements sqldb.Native.
func (t *borrowedTx) Enter(context.Context) error { return nil }

// State implements sqldb.Native. The client does not know it.
func (t *borrowedTx) State() sqldb.State { return stateOf(t.done) }

// Use implements sqldb.Native.
func (t *borrowedTx) Use() (done func()) { return func() {} }
