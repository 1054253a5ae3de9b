package effect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/interleave"
)

// These tests run the code of hooks, statement by statement, in every order that the locks
// of PostgreSQL allow, and look for broken invariants. Each pair is also run with mutants
// of single statements. Every mutant must be caught: otherwise the test proves nothing.

// stage is a database whose engine is stepped.
type stage struct {
	url string
	eng *perdure.Engine
	// quiet are marks of statements that are not steps: they belong to the step before.
	// This limits the number of schedules.
	quiet []string

	mu        sync.Mutex
	results   map[string]any // what the sessions of a schedule found
	deadlocks int            // transactions of this schedule that were run again
	scheduled int            // schedules in which one was
}

// dawn is the time of all clocks.
var dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// still is a clock that shows dawn. A clock of perduretest would be an import cycle.
type still struct{}

// Now implements clock.Clock.
func (still) Now() time.Time { return dawn }

// NewTimer implements clock.Clock.
func (still) NewTimer(d time.Duration) clock.Timer { return clock.System.NewTimer(d) }

func newStage(t *testing.T, quiet ...string) *stage {
	t.Helper()
	db := enginetest.New(t, enginetest.Postgres)
	s := &stage{url: db.DSN, quiet: quiet}
	eng, err := perdure.Open(t.Context(), s.url, &perdure.Options{Clock: still{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	s.eng = eng
	db.Exec(t, "create table written (id text not null)")
	return s
}

// tell records a finding of a session.
func (s *stage) tell(what string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[what] = value
}

func (s *stage) told(what string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.results[what]
}

// again counts a transaction that the database asks to run again.
func (s *stage) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deadlocks++; s.deadlocks == 1 {
		s.scheduled++
	}
}

// setup clears the tables and fills them.
func (s *stage) setup(fixture ...string) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error {
		s.mu.Lock()
		s.results, s.deadlocks = map[string]any{}, 0
		s.mu.Unlock()
		clear := interleave.Clear("perdure.hook_items", "perdure.hook_ends", "perdure.ready", "perdure.leases", "perdure.interrupts", "perdure.attempts", "written")
		return interleave.Statements(append([]string{clear}, fixture...)...)(ctx, db)
	}
}

// id returns an id of the fixtures.
func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

const (
	space = "n"
	lane  = "hook\t" + space + "\tm"
)

// hook is a fixture: a hook without a place.
func hook(n int) string {
	return fmt.Sprintf(`insert into perdure.hook_items (id, namespace, name, queue, payload, priority, policy, max_attempts, unit_id, created_at, due_at)
		values ('%s', '%s', 'm', '%s', '1', 0, '{}', 9, 'u', '2026-01-01Z', '2026-01-01Z')`, id(n), space, lane)
}

// isReady is a fixture: the hook is due.
func isReady(n int) string {
	return fmt.Sprintf(`insert into perdure.ready (queue, priority, due_at, id) values ('%s', 0, '2026-01-01Z', '%s')`, lane, id(n))
}

// isFailed is a fixture: the hook has failed.
func isFailed(n int) string {
	return fmt.Sprintf(`insert into perdure.hook_ends (id, status, error, created_at, finished_at) values ('%s', 'failed', 'no', '2026-01-01Z', '2026-01-01Z')`, id(n))
}

// lease is a fixture: a lease on hooks, with so many seconds left.
func lease(token, left int, ids ...int) string {
	var list []string
	for _, n := range ids {
		list = append(list, id(n))
	}
	return fmt.Sprintf(`insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
		values ('%s', 'w', '%s', false, '2025-12-31Z', timestamptz '2026-01-01Z' + interval '%d seconds', '{%s}')`,
		id(token), store.HookQueue(space), left, strings.Join(list, ","))
}

// stepped is a database whose statements are steps of a schedule.
type stepped struct {
	*stage
	conn   *interleave.Conn
	mutate mutation
}

// Begin implements sqldb.DB.
func (d *stepped) Begin(ctx context.Context, _ sqldb.Access) (sqldb.Tx, error) {
	_, err := d.conn.SQL().ExecContext(ctx, "begin isolation level read committed")
	return &steppedTx{stepped: d}, err
}

// Exclusively implements sqldb.DB. No session calls it.
func (d *stepped) Exclusively(context.Context, func(sqldb.Runner) error) error {
	return errors.New("no")
}

// Dialect implements sqldb.DB.
func (d *stepped) Dialect() sqldb.Dialect { return d.eng.Runtime().DB.Dialect() }

// Close implements sqldb.DB. The connection belongs to the schedule.
func (d *stepped) Close() error { return nil }

type steppedTx struct {
	*stepped
	done bool
}

func (tx *steppedTx) runner() sqldb.StdRunner {
	return sqldb.StdRunner{Conn: tx.conn.SQL(), Dialect: tx.Dialect()}
}

// Run implements sqldb.Runner: each statement is a step.
func (tx *steppedTx) Run(ctx context.Context, stmts ...sqldb.Stmt) error {
	for _, s := range stmts {
		if !tx.silent(s.SQL) {
			if err := tx.conn.Turn(ctx); err != nil {
				return err
			}
		}
		if tx.mutate != nil {
			s.SQL = tx.mutate(s.SQL)
		}
		if err := tx.runner().Run(ctx, s); err != nil {
			if sqldb.IsTransient(err) {
				tx.again()
			}
			return err
		}
	}
	return nil
}

func (tx *steppedTx) silent(text string) bool {
	for _, mark := range tx.quiet {
		if strings.Contains(text, mark) {
			return true
		}
	}
	return false
}

// Query implements sqldb.Runner.
func (tx *steppedTx) Query(ctx context.Context, query string, args ...any) (sqldb.Rows, error) {
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
		_, _ = tx.conn.SQL().ExecContext(context.Background(), "rollback")
	}
}

