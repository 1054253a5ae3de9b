package fsm_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/interleave"
	"github.com/perdure/perdure/internal/test/testdb"
)

// Corrections 1 to 8 of the design, section 10: each test shows on PostgreSQL what
// goes wrong with the seed's own text, and that ours does not.

// seedTables is the seed's section 9.
const seedTables = `
create type durable_status as enum ('runnable', 'executing', 'awaiting_signal', 'awaiting_children', 'done', 'failed');
create table gen_durable (
  id bigint generated always as identity primary key, fsm text not null, fsm_version int not null default 1, step text not null,
  status durable_status not null default 'runnable', state jsonb not null default '{}', result jsonb, awaits text[],
  queue text not null default 'default', priority smallint not null default 0, partition_key text,
  eligible_at timestamptz not null default now(), attempt int not null default 0, last_error text,
  locked_by text, lease_expires_at timestamptz,
  parent_id bigint references gen_durable(id) on delete set null, children_pending int not null default 0,
  unique_key bytea, unique_scope durable_status[] not null default '{}',
  unique_guard bytea generated always as (case when unique_key is not null and status = any(unique_scope) then unique_key end) stored,
  inserted_at timestamptz not null default now(), updated_at timestamptz not null default now()
);
create index gen_durable_pick on gen_durable (queue, priority, eligible_at) where status = 'runnable';
create index gen_durable_lease on gen_durable (lease_expires_at) where status = 'executing';
create unique index gen_durable_unique on gen_durable (unique_guard) where unique_guard is not null;
create index gen_durable_parent on gen_durable (parent_id) where parent_id is not null;
create table signals (
  id bigint generated always as identity primary key, target_id bigint not null references gen_durable(id) on delete cascade,
  name text not null, payload jsonb not null default '{}', dedup_key text, inserted_at timestamptz not null default now(),
  unique (target_id, dedup_key)
);
create index signals_target on signals (target_id, name);`

// The seed's statements, section 10.
const (
	seedPick = `
with picked as (
  select id from gen_durable
  where status = 'runnable' and eligible_at <= now() and queue = any('{default}'::text[])
  order by priority, eligible_at
  for update skip locked
  limit 10
)
update gen_durable g
set status = 'executing', locked_by = 'w', lease_expires_at = now() + interval '30 seconds', updated_at = now()
from picked where g.id = picked.id
returning g.id, g.fsm, g.fsm_version, g.step, g.state, g.attempt, g.partition_key`
	seedReaper = `
update gen_durable
set status = 'runnable', locked_by = null, lease_expires_at = null, attempt = attempt + 1, updated_at = now()
where status = 'executing' and lease_expires_at < now()`
	seedNext = `
update gen_durable
set step = 'two', state = '{"by": "second"}', status = 'runnable', eligible_at = now(),
    attempt = 0, awaits = null, locked_by = null, lease_expires_at = null, updated_at = now()
where id = $1`
	seedDone = `
update gen_durable
set result = '"first"', status = 'done', awaits = null, locked_by = null, lease_expires_at = null, updated_at = now()
where id = $1`
	seedJoin = `
update gen_durable p
set children_pending = p.children_pending - 1,
    status      = case when p.children_pending - 1 <= 0 and p.status = 'awaiting_children' then 'runnable' else p.status end,
    eligible_at = case when p.children_pending - 1 <= 0 and p.status = 'awaiting_children' then now() else p.eligible_at end,
    updated_at = now()
from gen_durable c
where c.id = $1 and c.parent_id = p.id`
	seedSend = `
insert into signals (target_id, name, payload, dedup_key)
values ($1, $2, '{}', $3) on conflict (target_id, dedup_key) do nothing`
	seedFlip = `
update gen_durable
set status = 'runnable', eligible_at = now(), updated_at = now()
where id = $1 and status = 'awaiting_signal' and $2 = any(awaits)`
	// seedAwait has the cast that the seed lacks (correction 8), or it would not
	// run at all.
	seedAwait = `
update gen_durable
set step = 'end', state = '{}', awaits = '{go}'::text[], eligible_at = now(),
    status = (case when exists (select 1 from signals where target_id = 1 and name = any('{go}'::text[]))
                  then 'runnable' else 'awaiting_signal' end)::durable_status,
    locked_by = null, lease_expires_at = null, updated_at = now()
where id = 1`
)

