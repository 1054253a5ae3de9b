// Package sqlite opens SQLite databases, inside the process, without cgo.
//
// One connection writes (BEGIN IMMEDIATE, WAL, synchronous=FULL), and a few others read.
// Readers and the writer do not wait for each other. Times are stored as microseconds
// since 1970 in UTC.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

const (
	maxReaders = 4
	// busySlice is the time for which SQLite itself waits for another process's lock. The
	// driver repeats this wait, because the complete wait must end when the context is
	// cancelled.
	busySlice = 50 * time.Millisecond
	// busyTotal bounds the wait for another process's lock.
	busyTotal = 10 * time.Second
)

// DB is an open SQLite database.
type DB struct {
	read    *sql.DB // for readers, with one additional connection for Diagnose
	readers *readers
	write   *sql.DB
	writer  *writer
	scratch string // directory of a :memory: database, removed on Close
	relaxed string // the reason why commits may be lost; see sqldb.Dialect
	ran     sqldb.Counter

	closing sync.Once
	closed  error // the result of Close
}

// Open opens the database that dsn names: "sqlite:path/to/file.db",
// "sqlite:///absolute/file.db" or "sqlite::memory:", with the optional
// parameter synchronous=full (default), normal or off.
//
// A :memory: database is private to the returned DB and is removed when the DB is closed.
// It is stored in files in a temporary directory (in memory if the system has such a
// directory), so that it behaves like any other database.
func Open(ctx context.Context, dsn string) (*DB, error) {
	path, sync, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	db := &DB{}
	if path == ":memory:" {
		if db.scratch, err = scratchDir(); err != nil {
			return nil, fmt.Errorf("open in-memory database: %w", err)
		}
		path, sync = filepath.Join(db.scratch, "memory.db"), "off"
	} else if sync != "full" {
		db.relaxed = "synchronous is " + sync
	}
	if err := db.open(ctx, path, sync); err != nil {
		return nil, errors.Join(fmt.Errorf("open sqlite database %s: %w", path, err), db.Close())
	}
	return db, nil
}

func (db *DB) open(ctx context.Context, path, sync string) error {
	var err error
	if db.write, err = sql.Open("sqlite", fileURI(path, sync, false)); err != nil {
		return err
	}
	db.write.SetMaxOpenConns(1)
	conn, err := connect(ctx, db.write)
	if err != nil {
		return err
	}
	if err := checkVersion(ctx, conn); err != nil {
		return errors.Join(err, conn.Close())
	}
	db.writer = newWriter(conn, path, sync == "full", &db.ran)
	if db.read, err = sql.Open("sqlite", fileURI(path, sync, true)); err != nil {
		return err
	}
	db.read.SetMaxOpenConns(maxReaders + 1)
	db.read.SetMaxIdleConns(maxReaders + 1)
	db.readers = newReaders(db.read, &db.ran)
	return db.read.PingContext(ctx)
}

// connect opens the connection of the writer. Setting the journal mode of a new file
// requires its lock, which another starting process may hold. connect then retries for up
// to busyTotal.
func connect(ctx context.Context, db *sql.DB) (*sql.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, busyTotal)
	defer cancel()
	for {
		conn, err := db.Conn(ctx)
		if err == nil || !isBusy(err) || ctx.Err() != nil {
			return conn, translate(err)
		}
	}
}

// checkVersion returns an error if this version of SQLite can corrupt a WAL database when
// two connections write and checkpoint concurrently (fixed in 3.51.3).
func checkVersion(ctx context.Context, conn *sql.Conn) error {
	var version string
	if err := conn.QueryRowContext(ctx, "select sqlite_version()").Scan(&version); err != nil {
		return translate(err)
	}
	return supported(version)
}

func supported(version string) error {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return fmt.Errorf("parse version %q: %w", version, err)
	}
	if major*1_000_000+minor*1_000+patch < 3_051_003 {
		return fmt.Errorf("SQLite must be 3.51.3 or later, got %s: older versions can corrupt the write-ahead log", version)
	}
	return nil
}

// Dialect implements sqldb.DB.
func (db *DB) Dialect() sqldb.Dialect {
	d := dialect
	d.Relaxed = db.relaxed
	return d
}

// Pools implements sqldb.Pooled. There is one writer. Transactions that wait for it are
// not counted.
func (db *DB) Pools() []sqldb.Pool {
	writer := sqldb.Pool{Name: "write", Max: 1, Open: 1, InUse: 1 - int64(len(db.writer.turn))}
	return []sqldb.Pool{writer, db.readers.pool()}
}

// Ran implements sqldb.Counted.
func (db *DB) Ran() sqldb.Counts { return db.ran.Counts() }

// Begin implements sqldb.DB.
func (db *DB) Begin(ctx context.Context, access sqldb.Access) (sqldb.Tx, error) {
	if access != sqldb.Read && access != sqldb.Look {
		return db.writer.begin(ctx, access)
	}
	return db.readers.begin(ctx)
}

// Exclusively implements sqldb.DB. It holds the write lock, because SQLite has no other
// lock.
func (db *DB) Exclusively(ctx context.Context, fn func(sqldb.Runner) error) error {
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

// Close implements sqldb.DB. It waits up to closeWait (5 s) for the transaction that
// holds the writer. Transactions that start later fail. A second call does nothing.
func (db *DB) Close() error {
	db.closing.Do(func() { db.closed = db.close() })
	return db.closed
}

func (db *DB) close() error {
	var errs []error
	if db.readers != nil {
		errs = append(errs, db.readers.close())
	}
	if db.read != nil {
		errs = append(errs, db.read.Close())
	}
	if db.writer != nil {
		errs = append(errs, db.writer.close())
	}
	if db.write != nil {
		errs = append(errs, db.write.Close())
	}
	if db.scratch != "" {
		errs = append(errs, os.RemoveAll(db.scratch))
	}
	return errors.Join(errs...)
}

func parse(dsn string) (path, sync string, err error) {
	rest, ok := strings.CutPrefix(dsn, "sqlite:")
	if !ok {
		return "", "", fault.Invalidf("database URL", "must start with sqlite:")
	}
	path, query, _ := strings.Cut(rest, "?")
	path = strings.TrimPrefix(path, "//")
	if path == "" {
		return "", "", fault.Invalidf("database URL", "must name a file, such as sqlite:app.db or sqlite::memory:")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", "", fault.Invalidf("database URL", "must have a valid query")
	}
	sync = "full"
	for key := range values {
		if key != "synchronous" {
			return "", "", fault.Invalidf("database URL", "must not have the unknown parameter %q", key)
		}
		sync = strings.ToLower(values.Get(key))
	}
	switch sync {
	case "full", "normal", "off":
		return path, sync, nil
	}
	return "", "", fault.Invalidf("database URL", "must have synchronous=full, normal or off, got %q", sync)
}

// fileURI puts the pragmas into the connection string, so that every pooled
// connection has them.
func fileURI(path, sync string, readOnly bool) string {
	q, wait := url.Values{}, busySlice
	if readOnly {
		wait = busyTotal
		q.Add("_pragma", "query_only(1)")
	}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds()))
	q.Add("_pragma", "journal_mode(wal)")
	q.Add("_pragma", "synchronous("+sync+")")
	q.Add("_pragma", "foreign_keys(1)")
	q.Add("_pragma", "journal_size_limit(67108864)")
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

func scratchDir() (string, error) {
	if dir, err := os.MkdirTemp("/dev/shm", "perdure-"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "perdure-")
}
