package alarm

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/perdure/perdure/internal/test/interleave"
)

// endings are the outcomes of alarms of the fixtures, and the states of the alarms after
// them.
var endings = map[string]struct {
	recurs  bool
	fixture string
	ending  ending
	state   string
}{
	"fired":                 {false, once(1), fired, "gone"},
	"tried again":           {false, once(1), tried, "ready old 90"},
	"dead":                  {false, once(1), died, "failed old 0"},
	"recurring fired":       {true, often(1), fired, "ready old 60"},
	"recurring tried again": {true, often(1), tried, "ready old 90"},
	"recurring dead":        {true, often(1), died, "ready old 60"},
}

// buried checks that there is a dead letter of a tick if its outcome was committed, and
// none otherwise.
func buried(recurs bool, e ending) func(s *stage, db *sql.DB) error {
	return func(s *stage, db *sql.DB) error {
		want := 0
		if recurs && e == died && s.Told("o") == "committed" {
			want = 1
		}
		if got := interleave.Number(db, "select count(*) from perdure.alarm_items where alarm_id like 'x1@%' and dead = 'failed'"); got != want {
			return fmt.Errorf("%d dead letters of ticks, want %d", got, want)
		}
		return nil
	}
}

func TestTwoClaimsMeet(t *testing.T) {
	pair{
		fixture: []string{once(1), isReady(1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.claim("a", m[0]), s.claim("b", m[1])}
		},
		more: func(s *stage, db *sql.DB) error {
			if n := s.Told("a").(int) + s.Told("b").(int); n != 1 {
				return fmt.Errorf("alarm was claimed %d times", n)
			}
			return is(db, "running old 0")
		},
		alike: true,
		mutants: map[string][]mutation{
			"claims that lease what they have read": {greedy, greedy},
		},
	}.run(t)
}

func TestAnOutcomeMeetsTheReaper(t *testing.T) {
	t.Parallel()
	for name, e := range endings {
		t.Run(name, pair{
			notify: true, fixture: []string{e.fixture, once(2), lease(9, -1, 1, 2)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.reaper("r", m[0]), s.outcome("o", m[1], 2, e.recurs, e.ending, 1)}
			},
			more: both(ends("o", map[any][]string{"committed": {e.state}, "lost": {"ready old 0"}}), notified("o"), buried(e.recurs, e.ending)),
			mutants: map[string][]mutation{
				"an outcome without its locks":   {nil, interleave.All(unshared, unlocked)},
				"an outcome that needs no lease": {nil, immortal},
			},
		}.run)
	}
}

func TestAnOutcomeMeetsASchedule(t *testing.T) {
	t.Parallel()
	for name, e := range endings {
		o := inAnHour
		if e.recurs {
			o = hourly
		}
		t.Run(name, pair{
			fixture: []string{e.fixture, lease(9, 30, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.acts("s", m[0], schedules(1, o)), s.outcome("o", m[1], 1, e.recurs, e.ending, 1)}
			},
			more: both(ends("o", map[any][]string{"committed": {"ready new 3600"}, "dropped": {"ready new 3600"}}), buried(e.recurs, e.ending)),
			mutants: map[string][]mutation{
				"an outcome that does not see the new generation": {nil, dated},
				"an outcome that does not put it back":            {nil, keeping},
				"an outcome without the lock":                     {nil, interleave.All(unlocked, lax)},
				"a schedule that makes it ready while it runs":    {eager, nil},
				"a schedule that keeps the generation":            {same, nil},
			},
		}.run)
	}
}

// A recurring alarm with the same ticks continues where it is, with the new payload.
func TestAnOutcomeMeetsAScheduleOfTheSameTicks(t *testing.T) {
	t.Parallel()
	for name, e := range endings {
		if !e.recurs {
			continue
		}
		due := map[ending]string{fired: "60", tried: "90", died: "60"}[e.ending]
		t.Run(name, pair{
			fixture: []string{e.fixture, lease(9, 30, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.acts("s", m[0], schedules(1, minutely)), s.outcome("o", m[1], 1, true, e.ending, 1)}
			},
			more: both(ends("o", map[any][]string{"committed": {"ready new " + due}}), buried(true, e.ending)),
			mutants: map[string][]mutation{
				"an outcome that does not put it back":         {nil, keeping},
				"a schedule that makes it ready while it runs": {eager, nil},
			},
		}.run)
	}
}

// late returns the result of a cancel that comes after an outcome.
func late(state string) string {
	switch state {
	case "gone":
		return string(NothingFound)
	case "failed old 0":
		return string(TooLate)
	}
	return string(Prevented)
}

func TestACancelMeetsAnOutcome(t *testing.T) {
	t.Parallel()
	for name, e := range endings {
		mutants := map[string][]mutation{
			"an outcome without the lock":      {nil, unlocked},
			"an outcome that is not asked":     {nil, interleave.All(deaf, present)},
			"a cancel that takes nothing away": {gentle, present},
		}
		if e.state != "gone" { // otherwise the removal of the row is enough
			mutants["a cancel without the lock"] = []mutation{unfound, nil}
		}
		t.Run(name, pair{
			notify: true, fixture: []string{e.fixture, lease(9, 30, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.acts("c", m[0], cancels(1)), s.outcome("o", m[1], 1, e.recurs, e.ending, 1)}
			},
			more: both(func(s *stage, db *sql.DB) error {
				want := map[any]string{"committed": late(e.state), "taken": string(TooLate)}[s.Told("o")]
				if s.Told("c") != want {
					return fmt.Errorf("cancel told %v after the outcome was %v, want %s", s.Told("c"), s.Told("o"), want)
				}
				return is(db, "gone")
			}, notified("o"), buried(e.recurs, e.ending)),
			mutants: mutants,
		}.run)
	}
}

func TestACancelMeetsTheReaper(t *testing.T) {
	pair{
		fixture: []string{once(1), once(2), lease(9, -1, 1, 2)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("c", m[0], cancels(1)), s.reaper("r", m[1])}
		},
		more: ends("c", map[any][]string{string(TooLate): {"gone"}, string(Prevented): {"gone"}}),
		mutants: map[string][]mutation{
			"a reaper without the lock": {nil, untaken},
			"a cancel without the lock": {unfound, nil},
		},
	}.run(t)
}

func TestAScheduleMeetsTheReaper(t *testing.T) {
	pair{
		fixture: []string{once(1), once(2), lease(9, -1, 1, 2)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("s", m[0], schedules(1, inAnHour)), s.reaper("r", m[1])}
		},
		more: func(_ *stage, db *sql.DB) error { return is(db, "ready new 3600", "running new 3600") },
		mutants: map[string][]mutation{
			"a reaper that returns it for now": {nil, impatient},
			"a schedule without the lock":      {hasty, nil},
		},
	}.run(t)
}
