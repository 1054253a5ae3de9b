package alarm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// Correction 16 of the design: what is missed while nobody is there is up to the
// alarm.
func (Conformance) Case36MissedTicks(t *testing.T, db enginetest.Database) {
	for _, c := range []struct {
		missed perdure.Missed
		limit  int
		want   []string // the ticks that are fired after noon, and how many are missed with each
	}{
		{perdure.MissedSkip, 0, []string{"10s 5"}},
		{perdure.MissedOnce, 0, []string{"1m0s 5"}},
		{perdure.MissedAll, 3, []string{"10s 0", "20s 0", "30s 3"}},
		{perdure.MissedAll, 6, []string{"10s 0", "20s 0", "30s 0", "40s 0", "50s 0", "1m0s 0"}},
		{perdure.MissedAll, 0, []string{"10s 0", "20s 0", "30s 0", "40s 0", "50s 0", "1m0s 0"}},
	} {
		t.Run(fmt.Sprint(c.missed, c.limit), func(t *testing.T) {
			f := newFixture(t, enginetest.New(t, db.Name), nil)
			f.handle(t, "tick", nil)
			key := f.schedule(t, "x", "tick", &alarm.ScheduleOptions{Every: 10 * time.Second, Missed: c.missed, MaxMissed: c.limit})
			equal(t, "first", f.get(t, key).Due, noon.Add(10*time.Second))
			f.clock.Advance(65 * time.Second)
			f.process(t, len(c.want))
			for i, info := range f.runs.all() {
				equal(t, "tick", fmt.Sprint(info.Scheduled.Sub(noon), " ", info.Missed), c.want[i])
			}
			r := f.is(t, key, alarm.Scheduled)
			equal(t, "next", r.Due, noon.Add(70*time.Second))
			equal(t, "next as the handler saw it", f.runs.last().Next, r.Due)
			f.clock.Set(r.Due)
			f.process(t, 1) // and all is as if nobody had slept
			equal(t, "missed", f.runs.last().Missed, 0)
		})
	}
}

// Correction 16 of the design: the seed's "now + interval" drifts.
func (Conformance) Case37ARecurringAlarmStaysOnPhase(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "tick", nil)
	first := noon.Add(777 * time.Microsecond)
	key := f.schedule(t, "x", "tick", &alarm.ScheduleOptions{Every: 10 * time.Second, At: first})
	ticks := 1000
	if db.Name != enginetest.SQLite {
		ticks = 100
	}
	for i := range ticks {
		tick := first.Add(time.Duration(i) * 10 * time.Second)
		f.clock.Set(tick.Add(time.Duration(i) * 9 * time.Millisecond)) // ever later
		f.process(t, 1)
		equal(t, "scheduled", f.runs.last().Scheduled, tick)
	}
	equal(t, "next", f.get(t, key).Due, first.Add(time.Duration(ticks)*10*time.Second))
}

// A handler that takes longer than the interval does not pile ticks up.
func (Conformance) ATickThatIsLongerThanTheInterval(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &alarm.Options{Lease: time.Hour})
	f.handle(t, "tick", func(context.Context, string) error {
		if f.runs.count() == 1 {
			f.clock.Advance(25 * time.Second)
		}
		return nil
	})
	key := f.schedule(t, "x", "tick", &alarm.ScheduleOptions{Every: 10 * time.Second, At: noon})
	f.process(t, 2) // at noon, and at 25 s for the tick at 10 s and the one after it
	seen := f.runs.all()
	equal(t, "second", seen[1].Scheduled, noon.Add(20*time.Second))
	equal(t, "missed", seen[1].Missed, 1)
	equal(t, "next", f.get(t, key).Due, noon.Add(30*time.Second))
}

// Correction 16 of the design: the seed loops once for every tick that was missed.
func (Conformance) Case39AYearOfMilliseconds(t *testing.T, db enginetest.Database) {
	for _, missed := range []perdure.Missed{perdure.MissedSkip, perdure.MissedOnce, perdure.MissedAll} {
		f := newFixture(t, enginetest.New(t, db.Name), nil)
		f.handle(t, "tick", nil)
		o := alarm.ScheduleOptions{Every: time.Millisecond, Missed: missed}
		fires := 1
		if missed == perdure.MissedAll {
			o.MaxMissed, fires = 2, 2
		}
		key := f.schedule(t, "x", "tick", &o)
		f.clock.Advance(365 * 24 * time.Hour)
		f.process(t, fires) // a loop over the ticks would not come back
		equal(t, "next", f.get(t, key).Due, f.clock.Now().Add(time.Millisecond))
		equal(t, "missed", f.runs.last().Missed, 365*24*60*60*1000-fires)
	}
}

// Correction 16 of the design: the seed adds a row on every start.
func (Conformance) Case40ARestartAddsNothingAndPostponesNothing(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	key := alarm.ID("cleanup")
	starts := 1000
	if db.Name != enginetest.SQLite {
		starts = 100
	}
	for i := range starts {
		alarms := newAlarms(t, f.eng, nil)
		o := &alarm.ScheduleOptions{Every: time.Hour, Missed: perdure.MissedSkip}
		enginetest.NoError(t, alarms.Schedule(enginetest.Context(t), key, "cleanup", i, o))
		f.clock.Advance(time.Second) // more often than the interval
	}
	f.rows(t, 1)
	r := f.get(t, key)
	equal(t, "due", r.Due, noon.Add(time.Hour))
	equal(t, "payload", string(r.Payload), fmt.Sprint(starts-1))
}

