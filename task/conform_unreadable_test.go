package task_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/task"
)

// A row that Go cannot hold, or whose texts mean nothing, stops neither the tasks
// of its type nor a list.
func (Conformance) NoTaskStopsOthers(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	set := func(column, to string) int64 {
		id := f.enqueue(t, "email", map[string]any{}, nil)
		f.db.SetTime(t, "queues", "task", column, to, "task_id = ?", id)
		return id
	}
	early := set("scheduled_at", enginetest.Beginningless)
	never := set("scheduled_at", enginetest.Endless)
	set("enqueued_at", enginetest.Beginningless)
	set("enqueued_at", enginetest.Endless)
	broken := f.enqueue(t, "email", map[string]any{}, nil)
	f.db.Exec(t, "update "+f.table("queues", "task")+" set outcome = '[1]' where task_id = ?", broken)
	fine := f.enqueue(t, "email", map[string]any{}, nil)

	f.process(t, 5)
	f.is(t, early, task.Done)
	f.is(t, fine, task.Done)
	f.is(t, never, task.Scheduled)
	if r := f.get(t, broken); r.Status == task.Done {
		t.Errorf("a task with an unreadable outcome is %s", r.Status)
	}
	records, _, err := f.admin.List(enginetest.Context(t), task.Filter{}, "", 100)
	enginetest.NoError(t, err)
	equal(t, "tasks", len(records), 6)
	for _, r := range records {
		if _, err := json.Marshal([]any{r.Scheduled, r.Enqueued, r.Dequeued, r.Finished}); err != nil {
			t.Errorf("task %s: %v", r.ID, err)
		}
	}
	next, err := f.worker.NextWakeAt(enginetest.Context(t))
	enginetest.NoError(t, err)
	if next.Before(f.clock.Now()) {
		t.Errorf("the worker looks again at %v, now is %v", next, f.clock.Now())
	}
}

func (Conformance) ATimeThatCannotBeStoredIsRefused(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	for _, at := range []time.Time{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		err := f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
			_, err := task.EnqueueIn(tx, "email", map[string]any{}, &task.EnqueueOptions{At: at})
			return err
		})
		equal(t, "field", enginetest.As[*fault.Invalid](t, err).Field, "EnqueueOptions.At")
	}
	if db.Name == enginetest.Postgres {
		raw := db.SQL(t)
		for _, at := range []string{"infinity", "-infinity", "10000-01-01", "0044-03-15 BC"} {
			for _, query := range []string{
				"select queues.enqueue('email', '{}', $1)",
				"select comms.create_and_kickoff_email_task('a@example.com', 'b@example.com', 'Hello', 'Hello', null, $1)",
				"select comms.create_and_kickoff_sms_task('+491701234567', 'Hello', null, $1)",
			} {
				_, err := raw.ExecContext(enginetest.Context(t), query, at)
				equal(t, query+" "+at, store.SQLState(err), invalid) // an invalid parameter value
			}
			_, err := raw.ExecContext(enginetest.Context(t), "insert into queues.task (task_type, payload, scheduled_at) values ('email', '{}', $1)", at)
			equal(t, "insert "+at, store.SQLState(err), "23514")
		}
	}
	equal(t, "tasks", f.db.Rows(t, "queues", "task"), 0)
	f.process(t, 0)
}
