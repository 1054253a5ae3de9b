package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/driver/postgres"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
	"github.com/perdure/perdure/task"
)

// stubborn returns a connection of the worker that has unset its timeouts, holds
// every advisory lock that a start has ever waited for, and locks a task in a
// transaction.
func stubborn(t *testing.T, db enginetest.Database) (worker *pgx.Conn, h held) {
	t.Helper()
	ctx := enginetest.Context(t)
	worker = connect(t, as(t, db.DSN, "perdure_worker"))
	h = claim(t, worker, "db_function")
	_, err := worker.Exec(ctx, "set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; set lock_timeout = 0; select pg_advisory_lock(31650408110158437)")
	enginetest.NoError(t, err)
	_, err = worker.Exec(ctx, fmt.Sprintf("begin isolation level repeatable read; select queues.hold(%d, '%s')", h.id, h.token))
	enginetest.NoError(t, err)
	return worker, h
}

// isEnded checks that the session of a connection was ended by an administrator.
func isEnded(t *testing.T, worker *pgx.Conn) {
	t.Helper()
	if _, err := worker.Exec(enginetest.Context(t), "select 1"); state(err) != "57P01" {
		t.Errorf("the session of the worker: %v, want 57P01", err)
	}
}

// No start waits for a lock of a worker: neither one that finds nothing to do, nor
// one that creates tables.
func TestNoStartWaitsForALockOfAWorker(t *testing.T) {
	t.Parallel()
	db := enginetest.Empty(t, enginetest.Postgres)
	f := &fixture{db: db, eng: db.Open(t, nil)}
	f.email(t)
	worker, h := stubborn(t, db)
	db.Open(t, nil)
	added := schema.New("added", schema.NewTable("notes", schema.Text("text")))
	db.Open(t, &perdure.Options{Schemas: []*schema.Schema{added}})
	db.Open(t, &perdure.Options{Schemas: []*schema.Schema{added}})
	equal(t, "the worker still holds its task", text(t, worker, "select queues.append_error($1, $2::uuid, 'x')::text", h.id, h.token), "true")
}

// A migration that changes the table of tasks needs a lock that a worker can keep
// from it. It ends the session of the worker.
func TestAMigrationEndsTheSessionOfAWorkerThatBlocksIt(t *testing.T) {
	t.Parallel()
	db := enginetest.Empty(t, enginetest.Postgres)
	f := &fixture{db: db, eng: db.Open(t, nil)}
	f.email(t)
	worker, _ := stubborn(t, db)
	driver, err := postgres.Open(enginetest.Context(t), db.DSN)
	enginetest.NoError(t, err)
	defer driver.Close()
	enginetest.NoError(t, driver.Exclusively(enginetest.Context(t), func(run sqldb.Runner) error {
		return run.Run(enginetest.Context(t), sqldb.Exec("alter table queues.task add column added integer"))
	}))
	isEnded(t, worker)
}

