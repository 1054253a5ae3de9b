package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

// A lock of a session is known only to its node. On a cluster, one process at a time has the
// lease in perdure_migrating: a row that is certified like every other row. Statements that
// change tables run on all nodes in one order.

const (
	// leaseTime is the time after which another process takes the lease of a process that has
	// died. leaseRenewal is the age at which the lease is renewed, before the next statement.
	leaseTime, leaseRenewal = time.Minute, 10 * time.Second
	// leasePause is the pause between two attempts to take the lease.
	leasePause = 50 * time.Millisecond
)

var leaseTable = []string{
	"create table if not exists perdure_migrating (id tinyint primary key, holder varchar(64) not null, until datetime(6) not null) engine=InnoDB",
	"insert ignore into perdure_migrating (id, holder, until) values (1, '', utc_timestamp(6))",
}

const (
	leaseTake    = "update perdure_migrating set holder = ?, until = utc_timestamp(6) + interval ? microsecond where id = 1 and (holder in ('', ?) or until < utc_timestamp(6))"
	leaseRenew   = "update perdure_migrating set until = utc_timestamp(6) + interval ? microsecond where id = 1 and holder = ?"
	leaseRelease = "update perdure_migrating set holder = '' where id = 1 and holder = ?"
)

// lease is the right to migrate.
type lease struct {
	sqldb.StdRunner
	holder  string
	renewed time.Time
}

// errLeaseLost is the error of a process that was too slow to renew its lease.
var errLeaseLost = errors.New("another process has taken the migration lock: the lease has expired")

// exclusivelyInCluster is Exclusively on a cluster.
func (db *DB) exclusivelyInCluster(ctx context.Context, conn *sql.Conn, fn func(sqldb.Runner) error) error {
	if err := replicatesTables(ctx, conn); err != nil {
		return err
	}
	l := &lease{StdRunner: sqldb.StdRunner{Conn: conn, Dialect: db.dialect, Ran: &db.ran}, holder: rand.Text()}
	for _, text := range leaseTable {
		if err := l.persist(ctx, text); err != nil {
			return fmt.Errorf("create migration lock: %w", err)
		}
	}
	if err := l.take(ctx); err != nil {
		return fmt.Errorf("take migration lock: %w", err)
	}
	defer func() {
		ctx, cancel := sqldb.RollbackContext()
		defer cancel()
		_ = l.persist(ctx, leaseRelease, l.holder) // otherwise it expires
	}()
	return fn(l)
}

// replicatesTables returns an error if changes of tables are not sent to the other nodes.
func replicatesTables(ctx context.Context, conn *sql.Conn) error {
	var method string
	if err := conn.QueryRowContext(ctx, "select @@wsrep_osu_method").Scan(&method); err != nil {
		return certified(err)
	}
	if method != "TOI" {
		return fmt.Errorf("wsrep_OSU_method must be TOI, got %s: other nodes would not get the tables", method)
	}
	return nil
}

// take waits for the lease, at most until ctx is done.
func (l *lease) take(ctx context.Context) error {
	for {
		now := clock.System.Now()
		n, err := l.exec(ctx, leaseTake, l.holder, leaseTime.Microseconds(), l.holder)
		switch {
		case err != nil && !sqldb.IsCertification(err):
			return err
		case err == nil && n == 1:
			l.renewed = now
			return nil
		}
		timer := clock.System.NewTimer(leasePause)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("another process holds it: %w", ctx.Err())
		}
	}
}

// persist runs a statement that can run again, until no other transaction conflicts with it.
func (l *lease) persist(ctx context.Context, text string, args ...any) error {
	for {
		if _, err := l.exec(ctx, text, args...); !sqldb.IsCertification(err) || ctx.Err() != nil {
			return err
		}
	}
}

func (l *lease) exec(ctx context.Context, text string, args ...any) (int64, error) {
	result, err := l.Conn.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, cut(ctx, certified(err))
	}
	return result.RowsAffected()
}

// Run implements sqldb.Runner. A statement that conflicts with another transaction runs again:
// each of them is its own transaction.
func (l *lease) Run(ctx context.Context, stmts ...sqldb.Stmt) error {
	for i, s := range stmts {
		if err := l.hold(ctx); err != nil {
			return err
		}
		err := l.StdRunner.Run(ctx, s)
		for sqldb.IsCertification(err) && ctx.Err() == nil {
			err = l.StdRunner.Run(ctx, s)
		}
		if failed := (*sqldb.StmtError)(nil); errors.As(err, &failed) {
			failed.Index = i
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hold renews the lease if it is old.
func (l *lease) hold(ctx context.Context) error {
	now := clock.System.Now()
	if now.Sub(l.renewed) < leaseRenewal {
		return nil
	}
	n, err := l.exec(ctx, leaseRenew, leaseTime.Microseconds(), l.holder)
	for sqldb.IsCertification(err) && ctx.Err() == nil {
		n, err = l.exec(ctx, leaseRenew, leaseTime.Microseconds(), l.holder)
	}
	switch {
	case err != nil:
		return fmt.Errorf("renew migration lock: %w", err)
	case n != 1:
		return errLeaseLost
	}
	l.renewed = now
	return nil
}