// seed is a database with the seed's tables.
type seed struct {
	*sql.DB
	t   *testing.T
	url string
}

func newSeed(t *testing.T, fixture ...string) *seed {
	t.Helper()
	s := &seed{t: t, url: testdb.Postgres(t)}
	db, err := testdb.Open(s.url)
	enginetest.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	s.DB = db
	for _, statement := range append([]string{seedTables}, fixture...) {
		s.exec(statement)
	}
	return s
}

func (s *seed) exec(statement string, args ...any) {
	s.t.Helper()
	_, err := s.ExecContext(s.t.Context(), statement, args...)
	enginetest.NoError(s.t, err)
}

// refuses returns the SQLSTATE with which a statement fails.
func (s *seed) refuses(statement string, args ...any) string {
	s.t.Helper()
	_, err := s.ExecContext(s.t.Context(), statement, args...)
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		s.t.Fatalf("%s: %v, want an error of the server", statement, err)
	}
	return e.Code
}

func (s *seed) text(query string, args ...any) (text string) {
	s.t.Helper()
	enginetest.NoError(s.t, s.QueryRowContext(s.t.Context(), query, args...).Scan(&text))
	return text
}

func (s *seed) is(what, query, want string) {
	s.t.Helper()
	if got := s.text(query); got != want {
		s.t.Errorf("%s: %s, want %s as the seed's text has it", what, got, want)
	}
}

const oneRow = `insert into gen_durable (fsm, step, status) values ('m', 'one', 'executing')`

// Correction 1. Ours: TestInterleavingsOnPostgres, "deliver and park", and case 31.
func TestSeed1LosesWakeUps(t *testing.T) {
	t.Parallel()
	s := newSeed(t)
	literal := func(statement, name string) string {
		return strings.NewReplacer("$1", "1", "$2", "'"+name+"'", "$3", "null").Replace(statement)
	}
	report, err := interleave.Explore(t.Context(), interleave.Test{
		URL:   s.url,
		Setup: interleave.Statements(`truncate gen_durable, signals restart identity`, oneRow),
		Sessions: []interleave.Session{
			interleave.SQL("deliver", "begin", literal(seedSend, "go"), literal(seedFlip, "go"), "commit"),
			interleave.SQL("park", "begin", seedAwait, "commit"),
		},
		Check: func(ctx context.Context, db *sql.DB, _ interleave.Outcome) error {
			var status string
			var inbox int
			err := db.QueryRowContext(ctx, `select status, (select count(*) from signals) from gen_durable`).Scan(&status, &inbox)
			if err == nil && status == "awaiting_signal" && inbox == 1 {
				err = errors.New("it waits beside its signal")
			}
			return err
		},
	})
	enginetest.NoError(t, err)
	if len(report.Failures) == 0 {
		t.Errorf("no wake-up is lost in %d schedules", report.Schedules)
	}
	t.Logf("%d of %d schedules lose the wake-up, first %s", len(report.Failures), report.Schedules, report.Failures[0].Schedule)
}