// A worker can unset its timeouts. Every other worker, and the server, ends its
// session when its transaction exceeds the limit, so that nothing waits for it longer.
func TestOverdueTransactionsOfAWorkerAreEnded(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(t *testing.T, f *fixture){
		"by another worker": func(t *testing.T, f *fixture) {
			_, err := connect(t, as(t, f.db.DSN, "perdure_worker")).Exec(enginetest.Context(t), "select queues.end_overdue_sessions()")
			enginetest.NoError(t, err)
		},
		"by a worker that looks for tasks": func(t *testing.T, f *fixture) {
			w, err := task.OpenWorker(t.Context(), as(t, f.db.DSN, "perdure_worker"), &task.Options{OnError: func(err error) { t.Error(err) }})
			enginetest.NoError(t, err)
			_, err = w.Start(enginetest.Context(t))
			enginetest.NoError(t, err)
			enginetest.NoError(t, w.Drain(enginetest.Context(t)))
			enginetest.NoError(t, w.Close())
		},
		"by the server": func(t *testing.T, f *fixture) {
			enginetest.NoError(t, inspect.New(f.eng, nil).EndOverdueSessions(enginetest.Context(t)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.Empty(t, enginetest.Postgres)
			f := &fixture{db: db, eng: db.Open(t, nil)}
			f.admin, _ = task.NewAdmin(f.eng)
			f.email(t)
			worker, h := stubborn(t, db)
			limit := func(value string) {
				db.Exec(t, "set role perdure_owner; create or replace function queues.transaction_limit() returns interval language sql immutable return interval '"+value+"'")
			}
			equal(t, "limit", db.Int(t, "select extract(epoch from queues.transaction_limit())::integer"), 60)
			limit("1 day")
			look(t, f)
			equal(t, "a transaction within the limit", text(t, worker, "select 'goes on'"), "goes on")
			cancelled := make(chan error, 1)
			go func() { cancelled <- f.admin.Cancel(enginetest.Context(t), idOf(h.id)) }()
			limit("0")
			look(t, f)
			enginetest.NoError(t, <-cancelled)
			isEnded(t, worker)
		})
	}
}

// An outcome has at most a MiB, whatever function stores it.
func TestALargeOutcomeIsRefused(t *testing.T) {
	t.Parallel()
	db := enginetest.Empty(t, enginetest.Postgres)
	f := &fixture{db: db, eng: db.Open(t, nil)}
	f.email(t)
	ctx := enginetest.Context(t)
	worker, owner := connect(t, as(t, db.DSN, "perdure_worker")), connect(t, db.DSN)
	limit := edge.DefaultMaxJSON
	equal(t, "limit", text(t, owner, "select queues.max_outcome_bytes()::text"), fmt.Sprint(limit))
	supervisor := claim(t, worker, "db_function")
	supervisor.in(t, worker, true, func(run func(string, map[string]any) error, tx pgx.Tx) {
		enginetest.NoError(t, run("comms.send_email_supervisor", supervisor.payload))
	})
	email := claim(t, worker, "email")
	// The server makes the values, and the worker unsets its timeouts: 50 MB take
	// their time.
	_, err := worker.Exec(ctx, "set statement_timeout = 0; set idle_in_transaction_session_timeout = 0")
	enginetest.NoError(t, err)
	original, err := json.Marshal(email.payload)
	enginetest.NoError(t, err)
	outcome := func(size int) string {
		return fmt.Sprintf("jsonb_build_object('worker_payload', repeat('x', %d))", size-len(`{"worker_payload": ""}`))
	}
	report := func(size int) string {
		return fmt.Sprintf("jsonb_build_object('original_payload', '%s'::jsonb) || %s", original, outcome(size))
	}
	calls := map[string]func(size int) string{
		"run_function": func(size int) string {
			return fmt.Sprintf("internal.run_function('comms.record_email_success', %s)", report(size))
		},
		"handler": func(size int) string { return fmt.Sprintf("comms.record_email_success(%s)", report(size)) },
		"fail": func(size int) string {
			return fmt.Sprintf("queues.fail(%d, '%s', 'x', '0s', %s)", email.id, email.token, outcome(size))
		},
		"fail for good": func(size int) string {
			return fmt.Sprintf("queues.fail(%d, '%s', 'x', null, %s)", email.id, email.token, outcome(size))
		},
	}
	for name, call := range calls {
		sizes := map[int]string{limit: "", limit + 1: "54000"}
		if name == "run_function" {
			sizes[50<<20] = "54000"
		}
		for size, want := range sizes {
			email.in(t, worker, false, func(_ func(string, map[string]any) error, tx pgx.Tx) {
				if _, err := tx.Exec(ctx, "select "+call(size)); state(err) != want {
					t.Errorf("%s of %d bytes: %.200v, want %q", name, size, err, want)
				}
			})
		}
	}
	equal(t, "stored outcomes", db.Int(t, "select count(*) from queues.task where outcome is not null"), 0)
	f.hasFacts(t, "email", 1, 1, 0, 0)
}

// A result that cannot be stored does not make its send a failure, nor is it sent
// again.
func (Conformance) AResultThatIsTooLargeIsNoted(t *testing.T, db enginetest.Database) {
	large := func(ctx context.Context, payload json.RawMessage) (any, error) {
		return strings.Repeat("x", 2<<20), nil
	}
	f := newFixture(t, db, &task.Options{Senders: map[string]task.Sender{"email": large}})
	id := f.email(t)
	f.process(t, 2)
	f.hasFacts(t, "email", id, 1, 0, 1)
	f.isNoted(t)
}

// isNoted checks that the result of the one send that succeeded is a note.
func (f *fixture) isNoted(t *testing.T) {
	t.Helper()
	facts := "comms.send_email_task_succeeded"
	if f.db.Name == enginetest.SQLite {
		facts = "comms_send_email_task_succeeded"
	}
	equal(t, "noted results", f.db.Int(t, "select count(*) from "+facts+" where cast(worker_payload as text) like '%cannot be stored%'"), 1)
}

// PostgreSQL writes JSON with spaces: it refuses a result that has a MiB without
// them. The worker notes that, also if the handler could not take note at first.
func TestAResultThatTheDatabaseRefusesIsNoted(t *testing.T) {
	t.Parallel()
	for _, broken := range []bool{false, true} {
		t.Run(fmt.Sprintf("broken handler %v", broken), func(t *testing.T) {
			t.Parallel()
			db := enginetest.Empty(t, enginetest.Postgres)
			f := &fixture{db: db, eng: db.Open(t, nil)}
			owner := connect(t, db.DSN)
			handler := text(t, owner, "select pg_get_functiondef('comms.record_email_success(jsonb)'::regprocedure)")
			if broken {
				db.Exec(t, strings.Replace(handler, "begin", "begin raise exception 'no'; ", 1))
			}
			sent := 0
			worker, err := task.OpenWorker(t.Context(), as(t, db.DSN, "perdure_worker"), &task.Options{
				OnError: func(err error) { t.Errorf("worker: %v", err) },
				Senders: map[string]task.Sender{"email": func(context.Context, json.RawMessage) (any, error) {
					sent++
					return make([]int, 500_000), nil // 1,000,001 bytes, or 1.5 million with spaces
				}},
			})
			enginetest.NoError(t, err)
			defer func() { enginetest.NoError(t, worker.Close()) }()
			id := f.email(t)
			_, err = worker.Process(enginetest.Context(t))
			enginetest.NoError(t, err)
			if broken {
				equal(t, "outcomes that wait for their handler", db.Int(t, "select count(*) from queues.task where outcome::text like '%cannot be stored%'"), 1)
				_, err := owner.Exec(enginetest.Context(t), handler)
				enginetest.NoError(t, err)
			}
			enginetest.Eventually(t, "the send succeeds", func() bool {
				db.Exec(t, f.hastened())
				_, err = worker.Process(enginetest.Context(t))
				enginetest.NoError(t, err)
				return db.Int(t, "select count(*) from comms.send_email_task_succeeded") == 1
			})
			f.hasFacts(t, "email", id, 1, 0, 1)
			f.isNoted(t)
			equal(t, "sends", sent, 1)
		})
	}
}

// A worker can record a bounded number of errors for a task. What is dropped keeps
// it from nothing else.
func TestErrorsOfATaskAreBounded(t *testing.T) {
	t.Parallel()
	db := enginetest.Empty(t, enginetest.Postgres)
	f := &fixture{db: db, eng: db.Open(t, nil)}
	f.email(t)
	equal(t, "limit", db.Int(t, "select queues.max_errors()"), 10_000)
	db.Exec(t, "set role perdure_owner; create or replace function queues.max_errors() returns integer language sql immutable return 3")
	worker := connect(t, as(t, db.DSN, "perdure_worker"))
	h := claim(t, worker, "db_function")
	for range 5 {
		equal(t, "append_error", text(t, worker, "select queues.append_error($1, $2::uuid, repeat('x', 100000))::text", h.id, h.token), "true")
	}
	equal(t, "fail", text(t, worker, "select queues.fail($1, $2::uuid, 'x')::text", h.id, h.token), "true")
	equal(t, "errors", db.Int(t, "select count(*) from queues.error where length(error_message) <= 8192"), 3)
	equal(t, "failed", db.Int(t, "select count(*) from queues.task where status = 'failed'"), 1)
}
