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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

const (
	// defaultConns is the size of the pool if the URL does not set pool_max_conns.
	defaultConns = 20
	// urgentConns is the size of an additional pool; see sqldb.Urgent.
	urgentConns = 2
	// groupConns is the number of connections of the pool that Writes do not use.
	groupConns = 8
	minVersion = 140000
)

// DB is a pool of connections to a PostgreSQL database.
type DB struct {
	// main provides most connections, urgent those of sqldb.Urgent and sqldb.Claim. They are
	// the same if the pool is the caller's.
	main, urgent source
	// pool is the pool of main; nil if it is of database/sql.
	pool  *pgxpool.Pool
	owned []*pgxpool.Pool // closed by Close
	ran   sqldb.Counter
	// steered are statements that change the planner's settings in a transaction, if those of
	// the session are not changed. unsteered restore them.
	steered, unsteered []sqldb.Stmt
	// room has a permission for each connection that Writes may use. The other connections
	// of the pool are for groups and for reads.
	room chan struct{}
}

// Open connects to the database of a postgres:// or postgresql:// URL. It supports all
// parameters of libpq and pgxpool.
func Open(ctx context.Context, dsn string) (*DB, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fault.Invalidf("database URL", "must be a PostgreSQL URL") // the error may quote the password
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
	var lost losses
	config.ShouldPing = lost.shouldPing
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
	db := &DB{main: newPgxSource(pool, &lost), urgent: newPgxSource(urgent, &lost), pool: pool, owned: []*pgxpool.Pool{pool, urgent}, unsteered: unsteered}
	db.limitWriters(int(config.MaxConns))
	if err := db.check(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// limitWriters sets the number of connections of a pool that Writes may use.
func (db *DB) limitWriters(conns int) {
	db.room = make(chan struct{}, writers(conns))
	for range cap(db.room) {
		db.room <- struct{}{}
	}
}

// writers returns the number of connections that Writes may use: a Write may wait for a
// lock, and one locked row must not use up the pool.
func writers(conns int) int { return max(conns-groupConns, (conns+1)/2) }

func hasParam(dsn, name string) bool {
	u, err := url.Parse(dsn)
	return err == nil && u.Query().Has(name)
}

// check returns an error if the server is too old, or if it acknowledges commits before
// they are on disk. Perdure could not keep its guarantees on such servers.
func (db *DB) check(ctx context.Context) error {
	var version int
	var sync string
	err := with(ctx, db.main, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "select current_setting('server_version_num')::int, current_setting('synchronous_commit')").Scan(&version, &sync)
	})
	if err != nil {
		return translate(err)
	}
	if version < minVersion {
		return fmt.Errorf("PostgreSQL must be 14 or later, got %d.%d", version/10000, version%100)
	}
	if sync == "off" {
		return errors.New("synchronous_commit must not be off for this role: acknowledged work could be lost")
	}
	return nil
}

// Dialect implements sqldb.DB.
func (db *DB) Dialect() sqldb.Dialect { return dialect }

// Pool returns the pool, for LISTEN and COPY.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Pools implements sqldb.Pooled.
func (db *DB) Pools() []sqldb.Pool {
	if len(db.owned) == 0 { // main and urgent are the same
		return []sqldb.Pool{db.main.usage("main")}
	}
	return []sqldb.Pool{db.main.usage("main"), db.urgent.usage("urgent")}
}

// Ran implements sqldb.Counted.
func (db *DB) Ran() sqldb.Counts { return db.ran.Counts() }

// Begin implements sqldb.DB.
func (db *DB) Begin(ctx context.Context, access sqldb.Access) (sqldb.Tx, error) {
	t := &tx{ran: &db.ran, unsteered: db.unsteered}
	from := db.main
	switch access {
	case sqldb.Urgent, sqldb.Claim:
		from = db.urgent
	case sqldb.Write:
		select {
		case <-db.room:
			t.room = db.room
		case <-ctx.Done():
			return nil, fmt.Errorf("get connection: %w", ctx.Err())
		}
	}
	conn, err := from.acquire(ctx, access == sqldb.Write || access == sqldb.Read || access == sqldb.Look)
	if err != nil {
		if t.room != nil {
			t.room <- struct{}{}
		}
		return nil, fmt.Errorf("get connection: %w", translate(err))
	}
	t.begin = db.beginning(access)
	if plansOf(conn.Conn).replan(time.Now()) {
		t.begin = append(t.begin, sqldb.Exec("discard plans"))
	}
	t.runner, t.conn = newRunner(conn.Conn, conn.Conn), conn
	if access == sqldb.Write {
		t.alive.Start(func() { t.ping(ctx) })
	}
	return t, nil
}

// Close implements sqldb.DB. A pool of the caller stays open.
func (db *DB) Close() error {
	for _, pool := range db.owned {
		pool.Close()
	}
	return nil
}

// lentLimit is the limit of a Write whose connection the application uses itself: nothing can
// be sent on it while a function of the application pauses.
const lentLimit = "set local idle_in_transaction_session_timeout = '30s'"

// ping keeps the server from ending a Write whose process is alive.
func (t *tx) ping(ctx context.Context) {
	if t.begin == nil && !t.conn.IsClosed() {
		_ = t.conn.Ping(ctx) // an error is found by the next statement
	}
}

// beginning returns the statements that start a transaction. The settings are local to
// the transaction, so that the session does not keep them.
func (db *DB) beginning(access sqldb.Access) []sqldb.Stmt {
	const snapshot = "begin isolation level repeatable read read only"
	switch access {
	case sqldb.Look:
		return append([]sqldb.Stmt{sqldb.Exec(snapshot), sqldb.Exec(inOrder)}, db.steered...)
	case sqldb.Read:
		if len(db.steered) > 0 { // the session has the planner's own settings
			return []sqldb.Stmt{sqldb.Exec(snapshot)}
		}
		return append([]sqldb.Stmt{sqldb.Exec(snapshot)}, db.unsteered...)
	}
	stmts := append([]sqldb.Stmt{
		sqldb.Exec("begin isolation level read committed"),
		sqldb.Exec(fmt.Sprintf("set local idle_in_transaction_session_timeout = %d", sqldb.ClientSilence.Milliseconds())),
	}, db.steered...)
	if access == sqldb.Urgent || access == sqldb.Claim {
		stmts = append(stmts, sqldb.Exec(inOrder))
	}
	if access == sqldb.Claim {
		stmts = append(stmts, sqldb.Exec("set local synchronous_commit = off"))
	}
	return stmts
}
