package alarm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

func (Conformance) DeadAlarmsAreRemovedAfterTheirRetention(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "bad", func(context.Context, string) error { return errors.New("no") })
	f.handle(t, "ok", nil)
	once := retry.Policy{Kind: retry.KindNone, MaxAttempts: 1}
	dead := f.schedule(t, "dead", "bad", &alarm.ScheduleOptions{Retry: once})
	f.process(t, 1)
	f.is(t, dead, alarm.Failed)
	f.clock.Advance(29 * 24 * time.Hour)
	f.schedule(t, "a", "ok", nil)
	f.process(t, 1) // a sweep follows
	f.is(t, dead, alarm.Failed)
	f.clock.Advance(2 * 24 * time.Hour)
	f.schedule(t, "b", "ok", nil)
	f.process(t, 1)
	f.rows(t, 0)
}

// A recurring alarm that is quarantined is a schedule too.
func (Conformance) PurgeDeadKeepsAlarmsThatRecur(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.schedule(t, "once", "bad", nil)
	kept := f.schedule(t, "always", "bad", &alarm.ScheduleOptions{Every: time.Minute})
	db.Exec(t, "delete from "+db.Table("perdure", "ready"))
	db.Exec(t, "update "+db.Table("perdure", "alarm_items")+" set dead = 'quarantined'")
	f.clock.Advance(24 * time.Hour)
	ctx := enginetest.Context(t)
	removed, err := f.alarms.PurgeDead(ctx, 48*time.Hour)
	enginetest.NoError(t, err)
	equal(t, "removed that are younger", removed, 0)
	removed, err = f.alarms.PurgeDead(ctx, time.Hour)
	enginetest.NoError(t, err)
	equal(t, "removed", removed, 1)
	f.is(t, kept, alarm.Quarantined)
	_, err = f.alarms.PurgeDead(ctx, -1)
	enginetest.As[*fault.Invalid](t, err)
}
