package torture

import (
	"context"
	"database/sql"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/schema"
)

// OpenPooled opens an engine on a small pool of its own: of pgx on PostgreSQL, of
// database/sql on other databases. closePool must be called after the engine is closed.
func OpenPooled(ctx context.Context, dsn string, options *perdure.Options) (eng *perdure.Engine, closePool func(), err error) {
	const conns = 4
	if strings.HasPrefix(dsn, "postgres") {
		config, err := pgxpool.ParseConfig(dsn)
		if err != nil {
			return nil, nil, err
		}
		config.MaxConns = conns
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return nil, nil, err
		}
		eng, err = perdure.OpenPgx(ctx, pool, options)
		return eng, pool.Close, err
	}
	var pool *sql.DB
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		pool, err = sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)")
	} else {
		pool, err = testdb.Open(dsn)
	}
	if err != nil {
		return nil, nil, err
	}
	pool.SetMaxOpenConns(conns)
	eng, err = perdure.OpenSQL(ctx, pool, options)
	return eng, func() { _ = pool.Close() }, err
}

// useNative uses the transaction of a unit through database/sql. It creates a row in a
// savepoint and rolls it back: neither the table nor the outbox may have it.
func useNative(tx *perdure.Tx, t *schema.Table, undone schema.Values) error {
	own, err := tx.SQL()
	if err != nil {
		return err
	}
	if _, err := own.ExecContext(tx.Context(), "savepoint part"); err != nil {
		return err
	}
	if _, err := tx.Create(t, undone); err != nil {
		return err
	}
	var one int
	if err := own.QueryRowContext(tx.Context(), "select 1").Scan(&one); err != nil { // applies it
		return err
	}
	_, err = own.ExecContext(tx.Context(), "rollback to savepoint part")
	return err
}
