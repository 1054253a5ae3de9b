package alarm

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/perdure/perdure/internal/test/interleave"
)

// rows checks that the application has a row for each outcome that was committed.
func rows(sessions ...string) func(s *stage, db *sql.DB) error {
	return func(s *stage, db *sql.DB) error {
		committed := 0
		for _, name := range sessions {
			if s.Told(name) == "committed" {
				committed++
			}
		}
		if n := interleave.Number(db, "select count(*) from written"); n != committed {
			return fmt.Errorf("%d rows of %d outcomes", n, committed)
		}
		return nil
	}
}

// written are marks of statements that write under the lock of the alarm.
var written = []string{"insert into written", "delete from perdure.alarm_items a\nusing unnest", "batch_limit is not null, priority, due_at, id\nfrom perdure.alarm_items"}

// A process whose lease has expired commits a row with its outcome, while another one
// returns the claim, makes it again and does the same.
func TestTheNextProcessMeetsARowOfTheApplication(t *testing.T) {
	pair{
		quiet: written, fixture: []string{once(1), lease(9, -1, 1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.claimAndEnd("n", m[0], true, ""), s.with("o", m[1], 1, false, nil)}
		},
		more: both(rows("n", "o"), func(_ *stage, db *sql.DB) error {
			n := interleave.Number(db, "select count(*) from written")
			if left := interleave.Number(db, "select count(*) from perdure.alarm_items"); n+left != 1 {
				return fmt.Errorf("%d rows were committed, and %d alarms are left", n, left)
			}
			return nil
		}),
		mutants: map[string][]mutation{
			"an outcome that needs no lease": {nil, interleave.All(unseen, present)},
		},
		variants: map[string]func(s *stage) []interleave.Session{"an outcome that does not verify": func(s *stage) []interleave.Session {
			return []interleave.Session{s.claimAndEnd("n", nil, true, ""), s.with("o", nil, 1, true, nil)}
		}},
	}.run(t)
}

func TestACancelMeetsARowOfTheApplication(t *testing.T) {
	pair{
		fixture: []string{once(1), lease(9, 30, 1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("c", m[0], cancels(1)), s.with("o", m[1], 1, false, nil)}
		},
		more: both(rows("o"), func(s *stage, db *sql.DB) error {
			if want := map[any]string{"committed": string(NothingFound), "taken": string(TooLate)}[s.Told("o")]; s.Told("c") != want {
				return fmt.Errorf("cancel told %v after the outcome was %v", s.Told("c"), s.Told("o"))
			}
			return is(db, "gone")
		}),
		mutants: map[string][]mutation{
			"an outcome without the lock":      {nil, unlocked},
			"an outcome that is not asked":     {nil, interleave.All(deaf, present)},
			"a cancel that takes nothing away": {gentle, present},
		},
	}.run(t)
}

// An alarm that is cancelled while it is claimed commits no row of the application.
func TestACancelMeetsAClaimAndARowOfTheApplication(t *testing.T) {
	pair{
		fixture: []string{once(1), isReady(1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("c", m[0], cancels(1)), s.claimAndEnd("o", m[1], false, "")}
		},
		more: both(rows("o"), func(s *stage, db *sql.DB) error {
			want := map[any]string{nil: string(Prevented), "committed": string(NothingFound), "taken": string(TooLate)}[s.Told("o")]
			if s.Told("c") != want {
				return fmt.Errorf("cancel told %v after the outcome was %v", s.Told("c"), s.Told("o"))
			}
			return is(db, "gone")
		}),
		mutants: map[string][]mutation{
			"a cancel that does not wait for the claim": {unwaiting, present},
		},
	}.run(t)
}

func TestAScheduleMeetsARowOfTheApplication(t *testing.T) {
	pair{
		fixture: []string{once(1), lease(9, 30, 1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("s", m[0], schedules(1, inAnHour)), s.with("o", m[1], 1, false, nil)}
		},
		more: both(oneOf("ready new 3600"), func(_ *stage, db *sql.DB) error { // it has run, whatever comes next
			if n := interleave.Number(db, "select count(*) from written"); n != 1 {
				return fmt.Errorf("%d rows of an outcome", n)
			}
			return nil
		}),
		mutants: map[string][]mutation{
			"an outcome that does not see the new generation": {nil, dated},
			"an outcome that does not put it back":            {nil, keeping},
			"an outcome without the lock":                     {nil, interleave.All(unlocked, lax)},
			"a schedule that makes it ready while it runs":    {eager, nil},
		},
	}.run(t)
}

// An alarm whose handler schedules it again is due at the time that was said last.
func TestAScheduleMeetsAnAlarmThatSchedulesItself(t *testing.T) {
	pair{
		fixture: []string{once(1), lease(9, 30, 1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("s", m[0], schedules(1, inAnHour)), s.with("o", m[1], 1, false, schedules(1, inTwo))}
		},
		more: both(func(_ *stage, db *sql.DB) error { return is(db, "ready new 3600", "ready new 7200") }, generation(3)),
		mutants: map[string][]mutation{
			"an outcome that does not compare generations again": {nil, lax},
			"an outcome that does not put it back":               {nil, keeping},
			"a schedule that makes it ready while it runs":       {eager, nil},
			"an outcome without the lock that ends what it ran":  {nil, interleave.All(unlocked, lax)},
		},
	}.run(t)
}

func TestTheReaperMeetsAnAlarmThatSchedulesItself(t *testing.T) {
	pair{
		quiet:   append([]string{"insert into perdure.alarm_items as a", "as waits"}, written...),
		fixture: []string{once(1), once(2), lease(9, -1, 1, 2)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.reaper("r", m[0]), s.with("o", m[1], 2, false, schedules(1, inTwo))}
		},
		more: both(rows("o"), ends("o", map[any][]string{"committed": {"ready new 7200"}, "lost": {"ready old 0"}})),
		mutants: map[string][]mutation{
			"an outcome that does not put it back": {nil, keeping},
			"an outcome that needs no lease":       {nil, unseen},
			"a reaper without the lock":            {untaken, nil},
		},
	}.run(t)
}

func TestACancelMeetsAnAlarmThatSchedulesItself(t *testing.T) {
	pair{
		fixture: []string{once(1), lease(9, 30, 1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("c", m[0], cancels(1)), s.with("o", m[1], 1, false, schedules(1, inTwo))}
		},
		more: both(rows("o"), oneOf("gone"), ends("c", map[any][]string{string(Prevented): {"gone"}, string(TooLate): {"gone"}})),
		mutants: map[string][]mutation{
			"an outcome that is not asked": {nil, interleave.All(deaf, present)},
			"a cancel without the lock":    {unfound, nil},
		},
	}.run(t)
}
