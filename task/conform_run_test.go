package task_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/task"
)

// A task that waits for its due time can be run now, a finished or running one cannot.
func (Conformance) AnOperatorRunsWaitingTasksNow(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	waiting := f.enqueue(t, "db_function", map[string]any{"db_function": "no.function"}, &task.EnqueueOptions{Delay: time.Hour})
	f.process(t, 0)
	enginetest.NoError(t, f.admin.RunNow(ctx, idOf(waiting)))
	equal(t, "scheduled", f.is(t, waiting, task.Ready).Scheduled, f.clock.Now())
	f.process(t, 1)
	equal(t, "attempts", f.is(t, waiting, task.Failed).Attempts, 1)
	equal(t, "status", enginetest.As[*perdure.StateError](t, f.admin.RunNow(ctx, idOf(waiting))).Status, string(task.Failed))
	f.enqueue(t, "db_function", map[string]any{"db_function": "no.function"}, nil)
	claimed := f.claim(t, 1, time.Minute, "db_function")
	equal(t, "claimed", len(claimed), 1)
	equal(t, "status", enginetest.As[*perdure.StateError](t, f.admin.RunNow(ctx, idOf(claimed[0].ID))).Status, string(task.Running))
	enginetest.As[*fault.NotFound](t, f.admin.RunNow(ctx, "77"))
}