// pair is two sessions that meet.
type pair struct {
	quiet   []string
	fixture []string
	// sessions gets the mutations of the sessions, in their order; nil for the code as it
	// is.
	sessions func(s *stage, mutate []mutation) []interleave.Session
	// more checks what only this pair promises.
	more func(s *stage, db *sql.DB) error
	// mutants are the mutations of the sessions, by what they break.
	mutants map[string][]mutation
	// variants are sessions of which one breaks a rule in its code, by what it breaks.
	variants map[string]func(s *stage) []interleave.Session
	// alike says that the sessions never wait for each other.
	alike bool
}

func (p pair) test(s *stage, sessions []interleave.Session) interleave.Test {
	return interleave.Test{
		URL: s.url, Setup: s.setup(p.fixture...), Sessions: sessions, Isolation: "READ COMMITTED",
		Check: func(ctx context.Context, db *sql.DB, o interleave.Outcome) error {
			for name, err := range o.Errors {
				return fmt.Errorf("session %s: %w", name, err)
			}
			err := s.invariants(ctx, db)
			if p.more != nil {
				err = errors.Join(err, p.more(s, db))
			}
			if err == nil {
				err = s.alive(ctx, db)
			}
			if err != nil {
				err = fmt.Errorf("%w; told %v", err, s.results)
			}
			return err
		},
	}
}

// run explores a pair, and its mutants.
func (p pair) run(t *testing.T) {
	t.Helper()
	t.Parallel()
	s := newStage(t, p.quiet...)
	report := interleave.Run(t, p.test(s, p.sessions(s, make([]mutation, 2))))
	if report.Waited == 0 && !p.alike {
		t.Error("no schedule had a wait: the sessions do not meet")
	}
	t.Logf("%d of %d schedules had a deadlock", s.scheduled, report.Schedules)
	if s.scheduled == report.Schedules {
		t.Error("the sessions always deadlock")
	}
	for name, mutant := range p.mutants {
		p.catch(t, s, name, p.sessions(s, mutant))
	}
	for name, sessions := range p.variants {
		p.catch(t, s, name, sessions(s))
	}
}

// catch explores with a mutant until it is caught.
func (p pair) catch(t *testing.T, s *stage, name string, sessions []interleave.Session) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	test := p.test(s, sessions)
	check := test.Check
	test.Check = func(ctx context.Context, db *sql.DB, o interleave.Outcome) error {
		err := check(ctx, db, o)
		if err != nil {
			cancel() // one is enough
		}
		return err
	}
	report, err := interleave.Explore(ctx, test)
	if len(report.Failures) == 0 {
		t.Errorf("mutant %s is not caught in %d schedules: %v", name, report.Schedules, err)
		return
	}
	found := report.Failures[0]
	var server *pgconn.PgError
	if errors.As(found.Err, &server) && (strings.HasPrefix(server.Code, "42") || strings.HasPrefix(server.Code, "0A")) {
		t.Errorf("mutant %s is not even SQL: %v", name, found.Err)
	}
	t.Logf("mutant %s: caught by schedule %d, %s: %.200v", name, report.Schedules, found.Schedule, found.Err)
}
