package alarm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// attempts reads the attempts of an alarm.
func (f *fixture) attempts(t testing.TB, key alarm.Key) []retry.Attempt {
	t.Helper()
	attempts, err := f.alarms.Attempts(enginetest.Context(t), key)
	enginetest.NoError(t, err)
	return attempts
}

// recorded ends the test unless that many attempts are in the table.
func (f *fixture) recorded(t testing.TB, want int64) {
	t.Helper()
	equal(t, "recorded attempts", f.db.Rows(t, "perdure", "attempts"), want)
}

func unlucky(context.Context, string) error { return errors.New("no luck") }

func (Conformance) EachAttemptIsToldWithItsTimeAndError(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	tries := 0
	f.handle(t, "a", func(context.Context, string) error {
		tries++
		f.clock.Advance(time.Duration(tries) * time.Second)
		return fmt.Errorf("no luck %d", tries)
	})
	key := f.schedule(t, "x", "a", &alarm.ScheduleOptions{Retry: retry.Fixed(2, time.Minute)})
	equal(t, "attempts before the first", len(f.attempts(t, key)), 0)
	var began []time.Time
	for range 2 {
		began = append(began, f.clock.Now())
		f.process(t, 1)
		f.clock.Advance(time.Minute)
	}
	f.is(t, key, alarm.Failed)
	got := f.attempts(t, key)
	equal(t, "attempts", len(got), 2)
	for i, a := range got {
		equal(t, "attempt", a, retry.Attempt{
			Number: i + 1, Outcome: retry.Failed, Error: fmt.Sprintf("no luck %d", i+1), Worker: a.Worker, Began: began[i],
			Ended: began[i].Add(time.Duration(i+1) * time.Second),
		})
		equal(t, "a worker", a.Worker != "", true)
	}
}

func (Conformance) AnAttemptThatLosesItsProcessIsToldAsLost(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	key := f.schedule(t, "x", "a", nil)
	f.abandon(t, 30*time.Second)
	equal(t, "attempt that runs", f.attempts(t, key)[0], retry.Attempt{Number: 1, Outcome: retry.Running, Worker: "dead", Began: noon})
	f.clock.Advance(30 * time.Second)
	f.reap(t)
	got := f.attempts(t, key)
	equal(t, "attempts", len(got), 1)
	equal(t, "attempt that was lost", got[0], retry.Attempt{
		Number: 1, Outcome: retry.Lost, Error: f.get(t, key).Error, Worker: "dead", Began: noon, Ended: noon.Add(30 * time.Second),
	})
	equal(t, "worker of an alarm that waits", f.get(t, key).Worker, "")
}

// The attempt of a worker that has lost its claim is not recorded, nor is that of an alarm
// that was scheduled again while it ran.
func (Conformance) AWorkerThatLostItsClaimRecordsNoAttempt(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &alarm.Options{OnError: func(error) {}})
	ctx := enginetest.Context(t)
	running, release := make(chan struct{}, 2), make(chan struct{})
	f.handle(t, "a", func(ctx context.Context, payload string) error {
		running <- struct{}{}
		<-release
		return unlucky(ctx, payload)
	})
	lost, anew := f.schedule(t, "lost", "a", nil), f.schedule(t, "anew", "a", nil)
	wait := begin(t, f.alarms)
	<-running
	<-running
	enginetest.NoError(t, f.alarms.Schedule(ctx, anew, "a", "again", &alarm.ScheduleOptions{Delay: time.Hour}))
	_, err := f.alarms.Cancel(ctx, lost)
	enginetest.NoError(t, err)
	close(release)
	wait()
	f.recorded(t, 0)
	r := f.is(t, anew, alarm.Scheduled)
	equal(t, "attempts", r.Attempts, 0)
	equal(t, "due", r.Due, noon.Add(time.Hour))
	f.rows(t, 1)
}

// An outcome of a claim that another process has taken over is dropped.
func (Conformance) AnOutcomeOfALeaseThatIsGoneIsDropped(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &alarm.Options{Concurrency: 1, OnError: func(error) {}}) // it claims nothing else while its handler runs
	running, release := make(chan struct{}), make(chan struct{})
	f.handle(t, "a", func(ctx context.Context, payload string) error {
		close(running)
		<-release
		return unlucky(ctx, payload)
	})
	key := f.schedule(t, "x", "a", nil)
	wait := begin(t, f.alarms)
	<-running
	db.Exec(t, "delete from "+db.Table("perdure", "leases"))
	rt := host.Of(f.eng)
	var item string
	f.run(t, rt.Store.GetAlarm(store.AlarmKey{ID: key.ID}, func(a store.Alarm) { item = a.Item }))
	f.run(t, rt.Store.Alarms().Ready([]string{item})) // as the reaper does
	other := newAlarms(t, f.eng, nil)
	_, err := alarm.Handle(other, "a", func(context.Context, string) error { return nil }, nil)
	enginetest.NoError(t, err)
	process(t, other, 1)
	f.rows(t, 0)
	close(release)
	wait()
	f.recorded(t, 0)
	f.rows(t, 0)
	equal(t, "stats", f.alarms.Stats(), alarm.Stats{})
}

