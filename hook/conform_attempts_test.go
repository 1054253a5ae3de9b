package hook_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// attempts reads the attempts of a hook.
func (f *fixture) attempts(t testing.TB, id string) []retry.Attempt {
	t.Helper()
	attempts, err := f.admin.Attempts(enginetest.Context(t), id)
	enginetest.NoError(t, err)
	return attempts
}

// recorded returns how many attempts are in the table.
func (f *fixture) recorded(t testing.TB) int64 {
	t.Helper()
	return f.db.Rows(t, "perdure", "attempts")
}

func (Conformance) EachAttemptIsToldWithItsTimeAndError(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	tries := 0
	f.handle(t, "a", func(context.Context, string) error {
		tries++
		f.clock.Advance(time.Duration(tries) * time.Second)
		if tries < 3 {
			return fmt.Errorf("no luck %d", tries)
		}
		return nil
	})
	id := f.trigger(t, "a", &hook.TriggerOptions{Retry: retry.Fixed(5, time.Minute)})
	if got := f.attempts(t, id); len(got) != 0 {
		t.Fatalf("before the first attempt there are %+v", got)
	}
	var began []time.Time
	for range 3 {
		began = append(began, f.clock.Now())
		f.process(t, 1)
		f.clock.Advance(time.Minute)
	}
	got := f.attempts(t, id)
	equal(t, "attempts", len(got), 3)
	for i, a := range got {
		took := time.Duration(i+1) * time.Second
		want := retry.Attempt{
			Number: i + 1, Outcome: retry.Failed, Error: fmt.Sprintf("no luck %d", i+1), Worker: a.Worker, Began: began[i], Ended: began[i].Add(took),
		}
		if i == 2 {
			want.Outcome, want.Error = retry.Succeeded, ""
		}
		equal(t, fmt.Sprintf("attempt %d", i+1), a, want)
		equal(t, "a worker", a.Worker != "", true)
	}
	equal(t, "recorded, success costs nothing", f.recorded(t), 2)
	equal(t, "worker of a hook that is done", f.get(t, id).Worker, "")
}

func (Conformance) AnAttemptThatPanicsIsToldWithItsStack(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", func(context.Context, string) error { panic("oh no") })
	id := f.trigger(t, "a", &hook.TriggerOptions{Retry: retry.None()})
	f.process(t, 1)
	got := f.attempts(t, id)
	equal(t, "attempts", len(got), 1)
	if !strings.Contains(got[0].Error, "oh no") || !strings.Contains(got[0].Error, "conform_attempts_test.go") {
		t.Fatalf("the error is %q", got[0].Error)
	}
}

func (Conformance) AnAttemptThatLosesItsProcessIsToldAsLost(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &hook.Options{MaxCrashes: 3})
	f.handle(t, "a", nil)
	id := f.trigger(t, "a", nil)
	f.abandon(t, 30*time.Second)
	running := retry.Attempt{Number: 1, Outcome: retry.Running, Worker: "dead", Began: noon}
	equal(t, "attempt that runs", f.attempts(t, id)[0], running)

	f.clock.Advance(30 * time.Second)
	f.reap(t)
	lost := retry.Attempt{Number: 1, Outcome: retry.Lost, Error: f.get(t, id).Error, Worker: "dead", Began: noon, Ended: noon.Add(30 * time.Second)}
	got := f.attempts(t, id)
	equal(t, "attempts", len(got), 1)
	equal(t, "attempt that was lost", got[0], lost)
	f.process(t, 1)
	got = f.attempts(t, id)
	equal(t, "attempts", len(got), 2)
	equal(t, "number of the one that succeeded", got[1].Number, 2)
	equal(t, "outcome", got[1].Outcome, retry.Succeeded)
}

// The outcome of a process that has lost its claim is not an attempt.
func (Conformance) AWorkerThatLostItsClaimRecordsNoAttempt(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &hook.Options{Concurrency: 1, OnError: func(error) {}})
	running, release := make(chan struct{}), make(chan struct{})
	f.handle(t, "a", func(context.Context, string) error {
		close(running)
		<-release
		return errors.New("late")
	})
	id := f.trigger(t, "a", nil)
	wait := begin(t, f.hooks)
	<-running
	db.Exec(t, "delete from "+db.Table("perdure", "leases"))
	other := newHooks(t, f.eng, f.hooks.Namespace(), nil)
	f.run(t, host.Of(f.eng).Store.Hooks().Ready([]string{id})) // as the reaper does
	define(t, other, "a", func(context.Context, string) error { return nil })
	process(t, other, 1)
	f.is(t, id, hook.Done)
	close(release)
	wait()
	equal(t, "recorded", f.recorded(t), 0)
	equal(t, "attempts", f.is(t, id, hook.Done).Attempts, 1)
}

