package alarm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

func notFound(t testing.TB, err error) {
	t.Helper()
	enginetest.As[*fault.NotFound](t, err)
}

// refused ends the test unless the alarm's status was the reason.
func refused(t testing.TB, err error, want alarm.Status) {
	t.Helper()
	equal(t, "status", enginetest.As[*perdure.StateError](t, err).Status, string(want))
}

func (Conformance) AWaitingAlarmCanBeMoved(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	f.handle(t, "a", nil)
	once := f.schedule(t, "once", "a", &alarm.ScheduleOptions{Delay: time.Hour})
	enginetest.NoError(t, f.alarms.Move(ctx, once, noon.Add(time.Minute)))
	equal(t, "scheduled", f.get(t, once).Scheduled, noon.Add(time.Minute))
	f.wakes(t, noon.Add(time.Minute))
	f.clock.Advance(time.Minute)
	f.process(t, 1)

	again := f.schedule(t, "again", "a", &alarm.ScheduleOptions{Every: time.Hour, At: noon.Add(time.Hour)})
	enginetest.NoError(t, f.alarms.Move(ctx, again, noon.Add(30*time.Minute)))
	f.clock.Set(noon.Add(30 * time.Minute))
	f.process(t, 1)
	equal(t, "tick", f.runs.last().Scheduled, noon.Add(time.Hour)) // which is over with that
	equal(t, "next", f.get(t, again).Due, noon.Add(2*time.Hour))
	notFound(t, f.alarms.Move(ctx, alarm.ID("nobody"), noon))
}

func (Conformance) ARecurringAlarmCanPassATickOver(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	f.handle(t, "a", nil)
	key := f.schedule(t, "x", "a", &alarm.ScheduleOptions{Every: time.Hour})
	enginetest.NoError(t, f.alarms.Skip(ctx, key))
	equal(t, "due", f.get(t, key).Due, noon.Add(2*time.Hour))
	f.clock.Set(noon.Add(5*time.Hour + time.Minute))
	enginetest.NoError(t, f.alarms.Skip(ctx, key)) // also what was missed
	equal(t, "due", f.get(t, key).Due, noon.Add(6*time.Hour))
	f.process(t, 0)
	once := f.schedule(t, "once", "a", &alarm.ScheduleOptions{Delay: time.Hour})
	enginetest.As[*fault.Invalid](t, f.alarms.Skip(ctx, once))
	notFound(t, f.alarms.Skip(ctx, alarm.ID("nobody")))
}

func (Conformance) AnAlarmCanBeFiredAtOnce(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	broken := false
	f.handle(t, "a", func(context.Context, string) error {
		if broken {
			return errors.New("no")
		}
		return nil
	})
	once := f.schedule(t, "once", "a", &alarm.ScheduleOptions{Delay: time.Hour})
	again := f.schedule(t, "again", "a", &alarm.ScheduleOptions{Every: time.Hour})
	for _, key := range []alarm.Key{once, again} {
		enginetest.NoError(t, f.alarms.FireNow(ctx, key))
		f.process(t, 1)
		equal(t, "scheduled", f.runs.last().Scheduled, noon)
	}
	equal(t, "next tick", f.get(t, again).Due, noon.Add(time.Hour)) // it stays

	broken = true
	failing := f.schedule(t, "failing", "a", &alarm.ScheduleOptions{Retry: retry.Fixed(3, time.Hour)})
	f.process(t, 1)
	enginetest.NoError(t, f.alarms.FireNow(ctx, failing))
	f.process(t, 1) // it waits no longer
	equal(t, "attempts", f.get(t, failing).Attempts, 2)
	notFound(t, f.alarms.FireNow(ctx, once))
}

