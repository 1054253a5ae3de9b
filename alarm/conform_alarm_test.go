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

// Correction 15 of the design: the seed's loop hands alarms to handlers that are
// not due yet, and removes them.
func (Conformance) Case31AnAlarmThatIsNotDueIsInvisibleToTheHandler(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "remind", nil)
	at := noon.Add(time.Minute + 123456*time.Microsecond)
	key := f.schedule(t, "later", "remind", &alarm.ScheduleOptions{At: at})
	f.schedule(t, "now", "remind", nil)
	f.process(t, 1)
	equal(t, "fired", f.runs.last().Alarm, alarm.ID("now"))
	f.clock.Set(at.Add(-time.Microsecond))
	f.process(t, 0)
	equal(t, "due", f.is(t, key, alarm.Scheduled).Due, at)
	f.clock.Set(at)
	f.process(t, 1)
	equal(t, "scheduled as the handler saw it", f.runs.last().Scheduled, at)
	f.rows(t, 0)
}

// Correction 15 of the design: the seed removes the row before the handler runs
// and swallows its error.
func (Conformance) Case32AFailureKeepsTheRowUntilItIsADeadLetter(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	broken := true
	f.handle(t, "remind", func(context.Context, string) error {
		if broken {
			return errors.New("no mail server")
		}
		return nil
	})
	key := f.schedule(t, "a", "remind", &alarm.ScheduleOptions{At: noon.Add(time.Minute), Retry: retry.Linear(3, time.Second, time.Second)})
	f.clock.Set(noon.Add(2 * time.Minute))
	for attempt := 1; attempt < 3; attempt++ {
		f.process(t, 1)
		r := f.is(t, key, alarm.Retrying)
		equal(t, "attempts", r.Attempts, attempt)
		equal(t, "error", r.Error, "no mail server")
		equal(t, "due", r.Due, f.clock.Now().Add(time.Duration(attempt)*time.Second))
		equal(t, "scheduled", r.Scheduled, noon.Add(time.Minute))
		f.process(t, 0)
		f.clock.Set(r.Due)
	}
	f.process(t, 1)
	equal(t, "attempts", f.is(t, key, alarm.Failed).Attempts, 3)
	f.clock.Advance(time.Hour)
	f.process(t, 0)
	dead, _, err := f.alarms.List(enginetest.Context(t), alarm.Filter{Statuses: alarm.Dead}, "", 0)
	enginetest.NoError(t, err)
	equal(t, "dead letters", len(dead), 1)

	broken = false
	enginetest.NoError(t, f.alarms.Retry(enginetest.Context(t), key))
	f.process(t, 1)
	f.rows(t, 0)
	seen := f.runs.all()
	for i, info := range seen {
		equal(t, "key", info.Key, seen[0].Key)
		equal(t, "attempt", info.Attempt, []int{1, 2, 3, 1}[i])
		equal(t, "max attempts", info.MaxAttempts, 3)
	}
	equal(t, "stats", f.alarms.Stats(), alarm.Stats{Fired: 1, Failed: 2, Dead: 1})
}

// Correction 15 of the design: what is replaced and cancelled is a row, not an
// entry in the memory of some process.
func (Conformance) Case34SchedulingAgainReplaces(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", nil)
	f.handle(t, "b", nil)
	first := f.schedule(t, "x", "a", &alarm.ScheduleOptions{Delay: time.Minute, Priority: perdure.High})
	other := newAlarms(t, f.eng, nil) // as another process would
	enginetest.NoError(t, other.Schedule(enginetest.Context(t), first, "b", "new", &alarm.ScheduleOptions{Delay: 2 * time.Minute}))
	f.rows(t, 1)
	r := f.get(t, first)
	equal(t, "type", r.Type, "b")
	equal(t, "payload", string(r.Payload), `"new"`)
	equal(t, "due", r.Due, noon.Add(2*time.Minute))
	equal(t, "priority", r.Priority, perdure.Normal)
	f.clock.Advance(time.Minute)
	f.process(t, 0)
	f.clock.Advance(time.Minute)
	f.process(t, 1)
	f.rows(t, 0)
}