func (Conformance) OtherTicksReplaceTheOldOnes(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	key := alarm.ID("x")
	for _, c := range []struct {
		options alarm.ScheduleOptions
		due     time.Time
	}{
		{alarm.ScheduleOptions{Every: time.Hour}, noon.Add(time.Hour)},
		{alarm.ScheduleOptions{Every: time.Hour, Missed: perdure.MissedAll}, noon.Add(time.Hour)}, // the same ticks
		{alarm.ScheduleOptions{Every: time.Hour, At: noon.Add(time.Minute)}, noon.Add(time.Minute)},
		{alarm.ScheduleOptions{Every: time.Hour, At: noon.Add(time.Minute)}, noon.Add(time.Minute)},
		{alarm.ScheduleOptions{Every: 2 * time.Hour}, noon.Add(2*time.Hour + 4*time.Second)},
		{alarm.ScheduleOptions{Cron: "0 15 * * *"}, noon.Add(3 * time.Hour)},
		{alarm.ScheduleOptions{Cron: "0 15 * * *", Zone: "Europe/Berlin"}, noon.Add(2 * time.Hour)},
		{alarm.ScheduleOptions{Delay: time.Minute}, noon.Add(time.Minute + 7*time.Second)},
		{alarm.ScheduleOptions{Delay: time.Minute}, noon.Add(time.Minute + 8*time.Second)}, // no ticks at all
	} {
		enginetest.NoError(t, f.alarms.Schedule(enginetest.Context(t), key, "tick", nil, &c.options))
		equal(t, fmt.Sprintf("due with %+v", c.options), f.get(t, key).Due, c.due)
		f.clock.Advance(time.Second)
	}
	f.rows(t, 1)
}

func (Conformance) Case44CronWithAGapAndAFold(t *testing.T, db enginetest.Database) {
	for _, c := range []struct {
		cron, start string
		want        []string // in UTC
	}{
		{"30 2 * * *", "2026-03-27T12:00:00Z", []string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}}, // 02:30 is skipped on the 29th
		{"30 2 * * *", "2026-10-23T12:00:00Z", []string{"2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}}, // 02:30 comes twice on the 25th
		{"30 * * * *", "2026-10-25T00:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"}}, // every hour is every hour
	} {
		f := newFixture(t, enginetest.New(t, db.Name), nil)
		f.handle(t, "tick", nil)
		f.clock.Set(clockTime(t, c.start))
		key := f.schedule(t, "x", "tick", &alarm.ScheduleOptions{Cron: c.cron, Zone: "Europe/Berlin"})
		for _, want := range c.want {
			equal(t, "due", f.get(t, key).Due, clockTime(t, want))
			f.clock.Set(clockTime(t, want))
			f.process(t, 1)
			f.process(t, 0)
		}
	}
}

func clockTime(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	enginetest.NoError(t, err)
	return at
}

// A tick that fails for good is a dead letter of its own: the next one is not lost
// with it.
func (Conformance) ATickThatDiesDoesNotEndTheAlarm(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	broken := true
	f.handle(t, "tick", func(context.Context, string) error {
		if broken {
			return errors.New("no")
		}
		return nil
	})
	key := f.schedule(t, "x", "tick", &alarm.ScheduleOptions{Every: time.Minute, At: noon, Retry: retry.Fixed(2, time.Second)})
	f.process(t, 1)
	equal(t, "due", f.is(t, key, alarm.Retrying).Due, noon.Add(time.Second))
	equal(t, "scheduled", f.get(t, key).Scheduled, noon)
	f.clock.Advance(time.Second)
	f.process(t, 1)
	f.rows(t, 2)
	r := f.is(t, key, alarm.Scheduled)
	equal(t, "due", r.Due, noon.Add(time.Minute))
	equal(t, "attempts", r.Attempts, 0)
	equal(t, "error", r.Error, "no")
	dead := f.is(t, alarm.ID("x@2026-03-01T12:00:00Z"), alarm.Failed)
	equal(t, "attempts", dead.Attempts, 2)
	equal(t, "recurs", dead.Recurs, "")
	equal(t, "scheduled", dead.Scheduled, noon)

	broken = false
	n, err := f.alarms.RetryAll(enginetest.Context(t), alarm.Filter{Type: "tick"})
	enginetest.NoError(t, err)
	equal(t, "retried", n, 1)
	f.process(t, 1)
	f.rows(t, 1)
	equal(t, "key", f.runs.last().Key, f.runs.all()[0].Key)
	f.clock.Set(noon.Add(time.Minute))
	f.process(t, 1)
	if f.runs.last().Key == f.runs.all()[0].Key {
		t.Fatal("two ticks have the same key")
	}
	equal(t, "error", f.get(t, key).Error, "")
}