func (Conformance) WhatIsNotWaitingCannotBeMoved(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	started, release := make(chan struct{}), make(chan struct{})
	f.handle(t, "a", func(context.Context, string) error {
		close(started)
		<-release
		return errors.New("no")
	})
	key := f.schedule(t, "x", "a", &alarm.ScheduleOptions{Retry: retry.None()})
	wait := begin(t, f.alarms)
	<-started
	refused(t, f.alarms.Move(ctx, key, noon), alarm.Running)
	refused(t, f.alarms.FireNow(ctx, key), alarm.Running)
	refused(t, f.alarms.Retry(ctx, key), alarm.Running)
	close(release)
	wait()
	refused(t, f.alarms.Move(ctx, key, noon), alarm.Failed)
	refused(t, f.alarms.FireNow(ctx, key), alarm.Failed)
	enginetest.NoError(t, f.alarms.Retry(ctx, key))
	refused(t, f.alarms.Retry(ctx, key), alarm.Ready)
}

func (Conformance) ChangesArePartOfTheirUnitOfWork(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	key := f.schedule(t, "x", "a", &alarm.ScheduleOptions{Every: time.Hour})
	boom := errors.New("boom")
	for _, change := range []func(*perdure.Tx) error{
		func(tx *perdure.Tx) error { return f.alarms.MoveIn(tx, key, noon) },
		func(tx *perdure.Tx) error { return f.alarms.SkipIn(tx, key) },
		func(tx *perdure.Tx) error { return f.alarms.FireNowIn(tx, key) },
		func(tx *perdure.Tx) error { return f.alarms.CancelIn(tx, key) },
	} {
		err := f.eng.Update(ctx, func(tx *perdure.Tx) error {
			enginetest.NoError(t, change(tx))
			return boom
		})
		enginetest.Is(t, err, boom)
		equal(t, "due after a rollback", f.get(t, key).Due, noon.Add(time.Hour))
	}
	err := f.eng.Update(ctx, func(tx *perdure.Tx) error {
		_ = f.alarms.RetryIn(tx, key) // it fails the unit all the same
		return f.alarms.CancelIn(tx, key)
	})
	refused(t, err, alarm.Scheduled)
	f.rows(t, 1)
}

// begin fires what is due in the background; wait returns when that has ended.
func begin(t testing.TB, alarms *alarm.Alarms) (wait func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := alarms.Process(enginetest.Context(t))
		done <- err
	}()
	return func() {
		t.Helper()
		enginetest.NoError(t, <-done)
	}
}

func (Conformance) DeadLettersAreRetriedTogether(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	for _, typ := range []string{"a", "b"} {
		f.handle(t, typ, func(context.Context, string) error { return errors.New("no") })
	}
	f.schedule(t, "waits", "a", &alarm.ScheduleOptions{Delay: time.Hour})
	for i := range 7 {
		f.schedule(t, fmt.Sprint(i), []string{"a", "b"}[i%2], &alarm.ScheduleOptions{Retry: retry.None()})
	}
	f.process(t, 7)
	n, err := f.alarms.RetryAll(ctx, alarm.Filter{Type: "b"})
	enginetest.NoError(t, err)
	equal(t, "retried", n, 3)
	f.process(t, 3) // they die again
	n, err = f.alarms.RetryAll(ctx, alarm.Filter{})
	enginetest.NoError(t, err)
	equal(t, "retried", n, 7)
	counts, err := f.alarms.Count(ctx, alarm.Filter{})
	enginetest.NoError(t, err)
	equal(t, "ready", counts[alarm.Ready], 7)
	equal(t, "scheduled", counts[alarm.Scheduled], 1)
	_, err = f.alarms.RetryAll(ctx, alarm.Filter{Statuses: alarm.Waiting})
	enginetest.As[*fault.Invalid](t, err)
	n, err = f.alarms.RetryAll(ctx, alarm.Filter{})
	enginetest.NoError(t, err)
	equal(t, "retried", n, 0)
}

