package alarm_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// The text that alarms are built after has a manager of alarms that goes wrong in
// ways that the design corrects (section 10, numbers 15 and 16; package actor has
// the rest of 15). seed is that manager as the text has it; each test shows what it
// does, and beside it what we do.

// seed is the table of alarms of one durable object of the text.
type seed struct {
	now    time.Time
	starts int
	alarms []seedAlarm
}

// seedAlarm is a row of it.
type seedAlarm struct {
	id          string
	scheduledAt time.Time
	repeat      time.Duration
}

// start is the constructor: it schedules the cleanup, under a new id each time.
func (s *seed) start() {
	s.starts++
	s.alarms = append(s.alarms, seedAlarm{
		id: fmt.Sprint("alarm-", s.starts), scheduledAt: s.now.Add(5 * time.Minute), repeat: 5 * time.Minute,
	})
}

// due is handleDueAlarms: what repeats is scheduled again from now.
func (s *seed) due() (fired int) {
	for i, a := range s.alarms {
		if !a.scheduledAt.After(s.now) {
			s.alarms[i].scheduledAt = s.now.Add(a.repeat)
			fired++
		}
	}
	return fired
}

// example is alarm() of the text's own example: it handles all alarms of its kind
// that are pending, and deletes them.
func (s *seed) example() (handled []string) {
	for _, a := range s.alarms {
		handled = append(handled, a.id)
	}
	s.alarms = nil
	return handled
}

// seedNext is calculateNextRecurringAlarm, which goes on until it is past now; ended
// says whether it was after so many rounds.
func seedNext(base, now time.Time, interval time.Duration, rounds int) (next time.Time, ended bool) {
	for next = base; next.Before(now); next = next.Add(interval) {
		if rounds--; rounds < 0 {
			return next, false
		}
	}
	return next, true
}

func sqliteFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixture(t, enginetest.New(t, enginetest.SQLite), nil)
}

func TestCorrection15HandlersSeeOnlyWhatIsDue(t *testing.T) {
	t.Parallel()
	s := &seed{now: noon, alarms: []seedAlarm{{id: "reminder", scheduledAt: noon.Add(24 * time.Hour)}}}
	equal(t, "the text handles", fmt.Sprint(s.example()), "[reminder]") // a day early

	f := sqliteFixture(t)
	f.handle(t, "reminder", nil)
	f.schedule(t, "reminder", "reminder", &alarm.ScheduleOptions{Delay: 24 * time.Hour})
	f.process(t, 0)
	f.clock.Advance(24 * time.Hour)
	f.process(t, 1)
}

func TestCorrection16RecurringAlarmsDoNotDrift(t *testing.T) {
	t.Parallel()
	const every, late, ticks = 10 * time.Second, 20 * time.Millisecond, 100
	s := &seed{now: noon, alarms: []seedAlarm{{scheduledAt: noon.Add(every), repeat: every}}}
	for range ticks {
		s.now = s.alarms[0].scheduledAt.Add(late)
		equal(t, "the text fires", s.due(), 1)
	}
	equal(t, "the text's next tick", s.alarms[0].scheduledAt.Sub(noon), (ticks+1)*every+ticks*late) // two seconds off

	f := sqliteFixture(t)
	f.handle(t, "tick", nil)
	key := f.schedule(t, "x", "tick", &alarm.ScheduleOptions{Every: every})
	for range ticks {
		f.clock.Set(f.get(t, key).Due.Add(late))
		f.process(t, 1)
	}
	equal(t, "our next tick", f.get(t, key).Due.Sub(noon), (ticks+1)*every)
}

func TestCorrection16AnIntervalHasToBeMoreThanNothing(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{0, -time.Second} {
		_, ended := seedNext(noon, noon.Add(time.Hour), every, 1_000_000)
		equal(t, "the text's loop has ended", ended, false)
	}
	next, _ := seedNext(noon, noon, time.Hour, 1)
	equal(t, "the text's next tick", next, noon) // which has just been fired

	f := sqliteFixture(t)
	for _, every := range []time.Duration{-time.Second, -1, time.Nanosecond} {
		err := f.alarms.Schedule(enginetest.Context(t), alarm.ID("x"), "tick", nil, &alarm.ScheduleOptions{Every: every})
		enginetest.As[*fault.Invalid](t, err)
	}
	f.rows(t, 0)
}

func TestCorrection16AStartAddsNoAlarm(t *testing.T) {
	t.Parallel()
	s := &seed{now: noon}
	f := sqliteFixture(t)
	for range 5 {
		s.start()
		enginetest.NoError(t, newAlarms(t, f.eng, nil).Schedule(enginetest.Context(t), alarm.ID("cleanup"), "cleanup", nil, &alarm.ScheduleOptions{Every: 5 * time.Minute}))
	}
	equal(t, "the text's alarms", len(s.alarms), 5) // and as many wake-ups
	f.rows(t, 1)
}
