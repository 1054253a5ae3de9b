package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

// maxSkew is the maximum difference between the clocks of the process and the server. The
// server's clock decides when work is due. The process uses its own clock only to wake
// up.
const maxSkew = 5 * time.Second

// Diagnose implements sqldb.Diagnoser.
func (db *DB) Diagnose(ctx context.Context) ([]sqldb.Diagnosis, error) {
	var version, sync string
	var port, limit, asked int
	var now time.Time
	before := clock.System.Now()
	err := with(ctx, db.main, func(conn *pgx.Conn) error {
		asked = int(conn.Config().Port)
		return conn.QueryRow(ctx, `select current_setting('server_version'), current_setting('synchronous_commit'),
			coalesce(inet_server_port(), 0), current_setting('max_connections')::int, clock_timestamp()`).Scan(&version, &sync, &port, &limit, &now)
	})
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", translate(err))
	}
	middle := before.Add(clock.System.Now().Sub(before) / 2)
	between, err := db.between(ctx)
	if err != nil {
		return nil, fmt.Errorf("detect pooler: %w", translate(err))
	}
	return []sqldb.Diagnosis{
		{Name: "version", Found: "PostgreSQL " + version},
		skew(now.Sub(middle)),
		durability(sync),
		db.connections(limit),
		pooler(between, asked, port),
	}, nil
}

func skew(d time.Duration) sqldb.Diagnosis {
	found := sqldb.Diagnosis{Name: "clock_skew", Found: d.Round(time.Millisecond).String()}
	if d.Abs() > maxSkew {
		found.Problem = "the clocks of this host and of the server differ by " + d.Abs().Round(time.Second).String()
	}
	return found
}

func durability(sync string) sqldb.Diagnosis {
	found := sqldb.Diagnosis{Name: "durability", Found: "synchronous_commit is " + sync}
	if sync == "off" {
		found.Problem, found.Broken = "commits are acknowledged before they are on disk", true
	}
	return found
}

// connections compares the size of the pools of one process with the server's limit.
func (db *DB) connections(limit int) sqldb.Diagnosis {
	most := 0
	for _, pool := range db.Pools() {
		most += int(pool.Max)
	}
	found := sqldb.Diagnosis{Name: "pool_size", Found: fmt.Sprintf("%d of the server's %d connections for one process", most, limit)}
	if most*2 > limit {
		found.Problem = "two processes could open more connections than the server allows"
	}
	return found
}

// between is the kind of intermediary between the process and the server, if any.
type between int

const (
	nothing between = iota
	// something means that an unknown proxy responds in place of the server.
	something
	// transactions means that a transaction pooler is used: connections do not have their
	// own sessions.
	transactions
)

// secondWait bounds the wait for a second connection, which a small pool may not have.
const secondWait = 2 * time.Second

// between detects a pooler or a proxy between the process and the server by its behavior.
// Without a pooler, each connection has its own session, and the server reports the
// process id of the session when the connection starts. If two connections have the same
// session, or the session of a connection changes while a transaction holds the previous
// one, transactions are pooled. A proxy that responds in place of the server makes up the
// process id.
func (db *DB) between(ctx context.Context) (between, error) {
	one, err := db.main.acquire(ctx, false)
	if err != nil {
		return nothing, err
	}
	defer one.release()
	second, cancel := context.WithTimeout(ctx, secondWait)
	defer cancel()
	other, err := db.urgent.acquire(second, false) // the first pool may have only one connection
	switch {
	case err != nil && ctx.Err() == nil && second.Err() != nil:
		return nothing, nil // all connections of the pool are in use: it is not known
	case err != nil:
		return nothing, err
	}
	defer other.release()
	before, err := session(ctx, one)
	if err != nil {
		return nothing, err
	}
	tx, err := other.Begin(ctx)
	if err != nil {
		return nothing, err
	}
	defer func() { _ = tx.Rollback(ctx) }() // the transaction only reads
	held, err := session(ctx, tx)
	if err != nil {
		return nothing, err
	}
	after, err := session(ctx, one)
	switch {
	case err != nil:
		return nothing, err
	case before == held || before != after:
		return transactions, nil
	case before != one.PgConn().PID():
		return something, nil
	}
	return nothing, nil
}

// asked is a connection or a transaction.
type asked interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// session returns the id of the server process in which a statement runs.
func session(ctx context.Context, on asked) (pid uint32, err error) {
	err = on.QueryRow(ctx, "select pg_backend_pid()::bigint").Scan(&pid)
	return pid, err
}

// pooler returns the diagnosis of an intermediary between the process and the server,
// such as PgBouncer. If the behavior shows nothing, pooler compares the requested port
// with the port that the server reports.
func pooler(b between, asked, actual int) sqldb.Diagnosis {
	found := sqldb.Diagnosis{Name: "pooler", Found: "none"}
	switch {
	case b == transactions:
		found.Found = "transactions are pooled"
		found.Problem = "sessions are shared by connections, so notifications are not passed on"
	case b == something:
		found.Found = "another program responds instead of the server"
	case actual != 0 && actual != asked:
		found.Found = fmt.Sprintf("port %d leads to a server on port %d", asked, actual)
	default:
		return found
	}
	if found.Problem == "" {
		found.Problem = "the connection is not direct; a transaction pooler does not pass notifications on"
	}
	return found
}
