package alarm_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A handler acts on its own alarm in the transaction of its outcome.
func (f *fixture) handlesItself(t testing.TB, act func(tx *perdure.Tx, key alarm.Key) error) {
	t.Helper()
	f.db.Exec(t, "create table written (n integer)")
	f.handle(t, "a", func(ctx context.Context, _ string) error {
		key := alarm.FromContext(ctx).Alarm
		return perdure.CommitWith(ctx, func(tx *perdure.Tx) error {
			if _, err := tx.Exec("insert into written (n) values (1)"); err != nil {
				return err
			}
			return act(tx, key)
		})
	})
}

// sound ends the test if a row is left of an alarm that does not exist, or of a lease.
func (f *fixture) sound(t testing.TB, ready int64) {
	t.Helper()
	for table, want := range map[string]int64{"ready": ready, "leases": 0, "interrupts": 0} {
		equal(t, "rows of "+table, f.db.Rows(t, "perdure", table), want)
	}
}

func (Conformance) AnAlarmCanScheduleItselfAgainInItsOutcome(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handlesItself(t, func(tx *perdure.Tx, key alarm.Key) error {
		return f.alarms.ScheduleIn(tx, key, "a", "again", &alarm.ScheduleOptions{Delay: time.Hour})
	})
	key := f.schedule(t, "x", "a", nil)
	f.process(t, 1)
	r := f.is(t, key, alarm.Scheduled)
	equal(t, "due", r.Due, noon.Add(time.Hour))
	equal(t, "payload", string(r.Payload), `"again"`)
	equal(t, "rows of the application", db.Int(t, "select count(*) from written"), 1)
	f.sound(t, 1)
	f.clock.Advance(time.Hour)
	f.process(t, 1)
	equal(t, "fires", f.runs.count(), 2)
	equal(t, "rows of the application", db.Int(t, "select count(*) from written"), 2)
}

func (Conformance) AnAlarmCanCancelItselfInItsOutcome(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handlesItself(t, func(tx *perdure.Tx, key alarm.Key) error { return f.alarms.CancelIn(tx, key) })
	f.schedule(t, "x", "a", &alarm.ScheduleOptions{Every: time.Hour, At: noon})
	f.process(t, 1)
	f.rows(t, 0)
	equal(t, "rows of the application", db.Int(t, "select count(*) from written"), 1)
	f.sound(t, 0)
	f.clock.Advance(2 * time.Hour)
	f.process(t, 0)
}

// Rows of a handler are committed although its alarm was scheduled again while it ran: the
// tick was fired.
func (Conformance) RowsOfAnAlarmThatIsScheduledAgainAreCommitted(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	running, release := make(chan struct{}, 1), make(chan struct{})
	f.db.Exec(t, "create table written (n integer)")
	f.handle(t, "a", func(ctx context.Context, _ string) error {
		running <- struct{}{}
		<-release
		return perdure.CommitWith(ctx, func(tx *perdure.Tx) error {
			_, err := tx.Exec("insert into written (n) values (1)")
			return err
		})
	})
	key := f.schedule(t, "x", "a", nil)
	wait := begin(t, f.alarms)
	<-running
	enginetest.NoError(t, f.alarms.Schedule(enginetest.Context(t), key, "a", "again", &alarm.ScheduleOptions{Delay: time.Hour}))
	close(release)
	wait()
	equal(t, "rows of the application", db.Int(t, "select count(*) from written"), 1)
	equal(t, "due", f.is(t, key, alarm.Scheduled).Due, noon.Add(time.Hour))
	equal(t, "stats", f.alarms.Stats(), alarm.Stats{Fired: 1})
	f.sound(t, 1)
}
