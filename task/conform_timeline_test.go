package task_test

import (
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/task"
)

// attempts reads the attempts of a task.
func (f *fixture) attempts(t testing.TB, id int64) []retry.Attempt {
	t.Helper()
	attempts, err := f.admin.Attempts(enginetest.Context(t), idOf(id))
	enginetest.NoError(t, err)
	return attempts
}

func (Conformance) TheFactsOfAProcessAreToldWithItsTasks(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.provider.answers = []error{errors.New("provider is down")}
	f.email(t)
	f.process(t, 2) // supervisor #1, e-mail attempt #1
	f.after(t, 5*time.Second, 2)
	want := []task.Fact{
		{Kind: "scheduled", Attempt: 1, Task: "2", At: noon},
		{Kind: "failed", Attempt: 1, Error: "provider is down", At: noon},
		{Kind: "scheduled", Attempt: 2, Task: "4", At: noon.Add(5 * time.Second)},
		{Kind: "succeeded", Attempt: 2, At: noon.Add(5 * time.Second)},
	}
	for _, id := range []int64{1, 2, 4} { // a supervisor and both attempts
		facts, err := f.admin.Facts(enginetest.Context(t), idOf(id))
		enginetest.NoError(t, err)
		equal(t, "facts", len(facts), len(want))
		for i := range facts {
			equal(t, "fact", facts[i], want[i])
		}
	}
	failed := f.attempts(t, 2)
	equal(t, "attempts of the task that sent nothing", len(failed), 1)
	equal(t, "its attempt", failed[0], retry.Attempt{Number: 1, Outcome: retry.Failed, Error: "provider is down", Began: noon, Ended: noon})
	sent := f.attempts(t, 4)
	equal(t, "attempts of the task that sent", len(sent), 1)
	equal(t, "its outcome", sent[0].Outcome, retry.Succeeded)
}

func (Conformance) ATaskThatLosesItsWorkerIsToldSo(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	id := f.enqueue(t, "email", map[string]any{}, nil)
	facts, err := f.admin.Facts(enginetest.Context(t), idOf(id))
	enginetest.NoError(t, err)
	equal(t, "facts of a task of no process", len(facts), 0)
	equal(t, "attempts before the first", len(f.attempts(t, id)), 0)
	f.claim(t, 1, 10*time.Second, "email")
	running := f.attempts(t, id)
	equal(t, "attempts", len(running), 1)
	equal(t, "attempt that runs", running[0], retry.Attempt{Number: 1, Outcome: retry.Running, Worker: running[0].Worker, Began: noon})

	f.clock.Advance(10 * time.Second)
	f.claim(t, 1, 10*time.Second, "none")
	lost := f.attempts(t, id)
	equal(t, "attempts", len(lost), 1)
	equal(t, "attempt that was lost", lost[0], retry.Attempt{
		Number: 1, Outcome: retry.Lost, Error: "worker was lost while the task ran", Began: noon, Ended: noon.Add(10 * time.Second),
	})
	_, err = f.admin.Attempts(enginetest.Context(t), "99")
	var missing *fault.NotFound
	equal(t, "attempts of no task are not found", errors.As(err, &missing), true)
}