func (Conformance) AListIsPagedInTheOrderOfDueTimes(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	var want []alarm.Key
	for i := range 9 {
		key := alarm.Of("order", fmt.Sprint(i/5), fmt.Sprint("x", i))
		enginetest.NoError(t, f.alarms.Schedule(ctx, key, "a", nil, &alarm.ScheduleOptions{Delay: time.Duration(i/3) * time.Minute}))
		want = append(want, key)
	}
	for limit := 1; limit <= 10; limit++ {
		var got []alarm.Key
		for cursor := ""; ; {
			page, next, err := f.alarms.List(ctx, alarm.Filter{ActorType: "order"}, cursor, limit)
			enginetest.NoError(t, err)
			for _, r := range page {
				got = append(got, r.Key)
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("pages of %d are %v, want %v", limit, got, want)
		}
	}
	f.clock.Advance(time.Minute)
	due, _, err := f.alarms.Due(ctx, alarm.Filter{}, "", 0)
	enginetest.NoError(t, err)
	equal(t, "due", len(due), 6)
	for _, cursor := range []string{"x", "e30", "!"} {
		_, _, err := f.alarms.List(ctx, alarm.Filter{}, cursor, 0)
		enginetest.As[*fault.Invalid](t, err)
	}
}

func (Conformance) AlarmsAreCancelledTogether(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	for i := range 6 {
		key := alarm.Of("order", fmt.Sprint(i%2), fmt.Sprint(i))
		enginetest.NoError(t, f.alarms.Schedule(ctx, key, []string{"a", "b", "c"}[i%3], nil, &alarm.ScheduleOptions{Delay: time.Hour}))
	}
	n, err := f.alarms.CancelByType(ctx, "a")
	enginetest.NoError(t, err)
	equal(t, "cancelled", n, 2)
	enginetest.NoError(t, f.eng.Update(ctx, func(tx *perdure.Tx) error {
		return f.alarms.CancelAllIn(tx, alarm.Filter{ActorType: "order", ActorID: "1"})
	}))
	f.rows(t, 2)
	for _, filter := range []alarm.Filter{{}, {Type: "perdure.notice"}} {
		_, err = f.alarms.CancelAll(ctx, filter)
		enginetest.As[*fault.Invalid](t, err)
	}
	_, err = f.alarms.CancelByType(ctx, "")
	enginetest.As[*fault.Invalid](t, err)
	f.rows(t, 2)
}

// A cancelled alarm that is being fired is told so and its outcome is dropped.
func (Conformance) ACancelReachesAnAlarmThatIsFired(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &alarm.Options{Lease: 10 * time.Second, OnError: func(error) {}})
	started := make(chan struct{})
	f.handle(t, "a", func(ctx context.Context, _ string) error {
		close(started)
		<-ctx.Done()
		return ctx.Err()
	})
	key := f.schedule(t, "x", "a", nil)
	wait := begin(t, f.alarms)
	<-started
	cancelled, err := f.alarms.Cancel(enginetest.Context(t), key)
	enginetest.NoError(t, err)
	equal(t, "cancelled", cancelled, alarm.TooLate) // its handler runs
	done := make(chan struct{})
	go func() { wait(); close(done) }()
	for {
		select {
		case <-done:
			f.rows(t, 0)
			return
		default:
			if f.clock.Timers() > 0 {
				f.clock.Advance(time.Second) // until the heartbeat finds the row gone
			}
		}
	}
}

func (Conformance) ACheckDecidesAboutTheAlarmThatIsThere(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	key, refusal := alarm.ID("x"), errors.New("no")
	var told *alarm.Record
	schedule := func(delay time.Duration, answer error) error {
		return f.alarms.Schedule(ctx, key, "a", nil, &alarm.ScheduleOptions{Delay: delay, Check: func(before *alarm.Record) error {
			told = before
			return answer
		}})
	}
	if err := schedule(time.Hour, refusal); !errors.Is(err, refusal) || told != nil {
		t.Errorf("a new one: %v, told %v", err, told)
	}
	_, err := f.alarms.Get(ctx, key)
	notFound(t, err)
	enginetest.NoError(t, schedule(time.Hour, nil))
	if err := schedule(time.Minute, refusal); !errors.Is(err, refusal) || told == nil || told.Type != "a" {
		t.Errorf("another: %v, told %v", err, told)
	}
	equal(t, "due", f.get(t, key).Due, noon.Add(time.Hour))
	enginetest.NoError(t, schedule(time.Minute, nil))
	equal(t, "due", f.get(t, key).Due, noon.Add(time.Minute))
}