func (f *fixture) run(t testing.TB, stmts ...sqldb.Stmt) {
	t.Helper()
	tx, err := host.Of(f.eng).DB.Begin(enginetest.Context(t), sqldb.Write)
	enginetest.NoError(t, err)
	defer tx.Rollback()
	enginetest.NoError(t, tx.Run(enginetest.Context(t), stmts...))
	enginetest.NoError(t, tx.Commit(enginetest.Context(t)))
}

func (Conformance) AnOutcomeThatIsRolledBackLeavesNoAttempt(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &hook.Options{OnError: func(error) {}})
	f.handle(t, "a", fail)
	id := f.trigger(t, "a", &hook.TriggerOptions{Retry: retry.None()})
	db.Exec(t, refuseEnds[db.Name])
	process(t, f.hooks, 1)
	equal(t, "recorded", f.recorded(t), 0)
	equal(t, "attempts", f.is(t, id, hook.Scheduled).Attempts, 0)
}

func (Conformance) AnAttemptThatIsCancelledIsTold(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	id := f.trigger(t, "a", nil)
	waiting := f.trigger(t, "b", nil)
	f.abandon(t, 30*time.Second)
	f.clock.Advance(time.Second)
	for _, cancelled := range []string{id, waiting} {
		enginetest.NoError(t, f.admin.Cancel(enginetest.Context(t), cancelled))
	}
	got := f.attempts(t, id)
	equal(t, "attempts", len(got), 1)
	want := retry.Attempt{Number: 1, Outcome: retry.Cancelled, Error: "cancelled while it ran", Worker: "dead", Began: noon, Ended: noon.Add(time.Second)}
	equal(t, "attempt", got[0], want)
	equal(t, "attempts of the one that waited", len(f.attempts(t, waiting)), 0)
}

func (Conformance) TheNewestAttemptsAreKept(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", fail)
	const more = 3
	id := f.trigger(t, "a", &hook.TriggerOptions{Retry: retry.Fixed(retry.MaxRecorded+more, time.Second)})
	for range retry.MaxRecorded + more {
		f.process(t, 1)
		f.clock.Advance(time.Second)
	}
	f.is(t, id, hook.Failed)
	got := f.attempts(t, id)
	equal(t, "attempts", len(got), retry.MaxRecorded)
	equal(t, "oldest", got[0].Number, more+1)
	equal(t, "newest", got[len(got)-1].Number, retry.MaxRecorded+more)

	enginetest.NoError(t, f.admin.Retry(enginetest.Context(t), id))
	f.process(t, 1)
	got = f.attempts(t, id)
	equal(t, "attempts after a retry", len(got), retry.MaxRecorded)
	equal(t, "number of the first after a retry", got[len(got)-1].Number, 1)
}

func (Conformance) AttemptsAreRemovedWithTheirHook(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	succeed := false
	f.handle(t, "a", func(context.Context, string) error {
		if succeed {
			return nil
		}
		return errors.New("no luck")
	})
	deleted := f.trigger(t, "a", nil)
	var purged []string
	for range 3 {
		purged = append(purged, f.trigger(t, "a", nil))
	}
	f.process(t, 4)
	equal(t, "recorded", f.recorded(t), 4)
	enginetest.NoError(t, f.admin.Delete(enginetest.Context(t), deleted))
	equal(t, "recorded after the end of one", f.recorded(t), 3)
	_, err := f.admin.Attempts(enginetest.Context(t), deleted)
	var missing *fault.NotFound
	equal(t, "attempts of a hook that is gone are not found", errors.As(err, &missing), true)

	succeed = true
	f.clock.Advance(time.Hour)
	f.process(t, 3)
	f.clock.Advance(time.Hour)
	n, err := f.admin.Purge(enginetest.Context(t), time.Minute)
	enginetest.NoError(t, err)
	equal(t, "purged", n, int64(len(purged)))
	equal(t, "recorded after retention", f.recorded(t), 0)
}
