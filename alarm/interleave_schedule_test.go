package alarm

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/interleave"
)

// generation checks how often the alarm 1 was scheduled.
func generation(want int) func(s *stage, db *sql.DB) error {
	return func(_ *stage, db *sql.DB) error {
		if got := interleave.Number(db, "select generation from perdure.alarm_items where alarm_id = 'x1'"); got != want {
			return fmt.Errorf("alarm has generation %d, want %d", got, want)
		}
		return nil
	}
}

// oneOf checks that the alarm 1 has one of these states.
func oneOf(states ...string) func(s *stage, db *sql.DB) error {
	return func(_ *stage, db *sql.DB) error { return is(db, states...) }
}

func TestTwoSchedulesMeet(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		fixture    []string
		generation int
		state      string
	}{
		"new key": {nil, 2, "ready"},
		"ready":   {[]string{once(1), isReady(1)}, 3, "ready"},
		"dead":    {[]string{once(1), isDead(1)}, 3, "ready"},
		"running": {[]string{once(1), lease(9, 30, 1)}, 3, "running"},
	} {
		mutants := map[string][]mutation{}
		switch name {
		case "new key":
			mutants["schedules that expect a new key"] = []mutation{rude, rude}
			mutants["schedules that replace their own alarm"] = []mutation{narcissist, narcissist}
		case "running":
			mutants["schedules that make it ready while it runs"] = []mutation{eager, eager}
		default:
			mutants["schedules without the lock"] = []mutation{hasty, hasty}
		}
		t.Run(name, pair{
			fixture: of.fixture,
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.acts("a", m[0], schedules(1, inAnHour)), s.acts("b", m[1], schedules(1, inTwo))}
			},
			more:    both(generation(of.generation), oneOf(of.state+" new 3600", of.state+" new 7200")),
			mutants: mutants,
		}.run)
	}
}

// A schedule that demands that there is no alarm of the key is refused if another schedule
// of the key commits before it.
func TestACheckedScheduleMeetsASchedule(t *testing.T) {
	taken := errors.New("key is taken")
	checked := inTwo
	checked.Check = func(before *Record) error {
		if before != nil {
			return taken
		}
		return nil
	}
	checks := func(a *Alarms, tx *perdure.Tx) (any, error) {
		err := a.ScheduleIn(tx, x(1), "a", "checked", &checked)
		if errors.Is(err, taken) {
			return nil, &perdure.StateError{Kind: "alarm", ID: x(1).String(), Status: string(Ready)}
		}
		return "done", err
	}
	once := func(a *Alarms, tx *perdure.Tx) (any, error) { // checks before, and not again after
		run, err := runs(tx)
		var before *Record
		if err == nil {
			err = run(a.rt.Store.LockAlarm(x(1).stored(), func(r store.Alarm) { found := record(r, interleave.Dawn); before = &found })...)
		}
		if err != nil || before != nil {
			return "taken", err
		}
		return "done", a.ScheduleIn(tx, x(1), "a", "checked", &inTwo)
	}
	pair{
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("a", m[0], schedules(1, inAnHour)), s.acts("b", m[1], checks)}
		},
		more: func(s *stage, db *sql.DB) error {
			want := 2 // the other one has replaced it
			if s.Told("b") != "done" {
				want = 1
			}
			return errors.Join(is(db, "ready new 3600"), generation(want)(s, db))
		},
		variants: map[string]func(s *stage) []interleave.Session{"a check that does not look again": func(s *stage) []interleave.Session {
			return []interleave.Session{s.acts("a", nil, schedules(1, inAnHour)), s.acts("b", nil, once)}
		}},
	}.run(t)
}

func TestAScheduleMeetsAClaim(t *testing.T) {
	t.Parallel()
	for name, e := range endings {
		o := inAnHour
		if e.recurs {
			o = hourly
		}
		t.Run(name, pair{
			fixture: []string{e.fixture, isReady(1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.acts("s", m[0], schedules(1, o)), s.claimAndEnd("o", m[1], false, e.ending)}
			},
			more: both(ends("o", map[any][]string{nil: {"ready new 3600"}, "dropped": {"ready new 3600"}, "committed": {"ready new 3600"}}), buried(e.recurs, e.ending)),
			mutants: map[string][]mutation{
				"a schedule that leaves the alarm in its lane": {idle, nil},
				"a schedule that makes it ready while it runs": {eager, nil},
				"a claim that leases what it has read":         {nil, greedy},
				"an outcome that does not put it back":         {nil, keeping},
			},
		}.run)
	}
}

// A recurring alarm with the same ticks continues where it is, with the new payload.
func TestAScheduleOfTheSameTicksMeetsAClaim(t *testing.T) {
	pair{
		fixture: []string{often(1), isReady(1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("s", m[0], schedules(1, minutely)), s.claimAndEnd("o", m[1], false, fired)}
		},
		more: ends("o", map[any][]string{nil: {"ready new 0"}, "committed": {"ready new 60"}}),
		mutants: map[string][]mutation{
			"a schedule that makes it ready while it runs": {eager, nil},
			"a claim that leases what it has read":         {nil, greedy},
			"an outcome that does not put it back":         {nil, keeping},
		},
	}.run(t)
}

