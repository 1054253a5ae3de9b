package task_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// refusals are statements that the worker must not be able to run, and the SQLSTATE
// that each of them is refused with: right for the wrong reason is wrong.
type refusals struct {
	about, state string
	// block says where they are tried: "-" only inside a transaction block, "!"
	// only outside, else both.
	block      string
	statements []string
}

const (
	denied        = "42501" // insufficient privilege
	invalid       = "22023" // invalid parameter value, also for a name that is not plain
	malformed     = "22P02" // text that is no value of the type
	malformedTime = "22007"
	noFunction    = "42883" // of the name and these types
	wrongKind     = "42809"
	fixed         = "55P02" // a setting that cannot be changed
	unsupported   = "0A000"
	notHeld       = "PRD01" // by the token
)

// minRefusals is the least number of statements on the list.
const minRefusals = 300

// prepareMustFail makes objects that statements of the list are about.
const prepareMustFail = `
	create schema app; grant usage on schema app to perdure_worker; create extension file_fdw schema app;
	create table app.secrets (x text);
	alter table app.secrets enable row level security; create policy hide on app.secrets using (false);
	create table app.hidden (x text);
	create view app.hidden_view as select x from app.secrets; create materialized view app.hidden_rows as select x from app.secrets;
	create type app.mood as enum ('good');
	create server app_files foreign data wrapper file_fdw; create foreign data wrapper app_wrapper;
	create foreign table app.files (line text) server app_files options (filename '/etc/passwd');
	create publication app_news for table app.hidden;
	create procedure app.proc() language sql as ''; revoke execute on procedure app.proc from public;
	create function app.definer(payload jsonb) returns jsonb language sql security definer set search_path = pg_catalog, pg_temp as 'select payload';
	revoke execute on function app.definer from public;
	create function app.invoker_of_definer(payload jsonb) returns jsonb language sql as 'select app.definer(payload)';
	create function app.eventful() returns event_trigger language plpgsql as 'begin end';
	create event trigger watching on ddl_command_end when tag in ('CREATE CONVERSION') execute function app.eventful()`

// placeholders returns what replaces the names in braces.
func placeholders(t *testing.T, owner *pgx.Conn) *strings.Replacer {
	t.Helper()
	return strings.NewReplacer(
		"{database}", text(t, owner, "select quote_ident(current_database())"), "{victim}", text(t, owner, "select pg_backend_pid()::text"),
		"{superuser}", text(t, owner, "select current_user"), "{object}", text(t, owner, "select lo_from_bytea(0, 'secret')::text"))
}

// rightsOfWorker has what the worker may do, one right in each line.
const rightsOfWorker = `
	select string_agg(line, E'\n' order by line)
	from (
		select 'execute ' || p.oid::regprocedure from pg_proc p where has_function_privilege('perdure_worker', p.oid, 'execute')
		union all
		select right_name || ' of schema ' || n.nspname || ' for ' || role
		from pg_namespace n, unnest(array['usage', 'create']) right_name, unnest(array['perdure_worker', 'public']) role
		where has_schema_privilege(role, n.oid, right_name)
		union all
		select right_name || ' of the database for ' || role
		from unnest(array['connect', 'temporary', 'create']) right_name, unnest(array['perdure_worker', 'public']) role
		where has_database_privilege(role, current_database(), right_name)
		union all
		select right_name || ' of language ' || lanname from pg_language, unnest(array['usage', 'usage with grant option']) right_name
		where has_language_privilege('perdure_worker', oid, right_name)
		union all
		select 'select of ' || oid::regclass from pg_class where relkind in ('r', 'v', 'm', 'f') and has_table_privilege('perdure_worker', oid, 'select')
	) rights (line)`

