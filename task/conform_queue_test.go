package task_test

import (
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/task"
)

// claim takes due tasks as a worker does that then does nothing more.
func (f *fixture) claim(t testing.TB, limit int, lease time.Duration, types ...string) []store.Task {
	t.Helper()
	ctx, rt := enginetest.Context(t), host.Of(f.eng)
	tx, err := rt.DB.Begin(ctx, sqldb.Urgent)
	enginetest.NoError(t, err)
	defer tx.Rollback()
	claimed, _, err := rt.Store.ClaimTasks(ctx, tx, store.TaskClaim{
		Worker: rand.Text(), Types: types, Limit: limit, Lease: lease, MaxCrashes: max(f.maxCrashes, 2), MayReap: true, Least: math.MinInt32,
	}, rt.Now())
	enginetest.NoError(t, err)
	enginetest.NoError(t, tx.Commit(ctx))
	return claimed
}

func (Conformance) Case59AnEmptyQueueYieldsNoTask(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	equal(t, "tasks of an empty queue", len(f.claim(t, 10, time.Minute, "email", "db_function")), 0)
	f.process(t, 0)
	at, err := f.worker.NextWakeAt(enginetest.Context(t))
	enginetest.NoError(t, err)
	equal(t, "next wake", at, time.Time{})
	if db.Name == enginetest.Postgres {
		equal(t, "rows of dequeue_next_available_task", db.Int(t, "select count(*) from queues.dequeue_next_available_task()"), 0)
	}
}

