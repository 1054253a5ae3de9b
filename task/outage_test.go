package task_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/outagetest"
	"github.com/perdure/perdure/task"
)

// tasksProcess is a process that runs tasks.
type tasksProcess struct {
	*task.Worker
	eng *perdure.Engine
}

// Add implements outagetest.Process.
func (p tasksProcess) Add(ctx context.Context, id string) error {
	return p.eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := task.EnqueueIn(tx, "email", map[string]any{"id": id}, nil)
		return err
	})
}

// Only a lost worker counts as a crash of its tasks.
func TestOutages(t *testing.T) {
	t.Parallel()
	outagetest.Conform(t, outagetest.Kind{
		Schema: "queues", Table: "task", Left: "status <> 'completed'",
		Open: func(t *testing.T, db enginetest.Database, o outagetest.Options) outagetest.Process {
			t.Helper()
			f := &fixture{db: db, eng: db.Open(t, &perdure.Options{Clock: o.Clock})}
			return tasksProcess{f.newWorker(t, &task.Options{
				Lease: o.Lease, OnError: o.OnError,
				Senders: map[string]task.Sender{"email": func(ctx context.Context, _ json.RawMessage) (any, error) { o.Run(ctx); return nil, nil }},
			}), f.eng}
		},
		Refuse: map[string]string{
			enginetest.SQLite: "create trigger odd before update on queues_task when new.status in ('completed', 'failed') or new.attempts > old.attempts begin select raise(abort, 'something odd'); end",
			enginetest.Postgres: `create function public.odd() returns trigger language plpgsql as $$ begin raise exception 'something odd' using errcode = 'P0001'; end $$;
				create trigger odd before update on queues.task for each row when (new.attempts > old.attempts) execute function public.odd()`,
		},
		Accept: map[string]string{enginetest.SQLite: "drop trigger odd", enginetest.Postgres: "drop trigger odd on queues.task"},
	}, enginetest.SQLite, enginetest.Postgres)
}
