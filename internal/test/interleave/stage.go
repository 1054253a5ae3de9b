package interleave

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

// Stage is a PostgreSQL database on which sessions run the code of Perdure: each statement
// of that code is a step. Sessions record their findings in the stage, and checks read
// them.
type Stage struct {
	// URL is the database, Dialect the dialect of its engine.
	URL     string
	Dialect sqldb.Dialect
	// Quiet are marks of statements that are not steps: they belong to the previous step. This
	// limits the number of schedules.
	Quiet []string

	mu        sync.Mutex
	results   map[string]any // what the sessions of a schedule found
	deadlocks int            // transactions of this schedule that were retried
	scheduled int            // schedules with at least one retried transaction
}

// Dawn is the time of Still.
var Dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Still is a clock that is stopped at Dawn. A clock of perduretest would be an import cycle
// in some packages.
type Still struct{}

// Now implements clock.Clock.
func (Still) Now() time.Time { return Dawn }

// NewTimer implements clock.Clock.
func (Still) NewTimer(d time.Duration) clock.Timer { return clock.System.NewTimer(d) }

// Tell records a finding of a session.
func (s *Stage) Tell(what string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[what] = value
}

// Told returns a finding of a session of this schedule, or nil.
func (s *Stage) Told(what string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.results[what]
}

// begin clears the findings of the previous schedule.
func (s *Stage) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results, s.deadlocks = map[string]any{}, 0
}

// failed counts a transaction that the database asks to retry.
func (s *Stage) failed(err error) {
	if !sqldb.IsTransient(err) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deadlocks++; s.deadlocks == 1 {
		s.scheduled++
	}
}

// Again retries fn while the database asks for it, as the engine does.
func Again(fn func() error) (err error) {
	for range 10 {
		if err = fn(); !sqldb.IsTransient(err) {
			return err
		}
	}
	return err
}

// DB returns the connection of a session as a database of the engine. Each statement and
// each COMMIT is a step. If mutate is not nil, it changes the statements.
func (s *Stage) DB(c *Conn, mutate Mutation) *DB { return &DB{stage: s, conn: c, mutate: mutate} }

// DB is a database whose statements are steps of a schedule. It has one connection.
type DB struct {
	stage  *Stage
	conn   *Conn
	mutate Mutation
}

// Conn returns the connection of the session.
func (d *DB) Conn() *Conn { return d.conn }

// Begin implements sqldb.DB.
func (d *DB) Begin(ctx context.Context, _ sqldb.Access) (sqldb.Tx, error) {
	_, err := d.conn.SQL().ExecContext(ctx, "begin isolation level read committed")
	return &steppedTx{DB: d}, err
}

// Exclusively implements sqldb.DB. No session calls it.
func (d *DB) Exclusively(context.Context, func(sqldb.Runner) error) error {
	return errors.New("run exclusively: not possible in a schedule")
}

// Dialect implements sqldb.DB.
func (d *DB) Dialect() sqldb.Dialect { return d.stage.Dialect }

// Close implements sqldb.DB. The connection belongs to the schedule.
func (d *DB) Close() error { return nil }

// step waits for the turn of a statement, and returns its text.
func (d *DB) step(ctx context.Context, text string) (string, error) {
	silent := d.silent(text)
	if d.mutate != nil {
		text = d.mutate(text)
	}
	if silent {
		d.conn.Also(text)
		return text, nil
	}
	return text, d.conn.TurnFor(ctx, text)
}

func (d *DB) silent(text string) bool {
	for _, mark := range d.stage.Quiet {
		if strings.Contains(text, mark) {
			return true
		}
	}
	return false
}

// steppedTx is a transaction of DB.
type steppedTx struct {
	*DB
	done bool
}

func (tx *steppedTx) runner() sqldb.StdRunner {
	return sqldb.StdRunner{Conn: tx.conn.SQL(), Dialect: tx.Dialect()}
}

// Run implements sqldb.Runner: each statement is a step.
func (tx *steppedTx) Run(ctx context.Context, stmts ...sqldb.Stmt) (err error) {
	for _, s := range stmts {
		if s.SQL, err = tx.step(ctx, s.SQL); err != nil {
			return err
		}
		if err = tx.runner().Run(ctx, s); err != nil {
			tx.stage.failed(err)
			return err
		}
	}
	return nil
}

// Query implements sqldb.Runner. It is not a step.
func (tx *steppedTx) Query(ctx context.Context, query string, args ...any) (sqldb.Rows, error) {
	tx.conn.Also(query)
	return tx.runner().Query(ctx, query, args...)
}

// Commit implements sqldb.Tx.
func (tx *steppedTx) Commit(ctx context.Context, last ...sqldb.Stmt) error {
	if err := tx.Run(ctx, append(last, sqldb.Exec("commit"))...); err != nil {
		return err
	}
	tx.done = true
	return nil
}

// Rollback implements sqldb.Tx.
func (tx *steppedTx) Rollback() {
	if !tx.done {
		tx.done = true
		tx.conn.Also("rollback")
		_, _ = tx.conn.SQL().ExecContext(context.Background(), "rollback")
	}
}

// Number reads a number. It returns -1 after an error.
func Number(db *sql.DB, query string, args ...any) (n int) {
	if err := db.QueryRowContext(context.Background(), query, args...).Scan(&n); err != nil {
		return -1
	}
	return n
}
