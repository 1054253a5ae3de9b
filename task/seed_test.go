package task_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// The tests of this file run the SQL of the specification (seed 002) and of the
// project that it was written for, beside ours. They show why ours differs:
// corrections 9 and 10 of the design.

// seedSQL is what the specification describes: the queue without leases, the
// function runner that trusts its argument, and the supervisor of its pseudo-code.
const seedSQL = `
create schema queues; create schema internal; create schema comms;
create table queues.task (
  task_id bigserial primary key, task_type text, payload jsonb not null,
  enqueued_at timestamptz default now(), scheduled_at timestamptz default now(), dequeued_at timestamptz
);
create function queues.enqueue(t text, p jsonb, at timestamptz default now()) returns void language sql security definer as
  'insert into queues.task (task_type, payload, scheduled_at) values (t, p, at)';
create function queues.dequeue_next_available_task() returns queues.task language sql security definer as
  'update queues.task set dequeued_at = now() where task_id = (
     select task_id from queues.task where dequeued_at is null and scheduled_at <= now()
     order by scheduled_at, task_id limit 1 for update skip locked) returning *';
create function internal.run_function(function_name text, payload jsonb) returns jsonb language plpgsql as $$
declare result jsonb;
begin
  execute format('select %s($1)::jsonb', function_name) into result using payload;
  return result;
end $$;
create table comms.scheduled (id bigint); create table comms.failed (id bigint); create table comms.succeeded (id bigint primary key);
create function comms.send_email_supervisor(payload jsonb) returns jsonb language plpgsql security definer as $$
declare
  x bigint := (payload ->> 'send_email_task_id')::bigint;
  num_failures int := (select count(*) from comms.failed where id = x);
  num_scheduled int := (select count(*) from comms.scheduled where id = x);
begin
  if exists (select from comms.succeeded where id = x) or num_failures >= 2 then
    return '{"success": true}';
  end if;
  if num_scheduled <= num_failures then
    insert into comms.scheduled values (x);
    perform queues.enqueue('email', payload || '{"task_type": "email"}');
  end if;
  perform queues.enqueue('db_function', payload, now() + interval '5 seconds');
  return '{"success": true}';
end $$;
select queues.enqueue('db_function', '{"db_function": "comms.send_email_supervisor", "send_email_task_id": 1}');
`

// seeded returns a connection to a database with the specification's SQL.
func seeded(t testing.TB) (enginetest.Database, *pgx.Conn) {
	t.Helper()
	db := enginetest.Empty(t, enginetest.Postgres)
	conn := connect(t, db.DSN)
	_, err := conn.Exec(enginetest.Context(t), seedSQL)
	enginetest.NoError(t, err)
	return db, conn
}

// TestCorrection9TheSeedLosesATaskAndItsSupervisorNeverEnds: a worker takes the
// e-mail and dies. Nobody takes it again, and however often the supervisor runs,
// it sends nothing and enqueues itself once more. See
// Case62AnAttemptWithoutOutcomeCountsAsFailed and Case75 for ours.
func TestCorrection9TheSeedLosesATaskAndItsSupervisorNeverEnds(t *testing.T) {
	t.Parallel()
	_, conn := seeded(t)
	ctx := enginetest.Context(t)
	dequeue := func() (taskType, payload string) {
		err := conn.QueryRow(ctx, "select coalesce(task_type, ''), coalesce(payload::text, '') from queues.dequeue_next_available_task()").Scan(&taskType, &payload)
		enginetest.NoError(t, err)
		return taskType, payload
	}
	supervise := func(payload string) {
		_, err := conn.Exec(ctx, "select internal.run_function('comms.send_email_supervisor', $1)", payload)
		enginetest.NoError(t, err)
		_, err = conn.Exec(ctx, "update queues.task set scheduled_at = now() where dequeued_at is null") // time passes
		enginetest.NoError(t, err)
	}
	_, payload := dequeue()
	supervise(payload)
	if taskType, _ := dequeue(); taskType != "email" {
		t.Fatalf("the second task is %q", taskType)
	}
	// Here the worker dies.
	for range 60 {
		taskType, payload := dequeue()
		if taskType != "db_function" {
			t.Fatalf("the specification recovers: %q", taskType)
		}
		supervise(payload)
	}
	equal(t, "tasks: 61 runs of the supervisor, one that waits, one lost e-mail", text(t, conn, "select string_agg(n, ' ') from (select task_type || ' ' || count(*) as n from queues.task group by task_type order by 1) c"), "db_function 62 email 1")
	equal(t, "facts", text(t, conn, "select concat_ws(' ', (select count(*) from comms.scheduled), (select count(*) from comms.failed), (select count(*) from comms.succeeded))"), "1 0 0")
}

