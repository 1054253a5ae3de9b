package task_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/task"
)

// bury makes a task a dead letter of the past.
func (f *fixture) bury(t testing.TB, id int64) {
	t.Helper()
	past := "timestamptz '2020-01-01Z'"
	if f.db.Name == enginetest.SQLite {
		past = "0"
	}
	f.db.Exec(t, "update "+f.table("queues", "task")+" set status = 'failed', finished_at = "+past+" where task_id = "+strconv.FormatInt(id, 10))
}

func (Conformance) DeadTasksAreRemovedAfterTheirRetention(t *testing.T, db enginetest.Database) {
	for keep, status := range map[time.Duration]task.Status{0: "", -1: task.Failed} { // 30 days; no limit
		f := newFixture(t, enginetest.New(t, db.Name), &task.Options{DeadRetention: keep})
		id := f.enqueue(t, "email", map[string]any{"task_type": "email"}, nil)
		f.bury(t, id)
		f.email(t)
		_, err := f.worker.Process(enginetest.Context(t)) // a sweep follows
		enginetest.NoError(t, err)
		if status != "" {
			f.is(t, id, status)
			continue
		}
		_, err = f.admin.Get(enginetest.Context(t), idOf(id))
		enginetest.As[*fault.NotFound](t, err)
	}
}

func (Conformance) DeadTasksArePurgedSeparately(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	id := f.enqueue(t, "email", map[string]any{"task_type": "email"}, nil)
	f.bury(t, id)
	ctx := enginetest.Context(t)
	tasks, err := f.admin.Purge(ctx, 0)
	enginetest.NoError(t, err)
	equal(t, "removed with the others", tasks, 0)
	f.is(t, id, task.Failed)
	tasks, err = f.admin.PurgeDead(ctx, time.Hour)
	enginetest.NoError(t, err)
	equal(t, "removed", tasks, 1)
	_, err = f.admin.PurgeDead(ctx, -1)
	enginetest.As[*fault.Invalid](t, err)
}