func (Conformance) AnIDIsOneOfItsActor(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", nil)
	keys := []alarm.Key{alarm.ID("x"), alarm.Of("order", "1", "x"), alarm.Of("order", "2", "x"), alarm.Of("user", "1", "x")}
	for _, key := range keys {
		enginetest.NoError(t, f.alarms.Schedule(enginetest.Context(t), key, "a", nil, &alarm.ScheduleOptions{Delay: time.Minute}))
	}
	f.rows(t, 4)
	for _, c := range []struct {
		filter alarm.Filter
		want   int
	}{
		{alarm.Filter{}, 4},
		{alarm.Filter{Unowned: true}, 1},
		{alarm.Filter{ActorType: "order"}, 2},
		{alarm.Filter{ActorType: "order", ActorID: "2"}, 1},
		{alarm.Filter{Type: "b"}, 0},
	} {
		found, _, err := f.alarms.Upcoming(enginetest.Context(t), c.filter, "", 0)
		enginetest.NoError(t, err)
		equal(t, fmt.Sprintf("alarms with %+v", c.filter), len(found), c.want)
	}
	cancelled, err := f.alarms.Cancel(enginetest.Context(t), keys[1])
	enginetest.NoError(t, err)
	equal(t, "cancelled", cancelled, alarm.Prevented)
	f.clock.Advance(time.Minute)
	f.process(t, 3)
}

func (Conformance) CancelReturnsWhatItPrevented(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	f.handle(t, "ok", func(context.Context, string) error { return nil })
	f.handle(t, "bad", func(context.Context, string) error { return errors.New("no mail server") })
	later := &alarm.ScheduleOptions{At: noon.Add(time.Hour)}
	fired, pending := f.schedule(t, "fired", "ok", nil), f.schedule(t, "pending", "ok", later)
	failed := f.schedule(t, "failed", "bad", &alarm.ScheduleOptions{Retry: retry.Linear(1, time.Second, time.Second)})
	retrying := f.schedule(t, "retrying", "bad", &alarm.ScheduleOptions{Retry: retry.Linear(3, time.Second, time.Second)})
	f.process(t, 3)
	for key, want := range map[alarm.Key]alarm.Cancellation{
		fired: alarm.NothingFound, pending: alarm.Prevented, failed: alarm.TooLate, retrying: alarm.Prevented, alarm.ID("other"): alarm.NothingFound,
	} {
		result, err := f.alarms.Cancel(ctx, key)
		enginetest.NoError(t, err)
		equal(t, key.String(), result, want)
	}
	f.rows(t, 0)
	pending = f.schedule(t, "pending", "ok", later)
	enginetest.NoError(t, f.eng.Update(ctx, func(tx *perdure.Tx) error {
		result, err := f.alarms.CancelNowIn(tx, pending)
		equal(t, "in a unit", result, alarm.Prevented)
		return err
	}))
	f.rows(t, 0)
}

func (Conformance) Case35CancellingWhatIsUnknownIsNoError(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	cancelled, err := f.alarms.Cancel(enginetest.Context(t), alarm.ID("nobody"))
	enginetest.NoError(t, err)
	equal(t, "cancelled", cancelled, alarm.NothingFound)
	enginetest.NoError(t, f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
		return f.alarms.CancelIn(tx, alarm.Of("order", "1", "nothing"))
	}))
	n, err := f.alarms.CancelByType(enginetest.Context(t), "none")
	enginetest.NoError(t, err)
	equal(t, "cancelled", n, 0)
}

func (Conformance) AnAlarmIsPartOfItsUnitOfWork(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	remind := f.handle(t, "remind", nil)
	boom := errors.New("boom")
	kept := f.schedule(t, "kept", "remind", nil)
	db.Unchanged(t, func() {
		err := f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
			enginetest.NoError(t, remind.ScheduleIn(tx, alarm.ID("a"), "x", nil))
			enginetest.NoError(t, f.alarms.CancelIn(tx, kept))
			return boom
		})
		enginetest.Is(t, err, boom)
	})
	enginetest.NoError(t, f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
		return errors.Join(remind.ScheduleIn(tx, alarm.ID("a"), "x", nil), f.alarms.CancelIn(tx, kept))
	}))
	f.rows(t, 1)
	f.process(t, 1)
	equal(t, "fired", f.runs.last().Alarm, alarm.ID("a"))
}

