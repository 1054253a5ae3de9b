package fsm

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/interleave"
	"github.com/perdure/perdure/perduretest"
)

// These tests run the engine's own code, statement by statement, in every order
// that the locks of PostgreSQL allow, and look for broken invariants. Each pair is also
// run with a mutant of one statement, which must be caught: otherwise the test
// would prove nothing.

// mutation changes the text of a statement.
type mutation func(text string) string

// without returns a mutation that takes a part out of the statements that contain
// all the marks.
func without(part string, marks ...string) mutation { return instead(part, "", marks...) }

// instead returns a mutation that puts a text in the place of a part.
func instead(part, text string, marks ...string) mutation {
	return func(sql string) string {
		for _, mark := range marks {
			if !strings.Contains(sql, mark) {
				return sql
			}
		}
		return strings.ReplaceAll(sql, part, text)
	}
}

// stage is a database on which engines are stepped.
type stage struct {
	url   string
	mysql bool
	eng   *perdure.Engine
	// quiet are marks of statements that are no steps of their own: they go with
	// the one before. It keeps the number of schedules within bounds.
	quiet []string

	mu      sync.Mutex
	results map[string]any // what the sessions of a schedule found out
}

// dawn is what the clocks of all engines show.
var dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newStage(t *testing.T, database string, quiet ...string) *stage {
	t.Helper()
	s := &stage{url: enginetest.New(t, database).DSN, mysql: database == enginetest.MySQL, quiet: quiet}
	eng, err := perdure.Open(t.Context(), s.url, &perdure.Options{Clock: perduretest.NewClock(dawn)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	s.eng = eng
	return s
}

// tell notes what a session found out.
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

// setup clears the tables and fills them.
func (s *stage) setup(fixture ...string) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error {
		s.mu.Lock()
		s.results = map[string]any{}
		s.mu.Unlock()
		clear := interleave.Clear("perdure.instances", "perdure.ready", "perdure.leases", "perdure.interrupts", "perdure.finished", "perdure.waiting",
			"perdure.signals", "perdure.signal_keys", "perdure.barriers", "perdure.partition_heads", "perdure.partition_waiting", "perdure.uniques",
			"perdure.deadlines", "perdure.unrouted", "perdure.tree_ends")
		statements := append([]string{clear}, fixture...)
		if s.mysql {
			statements = onMySQL(statements)
		}
		return interleave.Statements(statements...)(ctx, db)
	}
}

// Ids of the fixtures.
func id(n int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", n) }

// instance is a fixture: an instance with these columns beside the usual ones.
func instance(n int, columns ...string) string {
	names, values := "", ""
	for _, c := range columns {
		name, value, _ := strings.Cut(c, "=")
		names, values = names+", "+name, values+", "+value
	}
	return fmt.Sprintf(`insert into perdure.instances (id, fsm, version, step, state, queue, priority, due_at, created_at%s)
		values ('%s', 'm', 1, 'only', '0', 'default', 0, '2026-01-01Z', '2026-01-01Z'%s)`, names, id(n), values)
}

// isReady is a fixture: the instance is due.
func isReady(n int) string {
	return fmt.Sprintf(`insert into perdure.ready (queue, priority, due_at, id) values ('default', 0, '2026-01-01Z', '%s')`, id(n))
}

// lease is a fixture: a lease on instances, with so many seconds left.
func lease(token, left int, ids ...int) string {
	var list []string
	for _, n := range ids {
		list = append(list, id(n))
	}
	return fmt.Sprintf(`insert into perdure.leases (token, worker, queue, alone, expires_at, ids)
		values ('%s', 'w', 'default', false, timestamptz '2026-01-01Z' + interval '%d seconds', '{%s}')`, id(token), left, strings.Join(list, ","))
}

// stepped is a database whose statements are steps of a schedule.
type stepped struct {
	*stage
	conn   *interleave.Conn
	mutate mutation
}

func (d *stepped) Begin(ctx context.Context, _ sqldb.Access) (sqldb.Tx, error) {
	begin := "begin isolation level read committed"
	if d.mysql { // where the session has the level
		begin = "start transaction"
	}
	_, err := d.conn.SQL().ExecContext(ctx, begin)
	return &steppedTx{stepped: d}, err
}

func (d *stepped) Exclusively(context.Context, func(sqldb.Runner) error) error {
	return errors.New("no")
}
func (d *stepped) Dialect() sqldb.Dialect { return host.Of(d.eng).DB.Dialect() }
func (d *stepped) Close() error           { return nil }

type steppedTx struct {
	*stepped
	done bool
}

func (tx *steppedTx) runner() sqldb.StdRunner {
	return sqldb.StdRunner{Conn: tx.conn.SQL(), Dialect: tx.Dialect()}
}

func (tx *steppedTx) Run(ctx context.Context, stmts ...sqldb.Stmt) error {
	for _, s := range stmts {
		silent := tx.silent(s.SQL)
		if tx.mutate != nil {
			s.SQL = tx.mutate(s.SQL)
		}
		if silent {
			tx.conn.Also(s.SQL)
		} else if err := tx.conn.TurnFor(ctx, s.SQL); err != nil {
			return err
		}
		if err := tx.runner().Run(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (tx *steppedTx) silent(text string) bool {
	if tx.mysql {
		return silentOnMySQL(text, tx.quiet)
	}
	for _, mark := range tx.quiet {
		if strings.Contains(text, mark) {
			return true
		}
	}
	return false
}

func (tx *steppedTx) Query(ctx context.Context, query string, args ...any) (sqldb.Rows, error) {
	tx.conn.Also(query)
	return tx.runner().Query(ctx, query, args...)
}

func (tx *steppedTx) Commit(ctx context.Context, last ...sqldb.Stmt) error {
	if err := tx.Run(ctx, append(last, sqldb.Exec("commit"))...); err != nil {
		return err
	}
	tx.done = true
	return nil
}

func (tx *steppedTx) Rollback() {
	if !tx.done {
		tx.done = true
		tx.conn.Also("rollback")
		_, _ = tx.conn.SQL().ExecContext(context.Background(), "rollback")
	}
}

// check looks for broken invariants, and has more look at the rest.
func (s *stage) check(more func(db *sql.DB) error) func(context.Context, *sql.DB, interleave.Outcome) error {
	return func(ctx context.Context, db *sql.DB, o interleave.Outcome) error {
		for name, err := range o.Errors {
			return fmt.Errorf("session %s: %w", name, err)
		}
		var broken []string
		run := sqldb.StdRunner{Conn: db, Dialect: host.Of(s.eng).DB.Dialect()}
		err := run.Run(ctx, host.Of(s.eng).Store.Invariants(func(v store.Violation) {
			broken = append(broken, fmt.Sprintf("%s: %s %s", v.Rule, v.ID[34:], v.Detail))
		})...)
		if len(broken) > 0 {
			err = errors.Join(err, errors.New(strings.Join(broken, "; ")))
		}
		if more != nil {
			err = errors.Join(err, more(db))
		}
		return err
	}
}

// number reads a number.
func number(db *sql.DB, query string) (n int) {
	if _, ok := db.Driver().(*mysql.MySQLDriver); ok {
		query = onMySQL([]string{query})[0]
	}
	if err := db.QueryRowContext(context.Background(), query).Scan(&n); err != nil {
		return -1
	}
	return n
}

// places says how often an instance is due, claimed and finished.
func places(db *sql.DB, n int) string {
	return fmt.Sprintf("ready %d waiting %d leases %d finished %d", number(db, "select count(*) from perdure.ready where id = '"+id(n)+"'"),
		number(db, "select count(*) from perdure.waiting where id = '"+id(n)+"'"), number(db, "select count(*) from perdure.leases"),
		number(db, "select count(*) from perdure.finished where id = '"+id(n)+"'"))
}

// pair is two or three pieces of the engine that meet.
type pair struct {
	name    string
	quiet   []string
	fixture []string
	// sessions gets the mutation of the sessions, in their order; nil for the
	// engine as it is.
	sessions func(s *stage, mutate []mutation) []interleave.Session
	more     func(s *stage) func(db *sql.DB) error
	mutants  map[string][]mutation
	// alike says that the pieces never wait for each other.
	alike bool
}

func (p pair) test(s *stage, mutate []mutation) interleave.Test {
	test := interleave.Test{URL: s.url, Setup: s.setup(p.fixture...), Sessions: p.sessions(s, mutate), Isolation: "READ COMMITTED"}
	var more func(*sql.DB) error
	if p.more != nil {
		more = p.more(s)
	}
	test.Check = s.check(more)
	return test
}

func TestInterleavingsOnPostgres(t *testing.T) {
	t.Parallel()
	for _, p := range slices.Concat(pairs(), morePairs(), treePairs(), reopenPairs()) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, enginetest.Postgres, p.quiet...)
			report := interleave.Run(t, p.test(s, make([]mutation, 3)))
			if report.Waited == 0 && !p.alike {
				t.Error("no schedule had a wait: the sessions do not meet")
			}
			for name, mutant := range p.mutants {
				p.catch(t, s, name, mutant)
			}
		})
	}
}

// catch explores with a mutant until it is caught.
func (p pair) catch(t *testing.T, s *stage, name string, mutant []mutation) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	test := p.test(s, mutant)
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
	var other *mysql.MySQLError
	if errors.As(found.Err, &server) && strings.HasPrefix(server.Code, "42") || errors.As(found.Err, &other) && strings.HasPrefix(string(other.SQLState[:]), "42") {
		t.Errorf("mutant %s is not even SQL: %v", name, found.Err)
	}
	t.Logf("mutant %s: caught by schedule %d, %s: %.200v", name, report.Schedules, found.Schedule, found.Err)
}

// Marks of statements that are nothing but bookkeeping in most pairs.
const (
	interrupts = "from perdure.interrupts"
	endOfLease = "delete from perdure.leases"
	noSignals  = "delete from perdure.signals"
	statusOf   = "select status"
	beyond     = "limit 1 offset"
)