func (Conformance) Case60TheFutureWaitsAndTheOldestIsFirst(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	late := f.enqueue(t, "email", map[string]any{"n": 0}, &task.EnqueueOptions{Delay: time.Minute})
	var want []int64
	for _, back := range []int{1, 3, 2, 3} {
		id := f.enqueue(t, []string{"email", "sms"}[back%2], map[string]any{}, &task.EnqueueOptions{At: noon.Add(-time.Duration(back) * time.Second)})
		want = append(want, id)
	}
	want = []int64{want[1], want[3], want[2], want[0]}
	var got []int64
	for range 2 {
		claimed := f.claim(t, 2, time.Hour, "email", "sms")
		slices.SortFunc(claimed, func(a, b store.Task) int { return a.Scheduled.Compare(b.Scheduled)*10 + int(a.ID-b.ID) })
		for _, c := range claimed {
			got = append(got, c.ID)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("order is %v, want %v", got, want)
	}
	equal(t, "more", len(f.claim(t, 2, time.Minute, "email", "sms")), 0)
	at, err := f.worker.NextWakeAt(enginetest.Context(t))
	enginetest.NoError(t, err)
	equal(t, "next wake", at, noon.Add(time.Minute))
	f.is(t, late, task.Scheduled)
	f.clock.Advance(time.Minute - time.Microsecond)
	equal(t, "a microsecond before", len(f.claim(t, 2, time.Hour, "email")), 0)
	f.clock.Advance(time.Microsecond)
	equal(t, "exactly then", len(f.claim(t, 2, time.Hour, "email")), 1)
}

// Case 61 in one process: many claimers at once, nothing is claimed twice. See
// TestSoak for processes.
func (Conformance) Case61NothingIsClaimedTwice(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	n := soak(300, 3000)
	if db.Name == enginetest.Postgres {
		db.Exec(t, "select queues.enqueue('email', '{}', '2026-03-01 11:00Z') from generate_series(1, ?)", n)
	} else {
		db.Exec(t, "with recursive n (i) as (select 1 union all select i + 1 from n where i < ?) insert into queues_task (task_type, payload, enqueued_at, scheduled_at) select 'email', '{}', 0, 0 from n", n)
	}
	var mu sync.Mutex
	claims := map[int64]int{}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for {
				claimed := f.claim(t, 3, time.Hour, "email")
				if len(claimed) == 0 {
					return
				}
				mu.Lock()
				for _, c := range claimed {
					claims[c.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id, times := range claims {
		if times != 1 {
			t.Errorf("task %d was claimed %d times", id, times)
		}
	}
	f.clock.Advance(time.Second)
	left := f.claim(t, 1000, time.Hour, "email") // those that others had locked for a moment
	equal(t, "claimed", len(claims)+len(left), n)
}

// Case 62: the task of a worker that died is taken again when its lease is over.
func (Conformance) Case62TheTaskOfADeadWorkerIsTakenAgain(t *testing.T, db enginetest.Database) {
	var crashes []perdure.Crash
	f := newFixture(t, db, &task.Options{OnCrash: func(c perdure.Crash) { crashes = append(crashes, c); panic("must not matter") }})
	id := f.email(t)
	f.claim(t, 1, 30*time.Second, "db_function")
	f.after(t, 30*time.Second-time.Microsecond, 0)
	f.after(t, time.Microsecond, 2) // the supervisor, and its e-mail
	f.hasFacts(t, "email", id, 1, 0, 1)
	f.hasErrors(t, "worker was lost while the task ran")
	equal(t, "crashes", len(crashes), 1)
	equal(t, "crash", crashes[0], perdure.Crash{Kind: "task", ID: "1", Name: "db_function", Crashes: 1})
	r := f.is(t, 1, task.Done)
	equal(t, "attempts", r.Attempts, 1)
	equal(t, "crashes", r.Crashes, 1)
	f.after(t, 5*time.Second, 1)
	f.after(t, time.Hour, 0)
}

// Correction 9: an attempt whose workers all die is counted as failed, the next
// one is begun, and the supervisor ends.
func (Conformance) Case62AnAttemptWithoutOutcomeCountsAsFailed(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &task.Options{MaxCrashes: 2})
	id := f.email(t)
	f.runFirst(t)
	for range 3 {
		equal(t, "e-mails claimed", len(f.claim(t, 1, time.Second, "email")), 1)
		f.clock.Advance(time.Second)
		f.claim(t, 0, time.Second, "nothing") // returns what has expired
		f.clock.Advance(time.Second)
	}
	f.is(t, 2, task.Quarantined)
	f.after(t, time.Minute, 2) // the supervisor counts it, and begins the second attempt
	f.hasFacts(t, "email", id, 2, 1, 1)
	equal(t, "reason", f.db.Text(t, "select error_message from "+f.table("comms", "send_email_task_failed")), "attempt ended without an outcome")
	f.after(t, time.Minute, 1)
	f.after(t, time.Hour, 0)
}

// runFirst runs the first task, a function, and nothing that it makes due.
func (f *fixture) runFirst(t testing.TB) {
	t.Helper()
	_, err := f.newWorker(t, &task.Options{Concurrency: 1}).Start(enginetest.Context(t))
	enginetest.NoError(t, err)
	enginetest.Eventually(t, "the function ends", func() bool { return f.get(t, 1).Status == task.Done })
}

// Case 66: two supervisors of one send at the same time schedule one attempt.
func (Conformance) Case66TwoSupervisorsAtOnceScheduleOnce(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.onlyFunctions(t)
	id := f.email(t)
	for range 15 {
		f.enqueue(t, "db_function", map[string]any{"db_function": "comms.send_email_supervisor", "send_email_task_id": id}, nil)
	}
	f.process(t, 16)
	f.hasErrors(t)
	f.hasFacts(t, "email", id, 1, 0, 0)
	equal(t, "supervisors", len(f.pending(t)), 17)
}

// A worker that has lost its task records nothing, whatever it has done.
func (Conformance) AStaleWorkerRecordsNothing(t *testing.T, db enginetest.Database) {
	lost := make(chan error, 4)
	f := newFixture(t, db, &task.Options{Lease: 10 * time.Second, OnError: func(err error) { lost <- err }})
	f.provider.hold, f.provider.entered = make(chan struct{}), make(chan struct{}, 4)
	id := f.email(t)
	f.runFirst(t)
	_, err := f.worker.Start(enginetest.Context(t))
	enginetest.NoError(t, err)
	<-f.provider.entered
	// The e-mail's worker is silent for longer than its lease; another one takes it.
	f.db.Exec(t, "update "+f.table("queues", "task")+" set lease_expires_at = dequeued_at where status = 'processing'")
	equal(t, "taken again", len(f.claim(t, 1, time.Hour, "email")), 1)
	close(f.provider.hold)
	enginetest.Is(t, <-lost, core.ErrLost)
	f.hasFacts(t, "email", id, 1, 0, 0)
	f.hasErrors(t, "worker was lost")

	// The other one dies too. Whoever sends it again does so with the same key.
	f.provider.hold = nil
	for _, wait := range []time.Duration{time.Hour, time.Second} { // what has crashed before waits a moment
		f.clock.Advance(wait)
		_, err = f.worker.Process(enginetest.Context(t))
		enginetest.NoError(t, err)
	}
	f.hasFacts(t, "email", id, 1, 0, 1)
	equal(t, "calls of the provider", f.provider.count(), 2)
	equal(t, "what is sent again", string(f.provider.sent[1]), string(f.provider.sent[0]))
	equal(t, "crashes that the sender knows of", f.provider.infos[1].Crashes, 2)
	equal(t, "key of the task", f.provider.infos[1].Key, f.provider.infos[0].Key)
}

func (Conformance) ALongSendIsKeptAliveByHeartbeats(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &task.Options{Lease: 10 * time.Second, Timeout: time.Hour})
	f.provider.hold, f.provider.entered = make(chan struct{}), make(chan struct{}, 4)
	id := f.enqueue(t, "email", map[string]any{}, nil)
	_, err := f.worker.Start(enginetest.Context(t))
	enginetest.NoError(t, err)
	<-f.provider.entered
	for range 10 {
		enginetest.Eventually(t, "the worker sleeps", func() bool { return f.clock.Timers() >= 2 })
		before := f.get(t, id).LeaseExpires
		f.clock.Advance(2 * time.Second)
		enginetest.Eventually(t, "the lease is renewed", func() bool { return f.get(t, id).LeaseExpires.After(before) })
		equal(t, "claims by others", len(f.claim(t, 1, time.Minute, "email")), 0)
	}
	close(f.provider.hold)
	enginetest.NoError(t, f.worker.Drain(enginetest.Context(t)))
	f.is(t, id, task.Done)
	equal(t, "calls of the provider", f.provider.count(), 1)
}

func (Conformance) DoneTasksAreRemovedAfterTheirRetention(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &task.Options{Retention: 2 * time.Hour})
	old := f.enqueue(t, "email", map[string]any{}, nil)
	f.process(t, 1)
	f.clock.Advance(2 * time.Hour)
	f.enqueue(t, "email", map[string]any{}, nil)
	f.process(t, 1)
	enginetest.Eventually(t, "the old one is gone", func() bool {
		return f.db.Int(t, "select count(*) from "+f.table("queues", "task")+" where task_id = ?", old) == 0
	})
	equal(t, "tasks", f.db.Rows(t, "queues", "task"), 1)
}

func (Conformance) OperatorsListRetryAndCancel(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	for i := range 5 {
		f.enqueue(t, "db_function", map[string]any{"db_function": fmt.Sprintf("no.function%d", i)}, nil)
	}
	f.process(t, 5)
	page, next, err := f.admin.List(ctx, task.Filter{Type: "db_function", Statuses: []task.Status{task.Failed}}, "", 3)
	enginetest.NoError(t, err)
	equal(t, "first page", len(page), 3)
	rest, end, err := f.admin.List(ctx, task.Filter{}, next, 3)
	enginetest.NoError(t, err)
	equal(t, "second page", fmt.Sprintf("%d %q", len(rest), end), `2 ""`)
	errors, next, err := f.admin.Errors(ctx, "", "", 4)
	enginetest.NoError(t, err)
	equal(t, "errors", fmt.Sprint(len(errors), next != ""), "4 true")
	errors, _, err = f.admin.Errors(ctx, page[0].ID, "", 4)
	enginetest.NoError(t, err)
	equal(t, "errors of one", len(errors), 1)

	enginetest.NoError(t, f.admin.Retry(ctx, "1"))
	equal(t, "attempts after a retry", f.is(t, 1, task.Ready).Attempts, 0)
	enginetest.NoError(t, f.admin.Cancel(ctx, "1"))
	f.is(t, 1, task.Cancelled)
	equal(t, "status", enginetest.As[*perdure.StateError](t, f.admin.Cancel(ctx, "1")).Status, string(task.Cancelled))
	f.process(t, 0)
	f.clock.Advance(48 * time.Hour)
	tasks, err := f.admin.Purge(ctx, time.Hour)
	enginetest.NoError(t, err)
	messages, err := f.admin.PurgeErrors(ctx, time.Hour)
	enginetest.NoError(t, err)
	equal(t, "purged", fmt.Sprint(tasks, messages), "1 5")
}

func (Conformance) OperatorsDeleteTasksThatDoNotRun(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	waiting := f.enqueue(t, "db_function", map[string]any{"db_function": "no.function"}, &task.EnqueueOptions{Delay: time.Hour})
	failed := f.enqueue(t, "db_function", map[string]any{"db_function": "no.function"}, nil)
	f.process(t, 1)
	running := f.enqueue(t, "db_function", map[string]any{"db_function": "no.function"}, nil)
	equal(t, "claimed", len(f.claim(t, 1, time.Minute, "db_function")), 1)

	equal(t, "status", enginetest.As[*perdure.StateError](t, f.admin.Delete(ctx, idOf(running))).Status, string(task.Running))
	f.is(t, running, task.Running)
	for _, id := range []int64{waiting, failed} {
		enginetest.NoError(t, f.admin.Delete(ctx, idOf(id)))
		_, err := f.admin.Get(ctx, idOf(id))
		enginetest.As[*fault.NotFound](t, err)
	}
	for _, id := range []string{idOf(waiting), "x", "", "-1", "+1", "007"} {
		enginetest.As[*fault.NotFound](t, f.admin.Delete(ctx, id))
		enginetest.As[*fault.NotFound](t, f.admin.Cancel(ctx, id))
		enginetest.As[*fault.NotFound](t, f.admin.Retry(ctx, id))
		_, err := f.admin.Attempts(ctx, id)
		enginetest.As[*fault.NotFound](t, err)
	}
	equal(t, "tasks", f.db.Rows(t, "queues", "task"), 1)
}