func (Conformance) Case41And42TheWakeUpFollowsTheEarliestAlarm(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.wakes(t, time.Time{}) // no handlers
	f.handle(t, "a", nil)
	f.wakes(t, time.Time{}) // no alarms: no wake-up
	f.schedule(t, "unhandled", "b", nil)
	f.wakes(t, time.Time{})
	early := f.schedule(t, "early", "a", &alarm.ScheduleOptions{Delay: time.Minute, Priority: perdure.Low})
	f.schedule(t, "late", "a", &alarm.ScheduleOptions{Delay: time.Hour, Priority: perdure.High})
	f.wakes(t, noon.Add(time.Minute))
	next, err := f.alarms.Next(enginetest.Context(t), alarm.Filter{Type: "a"})
	enginetest.NoError(t, err)
	equal(t, "next", next.Key, early)
	_, err = f.alarms.Cancel(enginetest.Context(t), early)
	enginetest.NoError(t, err)
	f.wakes(t, noon.Add(time.Hour))
	_, err = f.alarms.CancelByType(enginetest.Context(t), "a")
	enginetest.NoError(t, err)
	f.wakes(t, time.Time{})

	f.schedule(t, "far", "a", &alarm.ScheduleOptions{At: time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)})
	at, err := f.alarms.NextWakeAt(enginetest.Context(t))
	enginetest.NoError(t, err)
	if at.Before(noon.AddDate(290, 0, 0)) {
		t.Fatalf("next wake is %v, want a time that is very far away", at)
	}
}

// Correction 15 of the design: a cancel by type must not break machines, whose
// delays are of the same table.
func (Conformance) Case43NothingTouchesTheDelaysOfMachines(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "delay", nil)
	ctx := enginetest.Context(t)
	key := alarm.Of("order", "1", "x")
	f.machineDelay(t, key, "delay")
	enginetest.NoError(t, f.alarms.Schedule(ctx, key, "delay", nil, nil))
	f.rows(t, 2)
	f.process(t, 1) // only ours
	f.rows(t, 1)
	f.wakes(t, time.Time{})
	db.Unchanged(t, func() {
		n, err := f.alarms.CancelByType(ctx, "delay")
		enginetest.NoError(t, err)
		equal(t, "cancelled", n, 0)
		n, err = f.alarms.CancelAll(ctx, alarm.Filter{ActorType: "order"})
		enginetest.NoError(t, err)
		equal(t, "cancelled", n, 0)
		_, err = f.alarms.Cancel(ctx, key)
		enginetest.NoError(t, err)
		for _, change := range []func(context.Context, alarm.Key) error{f.alarms.FireNow, f.alarms.Skip, f.alarms.Retry} {
			notFound(t, change(ctx, key))
		}
		notFound(t, f.alarms.Move(ctx, key, noon))
		all, _, err := f.alarms.List(ctx, alarm.Filter{}, "", 0)
		enginetest.NoError(t, err)
		equal(t, "alarms", len(all), 0)
	})
}

// machineDelay stores a due delay of a machine, as package actor does.
func (f *fixture) machineDelay(t testing.TB, key alarm.Key, typ string) {
	t.Helper()
	due := "'2026-01-01'"
	if f.db.Name == enginetest.SQLite {
		due = "1"
	}
	f.db.Exec(t, "insert into "+f.db.Table("perdure", "timers")+" (actor_type, actor_id, alarm_id, type, due_at, sequence, created_at) values ('"+
		key.ActorType+"', '"+key.ActorID+"', '"+key.ID+"', '"+typ+"', "+due+", 1, "+due+")")
}