func TestAScheduleMeetsACancel(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		fixture []string
		mutants map[string][]mutation
	}{
		"new key": {nil, map[string][]mutation{"a cancel that leaves the alarm in its lane": {nil, idle}}},
		"ready":   {[]string{once(1), isReady(1)}, map[string][]mutation{"a cancel without its locks": {nil, interleave.All(unfound, unwaiting)}}},
		"dead":    {[]string{once(1), isDead(1)}, map[string][]mutation{"a cancel without the lock": {nil, unfound}}},
		"running": {[]string{once(1), lease(9, 30, 1)}, map[string][]mutation{"a cancel that takes nothing away": {nil, gentle}, "a schedule that makes it ready while it runs": {eager, nil}}},
	} {
		t.Run(name, pair{
			fixture: of.fixture,
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.acts("s", m[0], schedules(1, inAnHour)), s.acts("c", m[1], cancels(1))}
			},
			more: func(s *stage, db *sql.DB) error {
				if s.Told("c") == string(NothingFound) && of.fixture != nil {
					return errors.New("cancel has found nothing")
				}
				if name == "running" && interleave.Number(db, "select count(*) from perdure.interrupts") != 1 {
					return errors.New("claim was not taken away")
				}
				if s.Told("c") == string(NothingFound) {
					return is(db, "ready new 3600")
				}
				return is(db, "gone", "ready new 3600")
			},
			mutants: of.mutants, alike: name == "new key",
		}.run)
	}
}

func TestACancelMeetsAClaim(t *testing.T) {
	t.Parallel()
	for name, e := range endings {
		t.Run(name, pair{
			notify: true, fixture: []string{e.fixture, isReady(1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.acts("c", m[0], cancels(1)), s.claimAndEnd("o", m[1], false, e.ending)}
			},
			more: both(func(s *stage, db *sql.DB) error {
				want, known := map[any]string{nil: string(Prevented), "taken": string(TooLate), "committed": late(e.state)}[s.Told("o")]
				if !known || s.Told("c") != want {
					return fmt.Errorf("cancel told %v, and the outcome was %v", s.Told("c"), s.Told("o"))
				}
				return is(db, "gone")
			}, notified("o"), buried(e.recurs, e.ending)),
			mutants: map[string][]mutation{
				"a cancel that leaves the alarm in its lane": {idle, nil},
				"a claim that leases what it has read":       {nil, greedy},
				"a cancel that takes nothing away":           {gentle, present},
				"a cancel that does not wait for the claim":  {unwaiting, present},
			},
		}.run)
	}
}

// interrupted checks that a claim of an alarm that was cancelled is taken away.
func interrupted(s *stage, db *sql.DB) error {
	if s.Told("c") == string(TooLate) && interleave.Number(db, "select count(*) from perdure.interrupts") != 1 {
		return errors.New("cancel was too late, but the claim was not taken away")
	}
	return nil
}

func TestACancelMeetsAHandler(t *testing.T) {
	pair{
		fixture: []string{once(1), isReady(1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("c", m[0], cancels(1)), s.claim("o", m[1])}
		},
		more: both(oneOf("gone"), interrupted),
		mutants: map[string][]mutation{
			"a cancel that takes nothing away":          {gentle, nil},
			"a cancel that does not wait for the claim": {unwaiting, nil},
		},
	}.run(t)
}

// A cancel that has found nothing may meet an alarm that was scheduled since, and has no
// lock on it.
func TestACancelMeetsTheLifeOfANewAlarm(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]struct {
		options ScheduleOptions
		ending  ending
	}{
		"fired": {ScheduleOptions{At: interleave.Dawn}, fired}, "tried again": {ScheduleOptions{At: interleave.Dawn}, tried}, "dead": {ScheduleOptions{At: interleave.Dawn}, died},
		"recurring fired": {minutely, fired}, "recurring dead": {minutely, died},
	} {
		mutants := map[string][]mutation{
			"a cancel that leaves the alarm in its lane":   {idle, nil},
			"an outcome that does not see that it is gone": {nil, present},
		}
		if e.ending == tried || e.options.Every != 0 { // others remove the alarm or make it a dead letter
			mutants["a cancel of an alarm that has changed since"] = []mutation{ruthless, nil}
		}
		t.Run(name, pair{
			quiet: append([]string{"as waits", "set due_at = o.next", "set attempt = a.attempt + 1", "insert into perdure.alarm_items (id"}, written...),
			sessions: func(s *stage, m []mutation) []interleave.Session {
				life := s.acts("s", m[1], schedules(1, e.options))
				end := s.claimAndEnd("o", m[1], false, e.ending)
				return []interleave.Session{s.acts("c", m[0], cancels(1)), {Name: "o", Run: func(ctx context.Context, c *interleave.Conn) error {
					if err := life.Run(ctx, c); err != nil {
						return err
					}
					return end.Run(ctx, c)
				}}}
			},
			more: both(func(s *stage, db *sql.DB) error {
				if s.Told("c") == string(NothingFound) {
					return nil
				}
				if s.Told("c") == string(TooLate) && s.Told("o") != "taken" && (e.ending != died || e.options.Every != 0) {
					return errors.New("cancel was too late, but the outcome was not dropped")
				}
				return is(db, "gone")
			}, buried(e.options.Every != 0, e.ending)),
			mutants: mutants,
		}.run)
	}
}
