package torture_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/interleave"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/test/torture"
	"github.com/perdure/perdure/outbox"
)

// reservation runs sessions that reserve against each other. What they run is
// what the store gives to the engine, so that it cannot drift from it.
type reservation struct {
	url     string
	dialect sqldb.Dialect
	store   *store.Store

	// settings is how many rows the table of the seed's counter has before.
	settings int

	mu        sync.Mutex
	committed []uint64 // the numbers in the order of the commits
}

func newReservation(t *testing.T, dsn string) *reservation {
	t.Helper()
	open(t, dsn, torture.NewShop().Schema) // migrates
	db, err := torture.OpenDB(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	st, err := store.New(db)
	if err != nil {
		t.Fatal(err)
	}
	r := &reservation{url: dsn, dialect: db.Dialect(), store: st}
	r.exec(t, "create table business (id int primary key, n int not null)")
	r.exec(t, "create table seed_version (id bigint auto_increment primary key, k varchar(20) unique, value varchar(20) not null)")
	return r
}

// exec prepares a table; one that only MariaDB understands is for it alone.
func (r *reservation) exec(t *testing.T, statement string) {
	t.Helper()
	if strings.Contains(statement, "auto_increment") && r.dialect.Name != sqldb.MySQL {
		return
	}
	db, err := testdb.Open(r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// fresh is the state right after the migration.
func (r *reservation) fresh(ctx context.Context, db *sql.DB) error {
	r.mu.Lock()
	r.committed = nil
	r.mu.Unlock()
	statements := []string{
		r.local("delete from perdure.outbox"),
		r.local("update perdure.outbox_clock set counter = 0"),
		"delete from business where id > 2",
		"insert into business select 1, 0 where not exists (select 1 from business where id = 1)",
		"insert into business select 2, 0 where not exists (select 1 from business where id = 2)",
	}
	if r.dialect.Name == sqldb.MySQL { // truncated: its auto-increment starts anew too
		statements = append(statements, "truncate table seed_version")
		for i := range r.settings {
			statements = append(statements, fmt.Sprintf("insert into seed_version (k, value) values ('setting %d', 'x')", i))
		}
	}
	return interleave.Statements(statements...)(ctx, db)
}

func (r *reservation) local(query string) string {
	if r.dialect.Name == sqldb.Postgres {
		return query
	}
	return strings.ReplaceAll(query, "perdure.", "perdure_")
}

// stepConn makes every statement of a sqldb.Runner a step of a schedule.
type stepConn struct{ *interleave.Conn }

func (c stepConn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	n, err := c.Exec(ctx, query, args...)
	return affected(n), err
}

func (c stepConn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return c.Query(ctx, query, args...)
}

type affected int64

func (a affected) LastInsertId() (int64, error) { return 0, errors.New("not known") }
func (a affected) RowsAffected() (int64, error) { return int64(a), nil }

// session is a unit in the making, on one connection.
type session struct {
	*reservation
	name   string
	conn   *interleave.Conn
	run    sqldb.Runner
	number uint64
}

// part is a piece of a session's work.
type part func(ctx context.Context, s *session) error

// session returns a session that begins, does its parts and returns. BEGIN is
// no step: it does nothing that others could see.
func (r *reservation) session(name string, parts ...part) interleave.Session {
	return interleave.Session{Name: name, Run: func(ctx context.Context, c *interleave.Conn) error {
		if _, err := c.SQL().ExecContext(ctx, "begin"); err != nil {
			return err
		}
		s := &session{reservation: r, name: name, conn: c, run: sqldb.StdRunner{Conn: stepConn{c}, Dialect: r.dialect}}
		for _, p := range parts {
			if err := p(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}}
}

// business runs a statement of the application's own.
func business(statement string) part {
	return func(ctx context.Context, s *session) error { return s.run.Run(ctx, sqldb.Exec(statement)) }
}

// reserveNow is the engine's reservation.
func reserveNow(ctx context.Context, s *session) error {
	var now store.Clock
	err := s.run.Run(ctx, s.store.Reserve(1, &now)...)
	s.number = now.Counter
	return err
}

// enter inserts the entry.
func enter(ctx context.Context, s *session) error {
	stamp := outbox.NewStamp(0, s.number, 0)
	entry := store.Entry{Stamp: stamp[:], Unit: s.name, Payload: "{}", Created: time.Now().UTC()}
	return s.run.Run(ctx, s.store.InsertEntries([]store.Entry{entry})...)
}

func commit(ctx context.Context, s *session) error {
	if err := s.run.Run(ctx, sqldb.Exec("commit")); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.committed = append(s.committed, s.number)
	return nil
}

func rollback(ctx context.Context, s *session) error {
	return s.run.Run(ctx, sqldb.Exec("rollback"))
}

// ordered checks that the commits of a schedule have the numbers 1, 2, 3… in
// the order in which they were made, and that the tables say so too.
func (r *reservation) ordered(commits int) func(context.Context, *sql.DB, interleave.Outcome) error {
	return func(ctx context.Context, db *sql.DB, o interleave.Outcome) error {
		for name, err := range o.Errors {
			return fmt.Errorf("session %s: %w", name, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.committed) != commits {
			return fmt.Errorf("%d commits, want %d", len(r.committed), commits)
		}
		for i, n := range r.committed {
			if n != uint64(i+1) {
				return fmt.Errorf("commits have the numbers %d", r.committed)
			}
		}
		var counter, entries int
		err := db.QueryRowContext(ctx, r.local("select counter, (select count(*) from perdure.outbox) from perdure.outbox_clock")).Scan(&counter, &entries)
		if err == nil && (counter != commits || entries != commits) {
			err = fmt.Errorf("%d commits left the counter at %d and %d entries", commits, counter, entries)
		}
		return err
	}
}

// explore runs all merges of the sessions.
func (r *reservation) explore(t *testing.T, check func(context.Context, *sql.DB, interleave.Outcome) error, sessions ...interleave.Session) interleave.Report {
	t.Helper()
	report, err := interleave.Explore(t.Context(), interleave.Test{
		URL: r.url, Setup: r.fresh, Sessions: sessions, Isolation: "READ COMMITTED", Check: check,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d schedules, %d with a wait, %d refused", report.Schedules, report.Waited, len(report.Failures))
	return report
}

// holds explores and fails the test for every schedule that breaks the order.
func (r *reservation) holds(t *testing.T, commits int, sessions ...interleave.Session) {
	t.Helper()
	report := r.explore(t, r.ordered(commits), sessions...)
	for _, f := range report.Failures {
		t.Errorf("schedule %s: %v", f.Schedule, f.Err)
	}
	if report.Waited == 0 {
		t.Error("no schedule had a wait: the sessions do not meet")
	}
}

// breaks explores and fails the test if the order holds in all schedules.
func (r *reservation) breaks(t *testing.T, commits int, want string, sessions ...interleave.Session) {
	t.Helper()
	report := r.explore(t, r.ordered(commits), sessions...)
	for _, f := range report.Failures {
		if strings.Contains(f.Err.Error(), want) {
			t.Logf("broken by %s: %v", f.Schedule, f.Err)
			return
		}
	}
	t.Errorf("no schedule is broken by %q: %v", want, report.Failures)
}

// deadlock says that a database ended a session for a deadlock.
func deadlock(err error) bool {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	return errors.As(err, &pg) && pg.Code == "40P01" || errors.As(err, &my) && my.Number == 1213
}
