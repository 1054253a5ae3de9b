package task_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/enginetest"
)

// refusal is a statement that the worker must not be able to run, and the
// SQLSTATE that it is refused with: right for the wrong reason is wrong.
type refusal struct {
	sql, state string
	// block says where it is tried: "-" only inside a transaction block, "!"
	// only outside, else both.
	block string
}

const (
	denied  = "42501" // insufficient privilege
	badName = "22023" // the function runner's word for a malformed name
)

var mustFail = []refusal{
	// Tables: nothing, in no way.
	{sql: "select * from queues.task", state: denied},
	{sql: "select count(*) from queues.error", state: denied},
	{sql: "select * from comms.email_message", state: denied},
	{sql: "select * from perdure.hooks", state: denied},
	{sql: "select * from perdure.migrations", state: denied},
	{sql: "select * from app.secrets", state: denied},
	{sql: "insert into queues.task (task_type, payload) values ('email', '{}')", state: denied},
	{sql: "update queues.task set status = 'pending'", state: denied},
	{sql: "delete from queues.task", state: denied},
	{sql: "truncate comms.send_email_task_succeeded cascade", state: denied},
	{sql: "lock table queues.task in access exclusive mode", state: denied, block: "-"},
	{sql: "copy queues.task to stdout", state: denied},
	{sql: "copy (select * from queues.task) to stdout", state: denied},
	{sql: "explain analyze delete from queues.task", state: denied},
	{sql: "declare c cursor for select * from queues.task", state: denied, block: "-"},
	{sql: "insert into comms.send_email_task_succeeded (send_email_task_id, attempt) values (1, 1)", state: denied},
	{sql: "insert into internal.allowed_function (function_name) values ('comms.x')", state: denied},
	{sql: "select nextval('queues.task_task_id_seq')", state: denied},
	{sql: "select setval('queues.task_task_id_seq', 1)", state: denied},
	{sql: "do $$ begin perform from queues.task; end $$", state: denied},

	// Functions that were not granted, directly and by the runner.
	{sql: "select queues.enqueue('email', '{}')", state: denied},
	{sql: "select queues.cancel(1)", state: denied},
	{sql: "select queues.require_task('a.b', '{}')", state: denied},
	{sql: "select comms.kickoff_send_email_task(1)", state: denied},
	{sql: "select comms.create_and_kickoff_email_task('a@b.c', 'a@b.c', 's', 't')", state: denied},
	{sql: "select comms.has_send_email_task_succeeded(1)", state: denied},
	{sql: "select internal.allow_function('app.definer')", state: denied},
	{sql: "select app.definer('{}')", state: denied},
	{sql: "select internal.run_function('app.definer', '{}')", state: denied},
	{sql: "select internal.run_function('comms.kickoff_send_email_task', '{}')", state: denied},
	{sql: "select internal.run_function('queues.enqueue', '{}')", state: denied},
	{sql: "select internal.run_function('queues.complete', '{}')", state: denied},
	{sql: "select internal.run_function('internal.run_function', '{}')", state: denied},
	{sql: "select internal.run_function('pg_catalog.to_jsonb', '{}')", state: denied},
	{sql: "select internal.run_function('pg_catalog.pg_sleep', '{}')", state: denied},
	{sql: "select internal.run_function('pg_temp.f', '{}')", state: denied},

	// Granted functions, without a task that is held.
	{sql: "select comms.send_email_supervisor('{\"send_email_task_id\": 1}')", state: denied},
	{sql: "select comms.record_email_success('{\"send_email_task_id\": 1, \"attempt\": 1}')", state: denied},
	{sql: "select comms.get_email_payload('{\"send_email_task_id\": 1, \"attempt\": 1}')", state: denied},
	{sql: "select internal.run_function('comms.record_sms_failure', '{}')", state: denied},

	// Names that are not plain.
	{sql: "select internal.run_function('comms.get_email_payload''', '{}')", state: badName},
	{sql: "select internal.run_function('comms.get_email_payload(); drop table queues.task; --', '{}')", state: badName},
	{sql: "select internal.run_function('to_jsonb(current_user::text) || to_jsonb', '{}')", state: badName},
	{sql: "select internal.run_function('Comms.get_email_payload', '{}')", state: badName},
	{sql: "select internal.run_function('\"comms\".get_email_payload', '{}')", state: badName},
	{sql: "select internal.run_function('comms.get_email_payload ', '{}')", state: badName},
	{sql: "select internal.run_function(E'comms.get_email_payload\\n', '{}')", state: badName},
	{sql: "select internal.run_function('get_email_payload', '{}')", state: badName},
	{sql: "select internal.run_function('a.comms.get_email_payload', '{}')", state: badName},
	{sql: "select internal.run_function('comms.get_email_payload(jsonb)', '{}')", state: badName},
	{sql: "select internal.run_function('comms.gét_email_payload', '{}')", state: badName},
	{sql: "select internal.run_function('', '{}')", state: badName},
	{sql: "select internal.run_function(null, '{}')", state: badName},
	{sql: "select internal.run_function(repeat('a', 100000), '{}')", state: badName},
	{sql: "select internal.find_function('comms.x; y')", state: badName},

	// Objects of its own, and others' objects changed.
	{sql: "create temp table audit_log (x int)", state: denied},
	{sql: "create temp view v as select 1", state: denied},
	{sql: "create temp sequence s", state: denied},
	{sql: "select 1 as x into temp t", state: denied},
	{sql: "create table public.t (x int)", state: denied},
	{sql: "create table queues.t (x int)", state: denied},
	{sql: "create schema mine", state: denied},
	{sql: "create function public.f() returns int language sql as 'select 1'", state: denied},
	{sql: "create or replace function internal.run_function(function_name text, payload jsonb) returns jsonb language sql as 'select payload'", state: denied},
	{sql: "create function pg_temp.f() returns int language sql as 'select 1'", state: denied},
	{sql: "create type public.t as (x int)", state: denied},
	{sql: "create operator public.+ (function = int4pl, leftarg = int, rightarg = int)", state: denied},
	{sql: "alter function internal.run_function(text, jsonb) security definer", state: denied},
	{sql: "alter function internal.run_function(text, jsonb) owner to perdure_worker", state: denied},
	{sql: "alter table queues.task disable trigger all", state: denied},
	{sql: "drop function internal.run_function(text, jsonb)", state: denied},
	{sql: "drop schema queues cascade", state: denied},
	{sql: "create trigger x before insert on queues.task for each row execute function comms.refuse_change()", state: denied},
	{sql: "create rule r as on insert to queues.task do instead nothing", state: denied},
	{sql: "create policy p on queues.task using (true)", state: denied},
	{sql: "comment on table queues.task is 'x'", state: denied},
	{sql: "reindex table queues.task", state: denied},
	{sql: "cluster queues.task using task_pkey", state: denied},

	// Rights and roles.
	{sql: "grant select on queues.task to perdure_worker", state: denied},
	{sql: "grant perdure_owner to perdure_worker", state: denied},
	{sql: "set role perdure_owner", state: denied},
	{sql: "set session authorization perdure_owner", state: denied},
	{sql: "alter role perdure_worker superuser", state: denied},
	{sql: "alter role perdure_worker bypassrls", state: denied},
	{sql: "alter role perdure_owner login", state: denied},
	{sql: "alter role perdure_worker connection limit -1", state: denied},
	{sql: "create role x", state: denied},
	{sql: "create database x", state: denied, block: "!"},
	{sql: "alter database {database} set search_path = public", state: denied},
	{sql: "drop database {database}", state: denied, block: "!"},
	{sql: "reassign owned by perdure_owner to perdure_worker", state: denied},
	{sql: "drop owned by perdure_owner", state: denied},
	{sql: "alter default privileges for role perdure_owner grant select on tables to perdure_worker", state: denied},
	{sql: "select * from pg_authid", state: denied},
	{sql: "select * from pg_shadow", state: denied},

	// The server.
	{sql: "alter system set work_mem = '1GB'", state: denied, block: "!"},
	{sql: "set session_replication_role = 'replica'", state: denied},
	{sql: "set log_statement = 'none'", state: denied},
	{sql: "load 'plpgsql'", state: denied},
	{sql: "copy (select 1) to program 'id'", state: denied},
	{sql: "copy (select 1) to '/tmp/perdure_x'", state: denied},
	{sql: "select pg_read_file('/etc/passwd')", state: denied},
	{sql: "select pg_ls_dir('.')", state: denied},
	{sql: "select pg_stat_file('postgresql.conf')", state: denied},
	{sql: "select lo_import('/etc/passwd')", state: denied},
	{sql: "select lo_create(0)", state: denied},
	{sql: "select lo_creat(-1)", state: denied},
	{sql: "select lo_from_bytea(0, 'x')", state: denied},
	{sql: "select lo_put(1, 0, 'x')", state: denied},
	{sql: "select pg_logical_emit_message(false, 'x', 'y')", state: denied},
	{sql: "select pg_terminate_backend({victim})", state: denied},
	{sql: "select pg_cancel_backend({victim})", state: denied},
	{sql: "select pg_reload_conf()", state: denied},
	{sql: "select pg_rotate_logfile()", state: denied},
	{sql: "select pg_switch_wal()", state: denied},
	{sql: "select pg_create_restore_point('x')", state: denied},
	{sql: "select pg_create_physical_replication_slot('x')", state: denied},
	{sql: "create extension dblink schema app", state: denied},
	{sql: "create language mine handler plpgsql_call_handler", state: denied},
	{sql: "create publication p", state: denied},
	{sql: "create event trigger e on ddl_command_start execute function app.eventful()", state: denied},
	{sql: "create server s foreign data wrapper file_fdw", state: denied},
	{sql: "create foreign data wrapper w", state: denied},
	{sql: "prepare transaction 'x'", state: "55000", block: "-"}, // the server's default, not a right
}

