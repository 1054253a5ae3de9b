package sqlapp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// applicationFunctions are the functions that an application may call.
var applicationFunctions = []string{
	"perdure.api_version()", "perdure.emit(text,text,jsonb)", "perdure.schedule_alarm(text,text,jsonb,jsonb)", "perdure.send_event(text,text,jsonb,jsonb)",
	"perdure.signal(uuid,text,jsonb,jsonb)", "perdure.start(text,jsonb,jsonb)", "perdure.trigger(text,text,jsonb,jsonb)",
}

// TestARoleWithTheFunctionsCanDoNothingElse tries every right on every object of Perdure.
func TestARoleWithTheFunctionsCanDoNothingElse(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	tried := 0
	refuse := func(statement, want string) {
		t.Helper()
		tried++
		for _, mode := range []string{"begin", "begin; set local search_path = pg_temp, perdure, public"} {
			_, err := f.app.Exec(enginetest.Context(t), mode)
			enginetest.NoError(t, err)
			if _, err := f.app.Exec(enginetest.Context(t), statement); state(err) != want {
				t.Errorf("%s: %v, want %s", statement, err, want)
			}
			_, err = f.app.Exec(enginetest.Context(t), "rollback; reset all")
			enginetest.NoError(t, err)
		}
	}
	tables := f.list(t, `select c.relnamespace::regnamespace || '.' || c.relname from pg_class c where c.relnamespace = any (array['perdure', 'queues', 'comms', 'internal']::regnamespace[]) and c.relkind = 'r'`)
	for _, table := range tables {
		for _, s := range []string{"select from ", "table ", "delete from ", "insert into ", "truncate ", "lock table ", "copy ", "alter table ", "drop table ", "comment on table "} {
			suffix := map[string]string{"insert into ": " default values", "copy ": " to stdout", "alter table ": " add column x int", "comment on table ": " is 'x'"}[s]
			refuse(s+table+suffix, denied)
		}
	}
	// PostgreSQL only warns if nothing was granted.
	_, err := f.app.Exec(enginetest.Context(t), "grant execute on all functions in schema perdure to public; grant usage on schema perdure to public")
	equal(t, "grant", state(err), denied)
	_, err = f.app.Exec(enginetest.Context(t), "grant execute on function perdure.start(text, jsonb, jsonb) to public")
	enginetest.NoError(t, err)
	allowed := strings.Join(applicationFunctions, " ")
	for _, function := range f.list(t, `select 'perdure.' || p.proname || '(' || replace(oidvectortypes(p.proargtypes), ' ', '') || ')' from pg_proc p where p.pronamespace = 'perdure'::regnamespace`) {
		equal(t, function, f.db.Int(t, "select has_function_privilege('"+f.role+"', '"+function+"', 'execute')::int"), count(strings.Contains(allowed, function)))
		equal(t, "public: "+function, f.db.Int(t, "select has_function_privilege('public', '"+function+"', 'execute')::int"), 0)
	}
	for _, view := range f.list(t, `select c.relnamespace::regnamespace || '.' || c.relname from pg_class c where c.relnamespace = 'perdure'::regnamespace and c.relkind = 'v'`) {
		refuse("select from "+view, denied)
	}
	for _, s := range []string{
		"select perdure.sql_mark()", "select perdure.sql_json('x', '{}')", "select perdure.sql_new_id()", "select perdure.sql_start('order', '{}', '{}')",
		"select perdure.sql_hook(gen_random_uuid(), null, 'actor', 'x', '{}', '{}')", "select perdure.grant_application('" + f.role + "')",
		"select perdure.grant_reader('" + f.role + "')", "select perdure.notify_processes(false)", "select perdure.sql_enter_unique('a', 'b', gen_random_uuid())",
		"select nextval('perdure.sql_notified')", "select setval('perdure.sql_notified', 1)", "select last_value from perdure.sql_notified",
		"create table perdure.mine (x int)", "create function perdure.mine() returns int language sql as 'select 1'", "drop function perdure.start(text, jsonb, jsonb)",
		"create or replace function perdure.api_version() returns integer language sql as 'select 2'", "alter function perdure.start(text, jsonb, jsonb) security invoker",
		"create view perdure.mine as select 1", "drop schema perdure", "alter schema perdure rename to mine", "set role perdure_owner", "set role perdure_worker",
		"select queues.enqueue('db_function', '{}')",
		"create trigger mine after insert on perdure.sql_events for each row execute function perdure.sql_append()", "create role other", "alter role " + f.role + " superuser",
	} {
		refuse(s, denied)
	}
	if tried < 300 {
		t.Errorf("%d statements were tried, want at least 300", tried)
	}
	t.Logf("%d statements were refused", tried)
}

func count(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// list returns the first column of a query of the owner.
func (f *fixture) list(t *testing.T, query string) (all []string) {
	t.Helper()
	rows, err := f.owner.Query(context.Background(), query)
	enginetest.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var s string
		enginetest.NoError(t, rows.Scan(&s))
		all = append(all, s)
	}
	enginetest.NoError(t, rows.Err())
	return all
}

// A caller cannot redirect a function to objects of its own.
func TestFunctionsIgnoreTheSearchPathOfTheCaller(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.exec(t, "create schema evil", "grant usage, create on schema evil to "+f.role, "grant temporary on database "+f.list(t, "select quote_ident(current_database())")[0]+" to "+f.role)
	ctx := enginetest.Context(t)
	_, err := f.app.Exec(ctx, `
		create function evil.now() returns timestamptz language plpgsql as 'begin raise exception ''hijacked''; end';
		create function evil.octet_length(text) returns int language plpgsql as 'begin raise exception ''hijacked''; end';
		create function evil.hijack(jsonb, jsonb) returns boolean language plpgsql as 'begin raise exception ''hijacked''; end';
		create operator evil.<> (function = evil.hijack, leftarg = jsonb, rightarg = jsonb);
		create temporary table definitions (x int); create temporary table ready (x int);
		set search_path = evil, pg_temp, pg_catalog`)
	enginetest.NoError(t, err)
	f.call(t, `select id from perdure.start('order', '{"id": "1"}', '{"priority": "high"}')`)
	f.call(t, `select id from perdure.trigger('shop', 'mail', '{"id": "2"}')`)
	f.call(t, `select perdure.emit('t', 'k', '{"a": 1}')`)
	f.runs(t, "begin 1", "mail 2")
}

// A reader reads the views with a stable form, and nothing else.
func TestAReaderReadsTheViews(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.exec(t, "select perdure.grant_reader('"+f.role+"')")
	views := f.list(t, `select c.relnamespace::regnamespace || '.' || c.relname from pg_class c where c.relnamespace = 'perdure'::regnamespace and c.relkind = 'v' and c.relname ~ '^v[0-9]+_'`)
	for _, v := range views {
		_, err := f.app.Exec(enginetest.Context(t), "select * from "+v)
		enginetest.NoError(t, err)
		_, err = f.app.Exec(enginetest.Context(t), "delete from "+v)
		if s := state(err); s != denied && s != "55000" {
			t.Errorf("delete from %s: %v", v, err)
		}
	}
	equal(t, "views", len(views), 6)
	_, err := f.app.Exec(enginetest.Context(t), "select from perdure.instances")
	equal(t, "a table", state(err), denied)
}