func (Conformance) DueAlarmsFireByPriorityAndThenByTimeAndThenInTheOrderOfScheduling(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &alarm.Options{Concurrency: 1})
	f.handle(t, "a", nil)
	f.handle(t, "b", nil)
	var want []string
	add := func(id, typ string, o alarm.ScheduleOptions) {
		want = append(want, id)
		f.schedule(t, id, typ, &o)
	}
	add("7", "b", alarm.ScheduleOptions{Priority: perdure.High, Delay: 3 * time.Second})
	add("6", "a", alarm.ScheduleOptions{Priority: perdure.High, Delay: 4 * time.Second})
	add("5", "a", alarm.ScheduleOptions{Delay: time.Second})
	add("4", "b", alarm.ScheduleOptions{Delay: 2 * time.Second})
	add("3", "a", alarm.ScheduleOptions{Delay: 2 * time.Second})
	add("2", "b", alarm.ScheduleOptions{Delay: 2 * time.Second})
	add("1", "b", alarm.ScheduleOptions{Priority: perdure.Low})
	f.schedule(t, "urgent", "a", &alarm.ScheduleOptions{Priority: perdure.High, Delay: time.Hour})
	f.clock.Advance(10 * time.Second)
	f.process(t, 7) // the urgent one of the future is in nobody's way
	for i, info := range f.runs.all() {
		equal(t, fmt.Sprint("fire ", i+1), info.Alarm.ID, want[i])
	}
}

// A type without a handler here waits for a process that has it.
func (Conformance) AnUnknownTypeWaitsAtNoCost(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", nil)
	key := f.schedule(t, "x", "b", nil)
	f.process(t, 0)
	equal(t, "attempts", f.is(t, key, alarm.Ready).Attempts, 0)
	due, _, err := f.alarms.Due(enginetest.Context(t), alarm.Filter{}, "", 0)
	enginetest.NoError(t, err)
	equal(t, "due", len(due), 1)
	other := newAlarms(t, f.eng, nil)
	_, err = alarm.Handle(other, "b", func(context.Context, string) error { return nil }, nil)
	enginetest.NoError(t, err)
	process(t, other, 1)
	f.rows(t, 0)
}

// An alarm that is scheduled anew while it is fired is not interrupted, and the
// new one is not lost with the old one.
func (Conformance) AHandlerMaySetItsOwnAlarmAgain(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	var again *alarm.Type[string]
	key := alarm.ID("x")
	fail := true
	again = f.handle(t, "again", func(ctx context.Context, payload string) error {
		if payload == "last" {
			return nil
		}
		enginetest.NoError(t, again.Schedule(ctx, key, "last", &alarm.ScheduleOptions{Delay: time.Hour}))
		if fail {
			return errors.New("the outcome of a replaced alarm does not count")
		}
		return nil
	})
	for _, fail = range []bool{true, false} {
		enginetest.NoError(t, again.Schedule(enginetest.Context(t), key, "first", nil))
		f.process(t, 1)
		r := f.is(t, key, alarm.Scheduled)
		equal(t, "due", r.Due, f.clock.Now().Add(time.Hour))
		equal(t, "attempts", r.Attempts, 0)
		equal(t, "error", r.Error, "")
		equal(t, "payload", string(r.Payload), `"last"`)
		f.clock.Advance(time.Hour)
		f.process(t, 1)
		f.rows(t, 0)
	}
}

func (Conformance) ChangeRetryChangesTheAlarmsOfATypeThatAreStored(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	for _, typ := range []string{"remind", "warn"} {
		f.handle(t, typ, func(context.Context, string) error { return errors.New("no mail server") })
	}
	once := &alarm.ScheduleOptions{At: noon.Add(time.Minute), Retry: retry.None()}
	old, kept := f.schedule(t, "a", "remind", once), f.schedule(t, "b", "warn", once)
	changed, err := f.alarms.ChangeRetry(ctx, "remind", retry.Fixed(2, time.Second))
	enginetest.NoError(t, err)
	equal(t, "changed", changed, int64(1))
	later := f.schedule(t, "c", "remind", once)
	f.clock.Set(noon.Add(2 * time.Minute))
	f.process(t, 3)
	f.is(t, kept, alarm.Failed)
	f.is(t, later, alarm.Failed)
	f.clock.Advance(time.Second)
	f.process(t, 1)
	equal(t, "attempts", f.is(t, old, alarm.Failed).Attempts, 2)
}
