package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

const (
	// creations is the number of times that the table of migrations is created
	// anew after another process has done the same.
	creations = 20
	// unblockEvery is the interval at which blocking workers are looked for, and
	// workerGrace the age up to which their transactions are left alone.
	unblockEvery, workerGrace = time.Second, 5 * time.Second
)

// Exclusively implements sqldb.DB. The lock is on the table of migrations, since
// every role, that of an untrusted worker too, can take any advisory lock. It ends
// with its transaction, so it cannot leak into a pooled session.
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

// creationLost marks the error of a process that created the table of migrations
// while another did. It has waited for the other's transaction.
type creationLost struct{ error }

func (e *creationLost) Unwrap() error { return e.error }

// lock locks the table of migrations, which it creates if necessary, and returns the
// number of the session. Two processes that create it wait for each other at the
// unique indexes of the catalog.
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

// created marks an error that says that another process has created the same.
func created(err error) error {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch e.Code {
		case "23505", "42P06", "42P07": // of the catalog's index, of a schema, of a table
			return &creationLost{err}
		}
	}
	return err
}

// guard ends sessions of the worker of tasks that block the session for longer than
// workerGrace, until it is stopped. A worker cannot make a migration wait, though it
// may hold locks on its tasks and set its own timeouts.
func (db *DB) guard(ctx context.Context, pid int32) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			timer := clock.System.NewTimer(unblockEvery)
			select {
			case <-timer.C():
				_ = db.unblock(ctx, pid) // is tried again; in the end the context ends the wait
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

// unblock ends the sessions of workers that block a session. Without the right to do
// so, which `perdure task lint` reports, it does nothing.
func (db *DB) unblock(ctx context.Context, pid int32) error {
	_, err := db.urgent.Exec(ctx, `
		select pg_terminate_backend(a.pid)
		from pg_stat_activity a
		where a.pid = any (pg_blocking_pids($1)) and a.usename = 'perdure_worker' and pg_has_role(a.usesysid, 'usage')
		  and a.xact_start < clock_timestamp() - $2::bigint * interval '1 microsecond'`, pid, workerGrace.Microseconds())
	return err
}
