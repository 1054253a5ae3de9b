package task_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/task"
)

// abandon claims the due tasks of the types, at most limit, like a worker that dies, and
// returns them to the queue.
func (f *fixture) abandon(t testing.TB, limit int, types ...string) {
	t.Helper()
	if len(f.claim(t, limit, 10*time.Second, types...)) == 0 {
		t.Fatal("no task was due")
	}
	f.clock.Advance(10 * time.Second)
	f.claim(t, 0, time.Second, "nothing") // returns expired claims
}

// begin runs due tasks in the background. wait returns when they have ended.
func begin(t testing.TB, worker *task.Worker) (wait func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := worker.Process(enginetest.Context(t))
		done <- err
	}()
	return func() {
		t.Helper()
		enginetest.NoError(t, <-done)
	}
}

// SuspectsRunInHalves after two workers crashed with all of them. Other tasks run as
// usual.
func (Conformance) SuspectsRunInHalves(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &task.Options{Lease: 10 * time.Second})
	f.provider.hold, f.provider.entered = make(chan struct{}), make(chan struct{}, 10)
	for range 4 {
		f.enqueue(t, "email", map[string]any{}, nil)
	}
	for range 2 {
		f.abandon(t, 10, "email")
	}
	f.enqueue(t, "sms", map[string]any{}, nil)
	wait := begin(t, f.worker)
	enginetest.Eventually(t, "half of the suspects and the other task run", func() bool { return len(f.provider.entered) == 3 })
	pending := f.pending(t)
	equal(t, "suspects that wait", len(pending), 2)
	for _, r := range pending {
		equal(t, "type", r.Type, "email")
	}
	at, err := f.worker.NextWakeAt(enginetest.Context(t))
	enginetest.NoError(t, err)
	equal(t, "next wake, for the leases and not for suspects that have to wait", at, f.clock.Now().Add(10*time.Second))
	equal(t, "tasks that started", len(f.provider.entered), 3)
	close(f.provider.hold)
	wait()
	equal(t, "tasks that wait", len(f.pending(t)), 0)
	equal(t, "calls of the provider", f.provider.count(), 5)
}

// OnlyTheTaskThatCrashesAloneIsQuarantined, even if others crashed as often with it.
func (Conformance) OnlyTheTaskThatCrashesAloneIsQuarantined(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &task.Options{MaxCrashes: 3})
	f.maxCrashes = 3
	poison := f.enqueue(t, "email", map[string]any{}, nil)
	with := f.enqueue(t, "sms", map[string]any{}, nil)
	f.abandon(t, 10, "email", "sms")
	f.abandon(t, 10, "email", "sms")
	f.abandon(t, 10, "email", "sms") // as a worker does that knows nothing of batches
	for _, id := range []int64{poison, with} {
		equal(t, "crashes", f.is(t, id, task.Ready).Crashes, 3)
	}
	f.abandon(t, 10, "email")
	equal(t, "crashes", f.is(t, poison, task.Quarantined).Crashes, 4)
	f.process(t, 1)
	f.is(t, with, task.Done)

	enginetest.NoError(t, f.admin.Retry(enginetest.Context(t), idOf(poison)))
	equal(t, "suspects after a retry", f.suspects(t), 0)
}

// AFailedAttemptClearsASuspect: its worker survived it.
func (Conformance) AFailedAttemptClearsASuspect(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	id := f.enqueue(t, "email", map[string]any{}, nil)
	f.abandon(t, 1, "email")
	equal(t, "suspects after a crash", f.suspects(t), 0)
	f.abandon(t, 1, "email")
	equal(t, "suspects after two crashes", f.suspects(t), 1)
	f.provider.answers = []error{retry.After(time.Second, errors.New("slow down"))}
	f.process(t, 1)
	equal(t, "crashes", f.is(t, id, task.Retrying).Crashes, 2)
	equal(t, "suspects after a failure", f.suspects(t), 0)
}

func (f *fixture) suspects(t testing.TB) int64 {
	t.Helper()
	return f.db.Int(t, "select count(*) from "+f.table("queues", "task")+" where status = 'pending' and batch_limit is not null")
}