func (f *fixture) run(t testing.TB, stmts ...sqldb.Stmt) {
	t.Helper()
	tx, err := host.Of(f.eng).DB.Begin(enginetest.Context(t), sqldb.Write)
	enginetest.NoError(t, err)
	defer tx.Rollback()
	enginetest.NoError(t, tx.Run(enginetest.Context(t), stmts...))
	enginetest.NoError(t, tx.Commit(enginetest.Context(t)))
}

func (Conformance) TheDeadLetterOfATickHasTheAttemptsOfTheTick(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", unlucky)
	key := f.schedule(t, "x", "a", &alarm.ScheduleOptions{Every: time.Hour, At: noon, Retry: retry.Fixed(2, time.Minute)})
	for _, at := range []time.Duration{0, time.Minute, time.Hour, time.Hour + time.Minute} {
		f.clock.Set(noon.Add(at))
		f.process(t, 1)
	}
	equal(t, "attempts of the alarm, over all its ticks", len(f.attempts(t, key)), 4)
	dead, _, err := f.alarms.List(enginetest.Context(t), alarm.Filter{Statuses: alarm.Dead}, "", 0)
	enginetest.NoError(t, err)
	equal(t, "dead letters", len(dead), 2)
	for i, d := range dead {
		got := f.attempts(t, d.Key)
		equal(t, "attempts of a tick", len(got), 2)
		equal(t, "first one", got[0].Began, noon.Add(time.Duration(i)*time.Hour))
	}
	f.recorded(t, 8)
	for _, d := range dead {
		_, err := f.alarms.Cancel(enginetest.Context(t), d.Key)
		enginetest.NoError(t, err)
	}
	f.recorded(t, 4)
}

func (Conformance) TheNewestAttemptsAreKept(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", unlucky)
	const more = 2
	key := f.schedule(t, "x", "a", &alarm.ScheduleOptions{Retry: retry.Fixed(retry.MaxRecorded+more, time.Second)})
	for range retry.MaxRecorded + more {
		f.process(t, 1)
		f.clock.Advance(time.Second)
	}
	got := f.attempts(t, key)
	equal(t, "attempts", len(got), retry.MaxRecorded)
	equal(t, "oldest", got[0].Number, more+1)
}

func (Conformance) AttemptsEndWithTheirAlarm(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	lucky := false
	f.handle(t, "a", func(ctx context.Context, payload string) error {
		if lucky {
			return nil
		}
		return unlucky(ctx, payload)
	})
	fired := f.schedule(t, "fired", "a", nil)
	one := f.schedule(t, "cancelled", "a", nil)
	f.schedule(t, "cancelled with others", "a", nil)
	f.process(t, 3)
	f.recorded(t, 3)
	_, err := f.alarms.Cancel(enginetest.Context(t), one)
	enginetest.NoError(t, err)
	f.recorded(t, 2)

	f.clock.Advance(time.Second)
	enginetest.NoError(t, f.alarms.Schedule(enginetest.Context(t), fired, "a", "again", nil))
	equal(t, "attempts of an alarm that is scheduled anew", len(f.attempts(t, fired)), 0)
	lucky = true
	enginetest.NoError(t, f.alarms.FireNow(enginetest.Context(t), fired))
	f.process(t, 2)
	f.rows(t, 0)
	f.recorded(t, 0)
	_, err = f.alarms.Attempts(enginetest.Context(t), fired)
	var missing *fault.NotFound
	equal(t, "attempts of an alarm that is gone are not found", errors.As(err, &missing), true)

	lucky = false
	f.schedule(t, "cancelled with others", "a", nil)
	f.process(t, 1)
	f.recorded(t, 1)
	n, err := f.alarms.CancelByType(enginetest.Context(t), "a")
	enginetest.NoError(t, err)
	equal(t, "cancelled", n, 1)
	f.recorded(t, 0)
}
