package task_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/task"
)

// bench runs tasks that wait already and reports how many a second.
func bench(b *testing.B, enqueue func(f *fixture, n int) (tasks int)) {
	for _, name := range []string{enginetest.Postgres, enginetest.SQLite} {
		b.Run(name, func(b *testing.B) {
			db := enginetest.New(b, name)
			f := &fixture{db: db, eng: db.Open(b, nil)}
			f.admin, _ = task.NewAdmin(f.eng)
			f.worker = f.newWorker(b, &task.Options{
				Concurrency: 256,
				Senders:     map[string]task.Sender{"email": task.Files(b.TempDir())},
				Functions: map[string]task.Function{"biz.idle": func(context.Context, *perdure.Tx, json.RawMessage) (task.Envelope, error) {
					return task.OK(nil)
				}},
			})
			tasks := enqueue(f, b.N)
			if name == enginetest.Postgres {
				db.Exec(b, "vacuum analyze") // what was prepared is not what is measured
			}
			b.ResetTimer()
			ran, err := f.worker.Process(enginetest.Context(b))
			enginetest.NoError(b, err)
			b.StopTimer()
			if ran < tasks {
				b.Fatalf("ran %d of %d tasks; errors: %v", ran, tasks, f.errors(b))
			}
			b.ReportMetric(float64(ran)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

// BenchmarkFunctions runs functions that do nothing: the cost is the queue's.
func BenchmarkFunctions(b *testing.B) {
	bench(b, func(f *fixture, n int) int {
		if f.db.Name == enginetest.Postgres {
			f.db.Exec(b, `create schema biz authorization perdure_owner; set role perdure_owner;
				create function biz.idle(payload jsonb) returns jsonb language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
				begin perform queues.require_task('biz.idle', payload); return internal.ok(); end $$;
				select internal.allow_function('biz.idle')`)
		}
		f.fill(b, n, `{"db_function": "biz.idle"}`, "db_function")
		return n
	})
}

// BenchmarkEmails runs e-mail tasks, with their handlers, to the local sink.
func BenchmarkEmails(b *testing.B) {
	bench(b, func(f *fixture, n int) int {
		f.begin(b, n)
		return n
	})
}

// fill enqueues tasks with one statement.
func (f *fixture) fill(b *testing.B, n int, payload, taskType string) {
	b.Helper()
	if f.db.Name == enginetest.Postgres {
		f.db.Exec(b, "select queues.enqueue(?, ?::jsonb) from generate_series(1, ?)", taskType, payload, n)
		return
	}
	f.db.Exec(b, "with recursive n (i) as (select 1 union all select i + 1 from n where i < ?) insert into queues_task (task_type, payload, enqueued_at, scheduled_at) select ?, ?, 0, 0 from n", n, taskType, payload)
}

// begin makes sends whose first attempt is due.
func (f *fixture) begin(b *testing.B, n int) {
	b.Helper()
	for range n {
		f.email(b)
	}
	root, tasks, scheduled := f.table("comms", "send_email_task"), f.table("queues", "task"), f.table("comms", "send_email_task_scheduled")
	f.db.Exec(b, "insert into "+scheduled+" (send_email_task_id, attempt, task_id, created_at) select send_email_task_id, 1, send_email_task_id, created_at from "+root)
	payload := map[string]string{
		enginetest.Postgres: "jsonb_build_object('send_email_task_id', task_id, 'attempt', 1, 'before_handler', 'comms.get_email_payload', 'success_handler', 'comms.record_email_success')",
		enginetest.SQLite:   "json_object('send_email_task_id', task_id, 'attempt', 1, 'before_handler', 'comms.get_email_payload', 'success_handler', 'comms.record_email_success')",
	}[f.db.Name]
	f.db.Exec(b, "update "+tasks+" set task_type = 'email', payload = "+payload)
}
