package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

const (
	// creations is the maximum number of attempts to create the table of migrations while
	// other processes create it concurrently.
	creations = 20
	// unblockEvery is the interval at which to check for blocking workers. workerGrace is
	// the age up to which their transactions are not terminated.
	unblockEvery, workerGrace = time.Second, 5 * time.Second
)

// Exclusively implements sqldb.DB. It locks the table of migrations rather than an
// advisory lock, because every role, including the role of an untrusted worker, can take
// any advisory lock. The lock ends with its transaction, so it cannot leak into a pooled
// session.
func (db *DB) Exclusively(ctx context.Context, fn func(sqldb.Runner) error) error {
	for attempt := 1; ; attempt++ {
		err := db.exclusively(ctx, fn)
		var lost *creationLost
		if !errors.As(err, &lost) || attempt == creations || ctx.Err() != nil {
			return err
		}
	}
}

func (db *DB) exclusively(ctx context.Context, fn func(sqldb.Runner) error) error {
	tx, err := db.Begin(ctx, sqldb.Write)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	pid, err := lock(ctx, tx)
	if err != nil {
		return err
	}
	unguard := db.guard(ctx, pid)
	defer unguard()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// creationLost marks the error of a process that tried to create the table of migrations
// while another process created it. The process has waited for the other transaction.
type creationLost struct{ error }

func (e *creationLost) Unwrap() error { return e.error }

// lock locks the table of migrations, which it creates if necessary, and returns the
// process id of the session. If two processes create the table concurrently, one waits
// for the other at the unique indexes of the catalog.
func lock(ctx context.Context, tx sqldb.Tx) (pid int32, err error) {
	var exists bool
	look := sqldb.Stmt{
		SQL: "select to_regclass('perdure.migrations') is not null, pg_backend_pid()",
		Row: func(scan sqldb.Scan) error { return scan(&exists, &pid) },
	}
	if err := tx.Run(ctx, look); err != nil {
		return 0, err
	}
	if !exists {
		for _, text := range sqldb.PostgresMigrations {
			if err := tx.Run(ctx, sqldb.Exec(text)); err != nil {
				return 0, created(fmt.Errorf("prepare migrations: %w", err))
			}
		}
	}
	return pid, tx.Run(ctx, sqldb.Exec("lock table perdure.migrations in share row exclusive mode"))
}

// created marks an error as creationLost if it means that another process has created the
// same object.
func created(err error) error {
	if e, ok := sqldb.Server(err); ok {
		switch e.State {
		case "23505", "42P06", "42P07": // duplicate in an index of the catalog, schema exists, table exists
			return &creationLost{err}
		}
	}
	return err
}

// guard terminates sessions of task workers that block the session and whose transactions
// are older than workerGrace, until stop is called. Without it, a worker could delay a
// migration: a worker may hold locks on its tasks and set its own timeouts.
func (db *DB) guard(ctx context.Context, pid int32) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			timer := clock.System.NewTimer(unblockEvery)
			select {
			case <-timer.C():
				_ = db.unblock(ctx, pid) // retried at the next interval; the wait ends at the latest when ctx is done
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// unblock terminates the sessions of workers that block a session. If the role lacks the
// privilege for that, unblock does nothing; `perdure task lint` reports the missing
// privilege.
func (db *DB) unblock(ctx context.Context, pid int32) error {
	return with(ctx, db.urgent, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `
			select pg_terminate_backend(a.pid)
			from pg_stat_activity a
			where a.pid = any (pg_blocking_pids($1)) and a.usename = 'perdure_worker' and pg_has_role(a.usesysid, 'usage')
			  and a.xact_start < clock_timestamp() - $2::bigint * interval '1 microsecond'`, pid, workerGrace.Microseconds())
		return err
	})
}
