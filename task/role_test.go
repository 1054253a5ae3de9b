package task_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/task"
)

// as returns the URL of a database with another user.
func as(t testing.TB, dsn, user string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	enginetest.NoError(t, err)
	u.User = url.User(user)
	return u.String()
}

// connect opens a connection that ends with the test.
func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	enginetest.NoError(t, err)
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(enginetest.Context(t), config)
	enginetest.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// state returns the SQLSTATE of what a statement was refused with, or nothing.
func state(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// text reads a text as the user of a connection.
func text(t testing.TB, conn *pgx.Conn, query string, args ...any) (found string) {
	t.Helper()
	enginetest.NoError(t, conn.QueryRow(enginetest.Context(t), query, args...).Scan(&found))
	return found
}

// TestCase72TheWorkerNeedsNothingButItsFunctions runs the seed's flow, and every
// other thing that a worker does, as the role perdure_worker.
func TestCase72TheWorkerNeedsNothingButItsFunctions(t *testing.T) {
	t.Parallel()
	db := enginetest.Empty(t, enginetest.Postgres)
	eng := db.Open(t, nil)
	f := &fixture{db: db, eng: eng}
	f.admin, _ = task.NewAdmin(eng)
	f.provider.answers = []error{retry.After(10*time.Millisecond, errors.New("slow down")), errors.New("provider is down")}
	f.enqueue(t, "db_function", map[string]any{"db_function": "comms.kickoff_send_email_task"}, nil)
	f.enqueue(t, "db_function", map[string]any{"db_function": "queues.enqueue"}, nil)
	f.enqueue(t, "unheard", map[string]any{}, &task.EnqueueOptions{At: noon})
	worker, err := task.OpenWorker(t.Context(), as(t, db.DSN, "perdure_worker"), &task.Options{
		Senders: map[string]task.Sender{"email": f.provider.send}, Lease: time.Minute,
		OnError: func(err error) { t.Errorf("worker: %v", err) },
	})
	enginetest.NoError(t, err)
	defer func() { enginetest.NoError(t, worker.Close()) }()
	d, err := dispatch.NewWaker(worker, nil)
	enginetest.NoError(t, err)
	id := f.email(t)
	d.Start()
	defer func() { enginetest.NoError(t, d.Stop(enginetest.Context(t))) }()
	hasten := func(status string) func() bool {
		return func() bool {
			db.Exec(t, f.hastened())
			eng.Wake()
			d.Wake()
			return db.Int(t, "select count(*) from comms.send_email_task_"+status) == 1
		}
	}
	enginetest.Eventually(t, "the first attempt fails", hasten("failed"))
	enginetest.Eventually(t, "the second attempt succeeds", hasten("succeeded"))
	enginetest.Eventually(t, "the supervisor ends", func() bool {
		hasten("failed")()
		return db.Int(t, "select count(*) from queues.task where status in ('pending', 'processing') and task_type <> 'unheard'") == 0
	})
	f.hasFacts(t, "email", id, 2, 1, 1)
	f.hasErrors(t, "provider is down", "slow down", "comms.kickoff_send_email_task is not allowed", "queues.enqueue is not allowed", "no worker knows task type unheard")
}

// TestCase72MustPass has what a worker may do, and what its token is worth.
func TestCase72MustPass(t *testing.T) {
	t.Parallel()
	db := enginetest.Empty(t, enginetest.Postgres)
	eng := db.Open(t, nil)
	f := &fixture{db: db, eng: eng}
	f.email(t)
	f.email(t)
	worker := connect(t, as(t, db.DSN, "perdure_worker"))
	ctx := enginetest.Context(t)
	var id, other int64
	var token, payload, ignore string
	dequeue := "select task_id, token::text, payload::text from queues.dequeue_next_available_task()"
	enginetest.NoError(t, worker.QueryRow(ctx, dequeue).Scan(&id, &token, &payload))
	enginetest.NoError(t, worker.QueryRow(ctx, dequeue).Scan(&other, &ignore, &ignore))
	if err := worker.QueryRow(ctx, dequeue).Scan(&other, &ignore, &ignore); !errors.Is(err, pgx.ErrNoRows) {
		t.Fatalf("an empty queue: %v", err)
	}
	wrong := "00000000-0000-0000-0000-000000000000"
	equal(t, "heartbeat", text(t, worker, "select count(*)::text from queues.heartbeat(array[$1::bigint], array[$2::uuid], '1 minute')", id, token), "1")
	equal(t, "heartbeat with a wrong token", text(t, worker, "select count(*)::text from queues.heartbeat(array[$1::bigint], array[$2::uuid], '1 minute')", id, wrong), "0")
	for _, call := range []string{"queues.complete($1, $2::uuid)", "queues.fail($1, $2::uuid, 'x')", "queues.append_error($1, $2::uuid, 'x')", "queues.release(array[$1::bigint], array[$2::uuid]) > 0"} {
		equal(t, call+" with a wrong token", text(t, worker, "select ("+call+")::text", id, wrong), "false")
	}
	if _, err := worker.Exec(ctx, "select queues.hold($1, $2::uuid)", id, wrong); state(err) != "PRD01" {
		t.Fatalf("hold with a wrong token: %v", err)
	}

	// A granted function, but only for a task that is held and names it.
	run := func(tx pgx.Tx, function, payload string) error {
		_, err := tx.Exec(ctx, "select internal.run_function($1, $2::jsonb)", function, payload)
		return err
	}
	for _, c := range []struct {
		hold                     bool
		function, payload, state string
	}{
		{false, "comms.send_email_supervisor", payload, "42501"},
		{true, "comms.send_email_supervisor", strings.ReplaceAll(payload, `"send_email_task_id": 1`, `"send_email_task_id": 2`), "42501"},
		{true, "comms.record_email_success", `{"original_payload": ` + payload + `}`, "42501"},
		{true, "comms.get_email_payload", payload, "42501"},
		{true, "comms.send_email_supervisor", payload, ""},
	} {
		tx, err := worker.Begin(ctx)
		enginetest.NoError(t, err)
		if c.hold {
			_, err := tx.Exec(ctx, "select queues.hold($1, $2::uuid)", id, token)
			enginetest.NoError(t, err)
		}
		if err := run(tx, c.function, c.payload); state(err) != c.state {
			t.Errorf("%s of %s, held %v: %v, want %q", c.function, c.payload, c.hold, err, c.state)
		}
		if c.state == "" {
			equal(t, "complete", text(t, tx.Conn(), "select queues.complete($1, $2::uuid)::text", id, token), "true")
			enginetest.NoError(t, tx.Commit(ctx))
			continue
		}
		enginetest.NoError(t, tx.Rollback(ctx))
	}
	equal(t, "complete again", text(t, worker, "select queues.complete($1, $2::uuid)::text", id, token), "false")
	equal(t, "e-mails enqueued", db.Int(t, "select count(*) from queues.task where task_type = 'email'"), 1)
	equal(t, "time of the worker", text(t, worker, "select (select count(*) from queues.dequeue_next_available_tasks('w', array['db_function'], 9, '1s'))::text from set_config('perdure.now', '2100-01-01', false)"), "0")
}

// lint returns what is wrong with the rights around the worker.
func lint(t testing.TB, eng *perdure.Engine) []string {
	t.Helper()
	admin, err := task.NewAdmin(eng)
	enginetest.NoError(t, err)
	problems, err := admin.Lint(enginetest.Context(t))
	enginetest.NoError(t, err)
	return problems
}

// TestLint: a migrated database has nothing wrong, and every mistake is found.
func TestLint(t *testing.T) {
	t.Parallel()
	db := enginetest.Empty(t, enginetest.Postgres)
	eng := db.Open(t, nil)
	if problems := lint(t, eng); len(problems) > 0 {
		t.Fatalf("a fresh database: %s", strings.Join(problems, "\n"))
	}
	owner := connect(t, db.DSN)
	definer := "create function %s(payload jsonb) returns jsonb language sql security definer %s as 'select payload'"
	for statement, want := range map[string]string{
		strings.NewReplacer("%s(", "comms.unpinned(", "definer %s", "definer").Replace(definer):                                                                       "without search_path",
		strings.NewReplacer("%s(", "comms.public(", "%s", "set search_path = pg_catalog, pg_temp").Replace(definer):                                                   "PUBLIC may execute: comms.public",
		"create schema other; create function other.definer() returns int language sql security definer as 'select 1'; grant usage on schema other to perdure_worker": "not allowed: other.definer",
		"grant execute on function queues.enqueue(text, jsonb, timestamptz) to perdure_worker":                                                                        "not allowed: queues.enqueue",
		"create function public.definer() returns int language sql security definer as 'select 1'":                                                                    "in schema public",
		"grant select on queues.task to perdure_worker":                                                                                                               "right on: queues.task",
		"grant usage on sequence queues.error_error_id_seq to perdure_worker":                                                                                         "error_id_seq",
		"grant select (payload) on queues.task to perdure_worker":                                                                                                     "right on: queues.task",
		"grant create on schema comms to perdure_worker":                                                                                                              "create in: comms",
		"grant temporary on database {database} to perdure_worker":                                                                                                    "temporary",
		"grant execute on function lo_create(oid) to perdure_worker":                                                                                                  "lo_create",
		"insert into internal.allowed_function (function_name) values ('comms.gone')":                                                                                 "does not exist: comms.gone",
		"alter function comms.get_email_payload(jsonb) reset search_path":                                                                                             "comms.get_email_payload",
	} {
		statement = strings.ReplaceAll(statement, "{database}", text(t, owner, "select quote_ident(current_database())"))
		tx, err := owner.Begin(t.Context())
		enginetest.NoError(t, err)
		if _, err := tx.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		enginetest.NoError(t, tx.Commit(t.Context()))
		if problems := lint(t, eng); !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("%s: %q is not among %q", statement, want, problems)
		}
	}
}

