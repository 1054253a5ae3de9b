package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// minConns is the minimum size of a caller's pool: one connection for a transaction of the
// application, and one for heartbeats.
const minConns = 2

// Borrow returns a DB that uses the connections of the caller's pool. Close leaves the pool
// open. Settings of sessions are not changed.
func Borrow(ctx context.Context, pool *pgxpool.Pool) (*DB, error) {
	return borrow(ctx, newPgxSource(pool, nil), pool)
}

// BorrowSQL is Borrow for a pool of database/sql whose driver is pgx.
func BorrowSQL(ctx context.Context, db *sql.DB) (*DB, error) {
	return borrow(ctx, stdSource{db: db}, nil)
}

// IsPgx reports whether a connection of database/sql is one of pgx.
func IsPgx(conn any) bool {
	_, _, err := connOf(conn)
	return err == nil
}

func borrow(ctx context.Context, from source, pool *pgxpool.Pool) (*DB, error) {
	size := int(from.usage("").Max)
	if size > 0 && size < minConns {
		return nil, fault.Invalidf("pool", "must have at least %d connections, got %d: one for a transaction, and one for heartbeats", minConns, size)
	}
	if size == 0 { // database/sql has no limit
		size = defaultConns
	}
	db := &DB{main: from, urgent: from, pool: pool}
	db.limitWriters(size)
	if err := db.check(ctx); err != nil {
		return nil, fmt.Errorf("use the application's pool: %w", err)
	}
	if err := db.readPlanner(ctx); err != nil {
		return nil, fmt.Errorf("use the application's pool: %w", translate(err))
	}
	return db, nil
}

// readPlanner reads the planner's settings of the pool. Transactions of the engine change
// them locally, and restore them before a statement of the application.
func (db *DB) readPlanner(ctx context.Context) error {
	change := make([]setting, len(steering))
	restore := make([]setting, len(steering))
	err := with(ctx, db.main, func(conn *pgx.Conn) error {
		for i, s := range steering {
			change[i], restore[i] = s, setting{name: s.name}
			if err := conn.QueryRow(ctx, "select current_setting($1)", s.name).Scan(&restore[i].value); err != nil {
				return err
			}
		}
		return nil
	})
	db.steered, db.unsteered = []sqldb.Stmt{setLocal(change)}, []sqldb.Stmt{setLocal(restore)}
	return err
}
