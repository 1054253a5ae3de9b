package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// source provides connections, one transaction at a time.
type source interface {
	// acquire waits for a connection, at most until ctx is done. If native is true, the
	// lease can be used through database/sql too.
	acquire(ctx context.Context, native bool) (*lease, error)
	// usage returns the use of the connections.
	usage(name string) sqldb.Pool
	// connect opens a connection that does not belong to the source.
	connect(ctx context.Context) (*pgx.Conn, error)
}

// lease is a connection that is in use until it is released.
type lease struct {
	*pgx.Conn
	// std is the same connection for database/sql; nil if the lease is not native.
	std driver.Conn
	// release returns the connection. A connection that is broken or still inside a
	// transaction is closed.
	release func()
}

// with runs fn on a connection.
func with(ctx context.Context, from source, fn func(conn *pgx.Conn) error) error {
	l, err := from.acquire(ctx, false)
	if err != nil {
		return err
	}
	defer l.release()
	return fn(l.Conn)
}

// pgxSource is a pool of pgx.
type pgxSource struct {
	pool      *pgxpool.Pool
	connector driver.Connector
	lost      *losses // nil if the pool is the caller's
}

func newPgxSource(pool *pgxpool.Pool, lost *losses) pgxSource {
	return pgxSource{pool: pool, connector: stdlib.GetPoolConnector(pool), lost: lost}
}

func (s pgxSource) acquire(ctx context.Context, native bool) (*lease, error) {
	if !native {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return s.lease(conn.Conn(), nil, conn.Release), nil
	}
	std, err := s.connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return s.lease(std.(*stdlib.Conn).Conn(), std, func() { _ = std.Close() }), nil // returns it to the pool
}

func (s pgxSource) lease(conn *pgx.Conn, std driver.Conn, release func()) *lease {
	return &lease{Conn: conn, std: std, release: func() {
		if s.lost != nil && conn.IsClosed() {
			s.lost.note()
		}
		release()
	}}
}

func (s pgxSource) usage(name string) sqldb.Pool {
	stat := s.pool.Stat()
	return sqldb.Pool{
		Name: name, Max: int64(stat.MaxConns()), Open: int64(stat.TotalConns()), InUse: int64(stat.AcquiredConns()),
		Waits: stat.EmptyAcquireCount(), Waited: stat.EmptyAcquireWaitTime(),
	}
}

func (s pgxSource) connect(ctx context.Context) (*pgx.Conn, error) {
	config := s.pool.Config()
	if config.BeforeConnect != nil { // it may provide the password
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	return connectLike(ctx, config.ConnConfig)
}

// connectLike opens a connection with the configuration of another one, except its handler
// of notifications.
func connectLike(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	config.OnNotification = nil
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect like the pool: %w", err)
	}
	return conn, nil
}

// stdSource is a pool of database/sql whose driver is pgx.
type stdSource struct{ db *sql.DB }

func (s stdSource) acquire(ctx context.Context, _ bool) (*lease, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	l := &lease{}
	err = conn.Raw(func(c any) (err error) {
		l.std, l.Conn, err = connOf(c)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	l.release = func() {
		if l.IsClosed() || l.PgConn().TxStatus() != 'I' {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
		_ = conn.Close()
	}
	return l, nil
}

// connOf returns the connection of pgx behind a connection of database/sql. Libraries that
// trace statements wrap the connection, and have a method Raw that returns it.
func connOf(c any) (driver.Conn, *pgx.Conn, error) {
	outer, ok := c.(driver.Conn)
	for inner := c; ok; {
		switch wrapped := inner.(type) {
		case interface{ Conn() *pgx.Conn }:
			return outer, wrapped.Conn(), nil
		case interface{ Raw() driver.Conn }:
			inner = wrapped.Raw()
		default:
			ok = false
		}
	}
	return nil, nil, fault.Invalidf("database", "must use the driver of pgx, got a connection of type %T", c)
}

func (s stdSource) usage(name string) sqldb.Pool { return sqldb.StdPool(name, s.db) }

func (s stdSource) connect(ctx context.Context) (*pgx.Conn, error) {
	l, err := s.acquire(ctx, false)
	if err != nil {
		return nil, err
	}
	config := l.Config()
	l.release()
	return connectLike(ctx, config)
}