// TheReaperJudgesAsInOtherKinds: the rules in the database are those of core.CrashVerdict.
func (Conformance) TheReaperJudgesAsInOtherKinds(t *testing.T, db enginetest.Database) {
	for _, maxCrashes := range []int{2, 3, 5} {
		f := newFixture(t, db, nil)
		f.maxCrashes = maxCrashes
		f.db.Exec(t, "delete from "+f.table("queues", "task"))
		losses := map[int64]core.Loss{}
		for _, crashes := range []int{0, 1, 2, 4} {
			for _, crowd := range [][2]int{{1, 0}, {1, 1}, {2, 0}, {3, 2}} { // tasks of its sort, and others
				losses[f.lose(t, nil, crashes, crowd)] = core.Loss{Crashes: crashes, Lost: crowd[0]}
				for _, limit := range []int{-3, -2, -1, 0, 1, 2, 5} {
					losses[f.lose(t, &limit, crashes, crowd)] = core.Loss{Crashes: crashes, Suspect: true, Limit: limit, Lost: crowd[0], Others: crowd[1]}
				}
			}
		}
		ids := fmt.Sprint(slices.Sorted(maps.Keys(losses)))
		f.db.Exec(t, "update "+f.table("queues", "task")+" set lease_expires_at = dequeued_at where task_id in ("+strings.ReplaceAll(ids[1:len(ids)-1], " ", ", ")+")")
		for range 2 { // a claim returns 100
			f.claim(t, 0, time.Second, "nothing")
		}
		for id, loss := range losses {
			equal(t, fmt.Sprintf("verdict about %+v with MaxCrashes %d", loss, maxCrashes), f.verdict(t, id), core.CrashVerdict(loss, maxCrashes))
		}
	}
}

// lose enqueues tasks that a worker has claimed: some like the returned one, and others.
func (f *fixture) lose(t testing.TB, limit *int, crashes int, crowd [2]int) (id int64) {
	t.Helper()
	like, unlike := "null", "1"
	if limit != nil {
		like, unlike = strconv.Itoa(*limit), "null"
	}
	first := int64(0)
	for n := range crowd[0] + crowd[1] {
		id = f.enqueue(t, "email", map[string]any{}, nil)
		if n == 0 {
			first = id
		}
	}
	equal(t, "claimed", len(f.claim(t, 100, time.Hour, "email")), crowd[0]+crowd[1])
	f.db.Exec(t, fmt.Sprintf(`update %s set worker = 'worker %d', crashes = %d, batch_limit = case when task_id < %d then %s else %s end
		where task_id >= %d`, f.table("queues", "task"), id, crashes, first+int64(crowd[1]), unlike, like, first))
	return id
}

// verdict reads the consequence of a crash.
func (f *fixture) verdict(t testing.TB, id int64) core.Verdict {
	t.Helper()
	r := f.get(t, id)
	v := core.Verdict{Crashes: r.Crashes, Delay: r.Scheduled.Sub(f.clock.Now()), Quarantined: r.Status == task.Quarantined}
	if text := f.db.Text(t, "select coalesce(cast(batch_limit as text), '') from "+f.table("queues", "task")+" where task_id = ?", id); text != "" {
		limit, err := strconv.Atoi(text)
		enginetest.NoError(t, err)
		v.Suspect, v.Limit = true, limit
	}
	return v
}

// A worker that calls the functions of the database without a batch limit gets one
// suspect at a time, and other tasks with it.
func TestOtherWorkersGetOneSuspectAtATime(t *testing.T) {
	t.Parallel()
	f := newFixture(t, enginetest.New(t, enginetest.Postgres), nil)
	for range 3 {
		f.enqueue(t, "email", map[string]any{}, nil)
	}
	f.abandon(t, 10, "email")
	f.abandon(t, 10, "email")
	for range 2 {
		f.enqueue(t, "sms", map[string]any{}, nil)
	}
	dequeue := func(worker string) int64 {
		t.Helper()
		return f.db.Int(t, "select count(*) filter (where batch_limit is not null) * 10 + count(*) from queues.dequeue_next_available_tasks($1, array['email', 'sms'], 2, '1 minute')", worker)
	}
	equal(t, "a suspect and another task", dequeue("w"), 12)
	equal(t, "only another task, while the suspect runs", dequeue("w"), 1)
	equal(t, "due tasks for such a worker", f.db.Int(t, "select count(*) from queues.next_task_in(array['email']) n where n <= 0"), 0)
	equal(t, "a suspect for another worker", dequeue("v"), 11)
}