// Correction 2. Ours: cases 11 to 14.
func TestSeed2LetsTheDeadOverwriteTheLiving(t *testing.T) {
	t.Parallel()
	s := newSeed(t, oneRow)
	s.exec(seedNext, 1) // by the second worker, after the reaper
	s.exec(seedDone, 1) // by the first, which was only slow
	s.is("the row is a mixture", `select concat(status, ' ', step, ' ', state, ' ', result) from gen_durable`, `done two {"by": "second"} "first"`)

	s = newSeed(t, `insert into gen_durable (fsm, step, status, children_pending) values ('p', 'join', 'awaiting_children', 2)`,
		`insert into gen_durable (fsm, step, status, parent_id) values ('c', 'one', 'executing', 1), ('c', 'one', 'executing', 1)`)
	for range 2 { // one child, twice
		s.exec(seedDone, 2)
		s.exec(seedJoin, 2)
	}
	s.is("the parent is free while a child runs", `select concat(p.status, ' ', c.status) from gen_durable p, gen_durable c where p.id = 1 and c.id = 3`, "runnable executing")
}

// Correction 3. Ours: case 55.
func TestSeed3ReentersScopes(t *testing.T) {
	t.Parallel()
	s := newSeed(t, `insert into gen_durable (fsm, step, unique_key, unique_scope) values ('m', 'one', 'k', '{executing}'), ('m', 'one', 'k', '{executing}')`,
		`insert into gen_durable (fsm, step) values ('m', 'innocent')`)
	if code := s.refuses(seedPick); code != "23505" {
		t.Errorf("the pick fails with %s", code)
	}
	s = newSeed(t, `insert into gen_durable (fsm, step, status, lease_expires_at, unique_key, unique_scope) values ('m', 'one', 'executing', '2000-01-01', 'k', '{runnable}')`,
		`insert into gen_durable (fsm, step, unique_key, unique_scope) values ('m', 'one', 'k', '{runnable}')`,
		`insert into gen_durable (fsm, step, status, lease_expires_at) values ('m', 'innocent', 'executing', '2000-01-01')`)
	if code := s.refuses(seedReaper); code != "23505" {
		t.Errorf("the reaper fails with %s", code)
	}
	s.is("nobody is reaped", `select count(*) from gen_durable where status = 'executing'`, "2")
}

// Correction 4. Ours: cases 56 and 57.
func TestSeed4LocksArePermeable(t *testing.T) {
	t.Parallel()
	s := newSeed(t)
	conn, err := s.Conn(t.Context())
	enginetest.NoError(t, err)
	defer conn.Close()
	take := func() (got bool) {
		enginetest.NoError(t, conn.QueryRowContext(t.Context(), `select pg_try_advisory_lock(hashtext('customer 7'))`).Scan(&got))
		return got
	}
	for range 2 {
		if !take() {
			t.Error("two rows of one key on one session: one was refused")
		}
	}
	s.is("keys that collide", `select count(*) > 0 from (
		select 1 from (select 'key ' || i as k from generate_series(1, 200000) i) keys group by hashtext(k) having count(*) > 1) c`, "true")
	// The head is retried later, and the next of its key passes it.
	s = newSeed(t, `insert into gen_durable (fsm, step, partition_key, eligible_at) values ('m', 'first', 'k', now() + interval '1 minute'), ('m', 'second', 'k', now())`)
	beforeReturning, _, _ := strings.Cut(seedPick, "returning")
	s.is("who is picked", beforeReturning+"returning g.step", "second")
}

// Correction 5. Ours: cases 36 and 37.
func TestSeed5ForgetsDuplicates(t *testing.T) {
	t.Parallel()
	s := newSeed(t, oneRow)
	s.exec(seedSend, 1, "a", "k1")
	s.exec(`delete from signals where target_id = 1 and id = any('{1}')`) // consumed
	s.exec(seedSend, 1, "a", "k1")
	s.is("the duplicate is there again", `select count(*) from signals`, "1")
	s.exec(seedSend, 1, "b", "k1")
	s.is("another signal with that key is not", `select count(*) from signals where name = 'b'`, "0")
}

// Correction 6. Ours: case 19.
func TestSeed6LoopsOnPoison(t *testing.T) {
	t.Parallel()
	s := newSeed(t, `insert into gen_durable (fsm, step) values ('m', 'kills its process')`)
	for range 50 {
		s.exec(seedPick)
		s.exec(`update gen_durable set lease_expires_at = '2000-01-01'`) // it did
		s.exec(seedReaper)
	}
	s.is("it is still the first in the queue", `select concat(status, ' ', attempt) from gen_durable where eligible_at <= now()`, "runnable 50")
}