// attacker is a role with the rights that the specification gives to a worker.
func attacker(t testing.TB, db enginetest.Database, owner *pgx.Conn) *pgx.Conn {
	t.Helper()
	ctx := enginetest.Context(t)
	role := "perdure_test_" + text(t, owner, "select substr(md5(random()::text), 1, 12)")
	_, err := owner.Exec(ctx, fmt.Sprintf(`create role %[1]s login; grant usage on schema queues, internal, comms to %[1]s;
		grant execute on function queues.dequeue_next_available_task(), internal.run_function(text, jsonb) to %[1]s`, role))
	enginetest.NoError(t, err)
	t.Cleanup(func() {
		if _, err := owner.Exec(context.Background(), "drop owned by "+role+"; drop role "+role); err != nil {
			t.Errorf("drop the role: %v", err)
		}
	})
	conn := connect(t, as(t, db.DSN, role))
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // before the role is dropped
	return conn
}

// TestCorrection10TheSeedGivesTheWorkerEverything: by its own grants a worker
// calls what was never granted, runs any SQL, and becomes superuser. Ours refuses
// each of these steps; see TestCase72MustFail for many more.
func TestCorrection10TheSeedGivesTheWorkerEverything(t *testing.T) {
	t.Parallel()
	db, owner := seeded(t)
	ctx := enginetest.Context(t)
	_, err := owner.Exec(ctx, `create table public.audit_log (what text);
		create function comms.record_email_success(payload jsonb) returns jsonb language plpgsql security definer as $$
		begin insert into audit_log (what) values ('sent'); return '{"success": true}'; end $$`)
	enginetest.NoError(t, err)
	worker := attacker(t, db, owner)

	_, err = worker.Exec(ctx, "select queues.enqueue('email', '{}')")
	enginetest.NoError(t, err) // it was never granted
	equal(t, "any SQL in the name", text(t, worker, `select internal.run_function('jsonb_build_object(''roles'', (select count(*) > 0 from pg_roles)) || to_jsonb', '{}')::text`), `{"roles": true}`)
	_, err = worker.Exec(ctx, `create temp table audit_log (what text);
		create function pg_temp.promote() returns trigger language plpgsql as $$
		begin execute 'alter role ' || quote_ident(session_user) || ' superuser'; return new; end $$;
		create trigger promote before insert on audit_log for each row execute function pg_temp.promote();
		grant insert on audit_log to public;
		select comms.record_email_success('{}')`)
	enginetest.NoError(t, err)
	equal(t, "superuser", text(t, worker, "select rolsuper::text from pg_roles where rolname = session_user"), "true")

	ours := enginetest.Empty(t, enginetest.Postgres)
	ours.Open(t, nil)
	tame := connect(t, as(t, ours.DSN, "perdure_worker"))
	for sql, want := range map[string]string{
		"select queues.enqueue('email', '{}')": denied,
		`select internal.run_function('jsonb_build_object(''roles'', (select count(*) > 0 from pg_roles)) || to_jsonb', '{}')`: invalid,
		"create temp table audit_log (what text)":                                                       denied,
		"create function pg_temp.promote() returns trigger language plpgsql as 'begin return new; end'": denied,
		"select comms.record_email_success('{}')":                                                       denied,
	} {
		if _, err := tame.Exec(ctx, sql); state(err) != want {
			t.Errorf("%s: %v, want %s", sql, err, want)
		}
	}
}
