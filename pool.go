package perdure

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perdure/perdure/driver/mysql"
	"github.com/perdure/perdure/driver/postgres"
	"github.com/perdure/perdure/driver/sqlite"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// OpenPgx opens an engine on the application's own pool, and brings Perdure's tables up to
// date like Open. The engine uses a connection of the pool for each transaction, and opens
// one connection of its own, for wake-ups; see Options.NoListener.
//
// The pool belongs to the caller: Close leaves it open, and connections return to it
// without changed settings. The caller must close the engine before the pool. All
// QueryExecModes are supported.
//
// The pool must have at least 2 connections; a smaller one is a *fault.Invalid. It should
// have at least 4 more than the application itself uses at a time: heartbeats of running
// work share them, and a lease expires if a heartbeat gets no connection in time. While
// code of the application holds a connection of the pool, it must not wait for Update or
// View unless there is another connection: use JoinPgx, or Tx.Pgx.
func OpenPgx(ctx context.Context, pool *pgxpool.Pool, options *Options) (*Engine, error) {
	if pool == nil {
		return nil, fault.Invalidf("pool", "must not be nil")
	}
	return open(ctx, options, func(ctx context.Context) (sqldb.DB, error) { return opened(postgres.Borrow(ctx, pool)) })
}

// OpenSQL is OpenPgx for the application's *sql.DB. The database is found by asking it:
//
//   - PostgreSQL, through the driver of pgx (github.com/jackc/pgx/v5/stdlib). The engine uses
//     the connection of pgx inside it.
//   - MySQL and MariaDB, through github.com/go-sql-driver/mysql. No parameters are required.
//   - SQLite, through modernc.org/sqlite or github.com/mattn/go-sqlite3. The connections must
//     have journal_mode=wal, synchronous=full and foreign_keys=on. One connection is enough.
//     Commits of other processes wake the engine only with modernc.org/sqlite.
//
// OpenSQL returns a *fault.Invalid if the driver is another one, if the pool is too small, or
// if a setting of its connections breaks a guarantee. It does not change such settings.
func OpenSQL(ctx context.Context, db *sql.DB, options *Options) (*Engine, error) {
	if db == nil {
		return nil, fault.Invalidf("database", "must not be nil")
	}
	return open(ctx, options, func(ctx context.Context) (sqldb.DB, error) { return borrow(ctx, db) })
}

// borrow returns the database behind a pool.
func borrow(ctx context.Context, db *sql.DB) (sqldb.DB, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("get connection: %w", err)
	}
	defer conn.Close()
	pgx, name := false, ""
	err = conn.Raw(func(c any) error {
		pgx, name = postgres.IsPgx(c), fmt.Sprintf("%T", c)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("examine connection: %w", err)
	}
	if pgx {
		_ = conn.Close() // the pool may be small
		return opened(postgres.BorrowSQL(ctx, db))
	}
	var version string
	if conn.QueryRowContext(ctx, "select sqlite_version()").Scan(&version) == nil {
		_ = conn.Close()
		return opened(sqlite.Borrow(ctx, db))
	}
	if err := conn.QueryRowContext(ctx, "select version()").Scan(&version); err != nil {
		return nil, fmt.Errorf("find out the database: %w", err)
	}
	_ = conn.Close()
	switch {
	case strings.HasPrefix(version, "PostgreSQL"):
		return nil, fault.Invalidf("database", "must use the driver of pgx for PostgreSQL, got a connection of type %s: open a pool with github.com/jackc/pgx/v5/stdlib, or open the engine with a URL and join your transactions with JoinSQL", name)
	case version != "" && version[0] >= '0' && version[0] <= '9': // 8.0.36, 11.4.2-MariaDB
		return opened(mysql.Borrow(ctx, db))
	}
	return nil, fault.Invalidf("database", "must be PostgreSQL, MySQL, MariaDB or SQLite, got version %q", version)
}
