// Package postgres opens PostgreSQL 14 or later through native pgx.
//
// A list of statements takes one round trip. BEGIN is sent with the first list and COMMIT
// with the last. Transactions do not depend on the state of the session, so a transaction
// pooler can be used.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

const (
	// defaultConns is the size of the pool if the URL does not set pool_max_conns.
	defaultConns = 16
	// urgentConns is the size of an additional pool; see sqldb.Urgent.
	urgentConns = 2
	minVersion  = 140000
)

// DB is a pool of connections to a PostgreSQL database.
type DB struct {
	pool, urgent *pgxpool.Pool
	ran          sqldb.Counter
}

// Open connects to the database of a postgres:// or postgresql:// URL. It supports all
// parameters of libpq and pgxpool.
func Open(ctx context.Context, dsn string) (*DB, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fault.Invalidf("database URL", "is not a PostgreSQL URL") // the error may quote the password
	}
	if !hasParam(dsn, "pool_max_conns") {
		config.MaxConns = defaultConns
	}
	db, err := connect(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open postgres database: %w", err)
	}
	return db, nil
}

func connect(ctx context.Context, config *pgxpool.Config) (*DB, error) {
	config.AfterConnect = steer
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	few := config.Copy()
	few.MaxConns, few.MinConns, few.MinIdleConns = urgentConns, 0, 0
	urgent, err := pgxpool.NewWithConfig(ctx, few)
	if err != nil {
		pool.Close()
		return nil, err
	}
	db := &DB{pool: pool, urgent: urgent}
	if err := db.check(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func hasParam(dsn, name string) bool {
	u, err := url.Parse(dsn)
	return err == nil && u.Query().Has(name)
}

// check returns an error if the server is too old, or if it acknowledges commits before
// they are on disk. Perdure could not keep its guarantees on such servers.
func (db *DB) check(ctx context.Context) error {
	var version int
	var sync string
	err := db.pool.QueryRow(ctx, "select current_setting('server_version_num')::int, current_setting('synchronous_commit')").Scan(&version, &sync)
	if err != nil {
		return translate(err)
	}
	if version < minVersion {
		return fmt.Errorf("server version %d.%d is too old, 14 or later is needed", version/10000, version%100)
	}
	if sync == "off" {
		return errors.New("synchronous_commit is off: acknowledged work could be lost; turn it on for this role")
	}
	return nil
}

// Dialect implements sqldb.DB.
func (db *DB) Dialect() sqldb.Dialect { return dialect }

// Pool returns the pool, for LISTEN and COPY.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Pools implements sqldb.Pooled.
func (db *DB) Pools() []sqldb.Pool {
	return []sqldb.Pool{usage("main", db.pool), usage("urgent", db.urgent)}
}

func usage(name string, pool *pgxpool.Pool) sqldb.Pool {
	s := pool.Stat()
	return sqldb.Pool{
		Name: name, Max: int64(s.MaxConns()), Open: int64(s.TotalConns()), InUse: int64(s.AcquiredConns()),
		Waits: s.EmptyAcquireCount(), Waited: s.EmptyAcquireWaitTime(),
	}
}

// Ran implements sqldb.Counted.
func (db *DB) Ran() sqldb.Counts { return db.ran.Counts() }

// Begin implements sqldb.DB.
func (db *DB) Begin(ctx context.Context, access sqldb.Access) (sqldb.Tx, error) {
	pool := db.pool
	if access == sqldb.Urgent || access == sqldb.Claim {
		pool = db.urgent
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("get a connection: %w", translate(err))
	}
	begin := beginning(access)
	if plansOf(conn.Conn()).replan(time.Now()) {
		begin = append(begin, sqldb.Exec("discard plans"))
	}
	return &tx{runner: runner{conn: conn.Conn()}, conn: conn, begin: begin, ran: &db.ran}, nil
}

// Close implements sqldb.DB.
func (db *DB) Close() error {
	db.pool.Close()
	db.urgent.Close()
	return nil
}

// idleTimeout is the time after which the server ends a transaction whose client has
// stopped between two statements. Such a transaction may hold the lock of the outbox
// counter and block every other writer.
const idleTimeout = 30 * time.Second

// beginning returns the statements that start a transaction. The settings are local to
// the transaction, so that the session does not keep them.
func beginning(access sqldb.Access) []sqldb.Stmt {
	if access == sqldb.Read {
		return append([]sqldb.Stmt{sqldb.Exec("begin isolation level repeatable read read only")}, unsteered...)
	}
	stmts := []sqldb.Stmt{
		sqldb.Exec("begin isolation level read committed"),
		sqldb.Exec(fmt.Sprintf("set local idle_in_transaction_session_timeout = %d", idleTimeout.Milliseconds())),
	}
	if access == sqldb.Claim {
		stmts = append(stmts, sqldb.Exec("set local synchronous_commit = off"))
	}
	return stmts
}