// TestMigratingAServerWithoutTheRoles: a user who may not create them is told
// what to do, and one who may creates them, from several databases at once.
func TestMigratingAServerWithoutTheRoles(t *testing.T) {
	t.Parallel()
	server := testdb.PrivatePostgres(t)
	ctx := enginetest.Context(t)
	dsn := server.Database(t)
	admin := connect(t, dsn)
	_, err := admin.Exec(ctx, "create role plain login; create role maker login createrole; grant create on database "+text(t, admin, "select current_database()")+" to plain")
	enginetest.NoError(t, err)
	_, err = perdure.Open(ctx, as(t, dsn, "plain"), nil)
	if err == nil || !strings.Contains(err.Error(), "create role perdure_owner nologin") || state(err) != "42501" {
		t.Fatalf("without the right: %v", err)
	}
	var running sync.WaitGroup
	for range 4 {
		dsn := server.Database(t)
		owner := connect(t, dsn)
		_, err := owner.Exec(ctx, "alter database "+text(t, owner, "select current_database()")+" owner to maker")
		enginetest.NoError(t, err)
		running.Go(func() {
			eng, err := perdure.Open(ctx, as(t, dsn, "maker"), nil)
			if err != nil {
				t.Errorf("with the right: %v", err)
				return
			}
			if problems := lint(t, eng); slices.ContainsFunc(problems, func(p string) bool { return !strings.HasPrefix(p, "function of the system") }) {
				t.Errorf("lint: %s", strings.Join(problems, "\n")) // only a superuser may take away the system's functions
			}
			if err := eng.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
}

// TestMigratingWithoutMembership says what to do, too.
func TestMigratingWithoutMembership(t *testing.T) {
	t.Parallel()
	db := enginetest.Empty(t, enginetest.Postgres)
	admin := connect(t, db.DSN)
	ctx := enginetest.Context(t)
	user := "perdure_test_" + text(t, admin, "select substr(md5(random()::text), 1, 12)")
	name := text(t, admin, "select current_database()")
	enginetest.Empty(t, enginetest.Postgres).Open(t, nil) // the roles exist
	_, err := admin.Exec(ctx, "create role "+user+" login; grant create on database "+name+" to "+user)
	enginetest.NoError(t, err)
	t.Cleanup(func() {
		for _, statement := range []string{"reassign owned by " + user + " to perdure", "drop owned by " + user, "drop role " + user} {
			if _, err := admin.Exec(context.Background(), statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
	_, err = perdure.Open(ctx, as(t, db.DSN, user), nil)
	if err == nil || !strings.Contains(err.Error(), "grant perdure_owner to "+user) {
		t.Fatalf("without membership: %v", err)
	}
	_, err = admin.Exec(ctx, "grant perdure_owner to "+user)
	enginetest.NoError(t, err)
	eng, err := perdure.Open(ctx, as(t, db.DSN, user), nil)
	enginetest.NoError(t, err)
	f := &fixture{db: enginetest.Database{Name: db.Name, DSN: as(t, db.DSN, user)}, eng: eng}
	f.admin, _ = task.NewAdmin(eng)
	f.worker = f.newWorker(t, nil)
	f.email(t)
	f.process(t, 2)
	f.hasErrors(t)
	enginetest.NoError(t, f.worker.Drain(ctx))
	enginetest.NoError(t, eng.Close())
}

// TestCase72GroupsGiveTheWorkerNoMore: for a group of tasks the worker may do what it may do
// for each of them.
func TestCase72GroupsGiveTheWorkerNoMore(t *testing.T) {
	t.Parallel()
	db := enginetest.Empty(t, enginetest.Postgres)
	f := &fixture{db: db, eng: db.Open(t, nil)}
	for range 3 {
		f.email(t)
	}
	ctx, worker := enginetest.Context(t), connect(t, as(t, db.DSN, "perdure_worker"))
	var ids []int64
	var tokens, payloads []string
	for range 3 {
		var id int64
		var token, payload string
		enginetest.NoError(t, worker.QueryRow(ctx, "select task_id, token::text, payload::text from queues.dequeue_next_available_task()").Scan(&id, &token, &payload))
		ids, tokens, payloads = append(ids, id), append(tokens, token), append(payloads, payload)
	}
	const supervisor, wrong = "comms.send_email_supervisor", "00000000-0000-0000-0000-000000000000"
	run := func(tokens, functions, payloads []string) (ran int, err error) {
		tx, err := worker.Begin(ctx)
		enginetest.NoError(t, err)
		defer func() { _ = tx.Rollback(ctx) }()
		err = tx.QueryRow(ctx, "select count(*) from queues.run_tasks($1::bigint[], $2::uuid[], $3::text[], $4::text[]::jsonb[], null)", ids, tokens, functions, payloads).Scan(&ran)
		return ran, err
	}
	all := []string{supervisor, supervisor, supervisor}
	for _, c := range []struct {
		about                       string
		tokens, functions, payloads []string
		ran                         int
		state                       string
	}{
		{"what is held", tokens, all, payloads, 3, ""},
		{"a wrong token", []string{tokens[0], wrong, tokens[2]}, all, payloads, 2, ""},
		{"a token of another task", []string{tokens[0], tokens[0], tokens[2]}, all, payloads, 2, ""},
		{"a payload of another task", tokens, all, []string{payloads[0], payloads[0], payloads[2]}, 0, "42501"},
		{"a function that the task does not name", tokens, []string{supervisor, "comms.get_email_payload", supervisor}, payloads, 0, "42501"},
		{"a function that is not allowed", tokens, []string{supervisor, "comms.kickoff_send_email_task", supervisor}, payloads, 0, "42501"},
		{"a function of the queue", tokens, []string{supervisor, supervisor, "queues.enqueue"}, payloads, 0, "42501"},
		{"a name that is none", tokens, []string{supervisor, supervisor, "x; select 1"}, payloads, 0, "22023"},
	} {
		if ran, err := run(c.tokens, c.functions, c.payloads); ran != c.ran || state(err) != c.state {
			t.Errorf("%s: ran %d with %v, want %d and %q", c.about, ran, err, c.ran, c.state)
		}
	}
	equal(t, "tasks held with wrong tokens", text(t, worker, "select count(*)::text from queues.hold_tasks($1::bigint[], $2::uuid[])", ids, []string{wrong, wrong, wrong}), "0")
}