// changes returns the lines that only one of two texts has.
func changes(one, other string) (lines []string) {
	a, b := strings.Split(one, "\n"), strings.Split(other, "\n")
	for _, line := range append(slices.Clone(a), b...) {
		if slices.Contains(a, line) != slices.Contains(b, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestCase72MustFail(t *testing.T) {
	t.Parallel()
	db := enginetest.Empty(t, enginetest.Postgres)
	f := &fixture{db: db, eng: db.Open(t, nil)}
	f.email(t)
	owner := connect(t, db.DSN)
	_, err := owner.Exec(enginetest.Context(t), prepareMustFail)
	enginetest.NoError(t, err)
	fill, before := placeholders(t, owner), text(t, owner, rightsOfWorker)
	worker := connect(t, as(t, db.DSN, "perdure_worker"))
	tried, refused := map[string]bool{}, 0
	for _, r := range slices.Concat(rowRefusals, objectRefusals, functionRefusals, roleRefusals, serverRefusals) {
		for _, statement := range r.statements {
			if tried[statement] {
				t.Errorf("%s is on the list twice", statement)
			}
			tried[statement] = true
			refused += r.check(t, worker, fill.Replace(statement))
		}
	}
	if len(tried) < minRefusals {
		t.Errorf("%d statements, want %d at least", len(tried), minRefusals)
	}
	if changed := changes(before, text(t, owner, rightsOfWorker)); len(changed) > 0 {
		t.Errorf("rights have changed: %q", changed)
	}
	equal(t, "tasks", db.Int(t, "select count(*) from queues.task where status = 'pending' and attempts = 0"), 1)
	t.Logf("%d statements were refused in %d ways", len(tried), refused)
}

// check tries a statement plainly, in a transaction block, and in one with a
// search path that an attacker would choose.
func (r refusals) check(t *testing.T, worker *pgx.Conn, sql string) (refused int) {
	t.Helper()
	ctx := t.Context()
	modes := map[string]string{"plain": "", "block": "begin", "hostile": "begin; set local search_path = pg_temp, app, public, comms, queues"}
	for mode, begin := range modes {
		if r.block == "-" && mode == "plain" || r.block == "!" && mode != "plain" {
			continue
		}
		if begin != "" {
			_, err := worker.Exec(ctx, begin)
			enginetest.NoError(t, err)
		}
		_, err := worker.Exec(ctx, sql)
		if got := state(err); got != r.state {
			t.Errorf("%s, %s: %.100s: %v, want %s", r.about, mode, sql, err, r.state)
		} else {
			refused++
		}
		_, err = worker.Exec(ctx, "rollback; reset all; reset role")
		enginetest.NoError(t, err)
	}
	return refused
}

// withoutEffect are statements that PostgreSQL accepts with a warning. They change no
// right.
var withoutEffect = []string{
	"grant create on schema public to perdure_worker",
	"grant create on database {database} to perdure_worker",
	"grant temporary on database {database} to perdure_worker",
	"grant usage on language plpgsql to perdure_worker with grant option",
	"revoke execute on function queues.hold(bigint, uuid) from perdure_worker",
	"revoke execute on all functions in schema queues from perdure_worker cascade",
	"revoke all on schema queues from perdure_worker",
	"revoke connect on database {database} from public",
	"drop owned by perdure_worker",
	"alter default privileges grant execute on functions to public",
	"alter default privileges in schema queues grant all on tables to perdure_worker",
	"vacuum full pg_catalog.pg_authid",
	"vacuum queues.task",
	"analyze queues.task",
	"set local_preload_libraries = 'x'",
}

// A statement that PostgreSQL does not refuse gives the worker nothing, and takes
// nothing from other workers.
func TestCase72WhatIsNotRefusedHasNoEffect(t *testing.T) {
	t.Parallel()
	db := enginetest.Empty(t, enginetest.Postgres)
	f := &fixture{db: db, eng: db.Open(t, nil)}
	f.email(t)
	owner := connect(t, db.DSN)
	fill, before := placeholders(t, owner), text(t, owner, rightsOfWorker)
	worker := connect(t, as(t, db.DSN, "perdure_worker"))
	for _, statement := range withoutEffect {
		_, _ = worker.Exec(enginetest.Context(t), fill.Replace(statement)) // a later release may refuse it
		after := text(t, owner, rightsOfWorker)
		if changed := changes(before, after); len(changed) > 0 {
			t.Errorf("%s changes rights: %q", statement, changed)
		}
		before = after
	}
	claim(t, connect(t, as(t, db.DSN, "perdure_worker")), "db_function")
	if problems := lint(t, f.eng); len(problems) > 0 {
		t.Errorf("lint: %s", strings.Join(problems, "\n"))
	}
}