func TestCase72MustFail(t *testing.T) {
	t.Parallel()
	db := enginetest.Empty(t, enginetest.Postgres)
	f := &fixture{db: db, eng: db.Open(t, nil)}
	f.email(t)
	ctx := enginetest.Context(t)
	owner := connect(t, db.DSN)
	_, err := owner.Exec(ctx, `
		create schema app; grant usage on schema app to perdure_worker; create extension file_fdw schema app;
		create table app.secrets (x text);
		create function app.definer(payload jsonb) returns jsonb language sql security definer set search_path = pg_catalog, pg_temp as 'select payload';
		revoke execute on function app.definer from public;
		create function app.eventful() returns event_trigger language plpgsql as 'begin end'`)
	enginetest.NoError(t, err)
	fill := strings.NewReplacer("{database}", text(t, owner, "select quote_ident(current_database())"), "{victim}", text(t, owner, "select pg_backend_pid()::text"))
	worker := connect(t, as(t, db.DSN, "perdure_worker"))
	refused := 0
	for _, r := range mustFail {
		refused += r.check(t, worker, fill.Replace(r.sql))
	}
	t.Logf("%d statements were refused in %d ways", len(mustFail), refused)
}

// check tries the statement plainly, in a transaction block, and in one with a
// search path that an attacker would choose.
func (r refusal) check(t *testing.T, worker *pgx.Conn, sql string) (refused int) {
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
			t.Errorf("%s: %.100s: %v, want %s", mode, sql, err, r.state)
		} else {
			refused++
		}
		_, err = worker.Exec(ctx, "rollback; reset all; reset role")
		enginetest.NoError(t, err)
	}
	return refused
}
