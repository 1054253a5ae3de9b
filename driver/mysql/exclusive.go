package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

// Exclusively implements sqldb.DB. The lock belongs to the session, so the connection is
// closed afterwards rather than pooled. The name of the lock may have at most 64
// characters, and the name of a database alone can be that long.
func (db *DB) Exclusively(ctx context.Context, fn func(sqldb.Runner) error) error {
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("get connection: %w", translate(err))
	}
	defer conn.Close()
	defer func() { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }()
	if db.borrowed {
		if _, err := conn.ExecContext(ctx, borrowing(append(meanings(), limits(db.maria, 0)...))); err != nil {
			return translate(err)
		}
	}
	if db.dialect.Cluster {
		return db.exclusivelyInCluster(ctx, conn, fn)
	}
	var got sql.NullInt64
	lock := conn.QueryRowContext(ctx, "select get_lock(concat('perdure.', sha1(database())), ?)", seconds(ctx))
	if err := lock.Scan(&got); err != nil {
		return translate(err)
	}
	if got.Int64 != 1 {
		return errors.New("another process holds the migration lock")
	}
	return fn(sqldb.StdRunner{Conn: conn, Dialect: db.dialect, Ran: &db.ran})
}

// seconds returns the whole seconds until the deadline of ctx.
func seconds(ctx context.Context) int {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 3600
	}
	return max(int(deadline.Sub(clock.System.Now()).Seconds()), 0)
}