// Correction 7. Ours: case 46.
func TestSeed7MixesFanOuts(t *testing.T) {
	t.Parallel()
	s := newSeed(t, `insert into gen_durable (fsm, step, status) values ('p', 'second round', 'awaiting_children')`,
		`insert into gen_durable (fsm, step, status, parent_id) values ('c', 'of the first round', 'failed', 1), ('c', 'of the second round', 'done', 1)`)
	s.is("what the second join sees", `select count(*) from gen_durable where parent_id = 1`, "2") // "one entry per child of this parent"
}

// Correction 8. Ours: every statement is prepared on the tables by
// TestEveryStatementSuitsTheTables, and the plan of the pick is looked at in
// TestThePickIsFlat.
func TestSeed8DoesNotRun(t *testing.T) {
	t.Parallel()
	s := newSeed(t, oneRow)
	asWritten := strings.Replace(strings.Replace(seedAwait, "status = (case", "status = case", 1), "end)::durable_status", "end", 1)
	if code := s.refuses(asWritten); code != "42804" {
		t.Errorf("the await fails with %s, want datatype mismatch", code)
	}
	if code := s.refuses(`update gen_durable set eligible_at = now() + 5000 where id = 1`); code != "42883" {
		t.Errorf("the delay fails with %s, want undefined function", code)
	}
	s.exec(`insert into gen_durable (fsm, step, state, queue, priority, partition_key, unique_key, unique_scope, eligible_at, parent_id)
		values ('c', 'one', '{}', 'default', 0, null, null, '{}', now(), 1)`) // the seed's columns, for a child of version 2
	s.is("the child's version", `select fsm_version from gen_durable where parent_id = 1`, "1")
	if _, returned, _ := strings.Cut(seedPick, "returning"); strings.Contains(returned, "awaits") {
		t.Error("the pick returns what is awaited")
	}
	s.exec(`insert into gen_durable (fsm, step, queue) select 'm', 'one', case when i % 2 = 0 then 'default' else 'other' end from generate_series(1, 20000) i`)
	s.exec(`analyze gen_durable`)
	plan := func(queue string) string {
		rows, err := s.QueryContext(t.Context(), `explain select id from gen_durable where status = 'runnable' and eligible_at <= now() and queue `+queue+
			` order by priority, eligible_at limit 10`)
		enginetest.NoError(t, err)
		defer rows.Close()
		var lines []string
		for rows.Next() {
			var line string
			enginetest.NoError(t, rows.Scan(&line))
			lines = append(lines, line)
		}
		enginetest.NoError(t, rows.Err())
		return strings.Join(lines, "\n")
	}
	if p := plan("= any('{default,other}')"); !strings.Contains(p, "Sort") {
		t.Errorf("the seed's pick does not sort:\n%s", p)
	}
	if p := plan("= 'default'"); strings.Contains(p, "Sort") {
		t.Errorf("one queue at a time sorts too:\n%s", p)
	}
}

// Ours, for correction 8: a child has the version that it was given, and delays and
// names arrive.
func TestAChildHasItsVersion(t *testing.T) {
	each(t, func(f *fixture) {
		second := fsm.Define("versioned", 2, nil, fsm.Step("only", always(func(r run) fsm.Outcome { return r.Done(r.Version) }), nil))
		d := parentOf("parent", func(r run) fsm.Outcome {
			return r.Spawn(fsm.ChildOf(second, 0, &fsm.StartOptions{Delay: 5 * time.Second}))
		}, story)
		f.register(d, second)
		id := start(f, d, 0, nil)
		f.drain()
		f.wantWait(id, fsm.ForChildren)
		f.after(5 * time.Second)
		f.wantResult(id, fmt.Sprintf("%q", "0 done 2"))
	})
}
