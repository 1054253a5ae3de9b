package alarm

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/perdure/perdure/internal/test/interleave"
)

// claimed checks how many alarms the session c may have claimed, by what another one told.
func claimed(of string, want map[any][]int) func(s *stage, db *sql.DB) error {
	return func(s *stage, _ *sql.DB) error {
		for _, n := range want[s.Told(of)] {
			if s.Told("c") == n {
				return nil
			}
		}
		return fmt.Errorf("%v alarms were claimed after %s told %v", s.Told("c"), of, s.Told(of))
	}
}

func TestAChangeMeetsAClaim(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		change doing
		states []string
		claims []int
	}{
		"move":     {moves(1), []string{"ready old 3600"}, []int{0}},
		"fire now": {fires(1), []string{"ready old 0", "running old 0"}, []int{0, 1}},
		"skip":     {skips(1), []string{"ready old 60"}, []int{0}},
	} {
		mutants := map[string][]mutation{"a change that does not look whether the alarm runs": {blind, nil}}
		if name != "fire now" { // it is due either way
			mutants["a claim that leases what it has read"] = []mutation{nil, greedy}
		}
		t.Run(name, pair{
			fixture: []string{often(1), isReady(1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.acts("m", m[0], of.change), s.claim("c", m[1])}
			},
			more: both(ends("m", map[any][]string{"done": of.states, "refused running": {"running old 0"}}),
				claimed("m", map[any][]int{"done": of.claims, "refused running": {1}})),
			mutants: mutants,
		}.run)
	}
}

func TestAChangeMeetsAnOutcome(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		change doing
		state  string
	}{"move": {moves(1), "ready old 3600"}, "fire now": {fires(1), "ready old 0"}, "skip": {skips(1), "ready old 120"}} {
		t.Run(name, pair{
			fixture: []string{often(1), lease(9, 30, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.acts("m", m[0], of.change), s.outcome("o", m[1], 1, true, fired, 1)}
			},
			more: ends("m", map[any][]string{"done": {of.state}, "refused running": {"ready old 60"}}),
			mutants: map[string][]mutation{
				"a change that does not look whether the alarm runs": {blind, nil},
			},
		}.run)
	}
}

func TestAChangeMeetsASchedule(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		change doing
		states []string
	}{
		"move":     {moves(1), []string{"ready new 3600", "ready new 7200"}},
		"fire now": {fires(1), []string{"ready new 0", "ready new 7200"}},
		"cancel":   {cancels(1), []string{"gone", "ready new 7200"}},
	} {
		mutants := map[string][]mutation{"a schedule without the lock": {nil, hasty}}
		if name == "cancel" { // its own checks are enough
			mutants = map[string][]mutation{"a cancel that leaves the alarm in its lane": {idle, nil}}
		}
		t.Run(name, pair{
			fixture: []string{once(1), isReady(1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.acts("m", m[0], of.change), s.acts("s", m[1], schedules(1, inTwo))}
			},
			more: oneOf(of.states...), mutants: mutants,
		}.run)
	}
}

func TestTwoRetriesMeet(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]doing{"one": retries(1), "all": retriesAll} {
		t.Run(name, pair{
			fixture: []string{once(1), isDead(1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.acts("a", m[0], retries(1)), s.acts("b", m[1], second)}
			},
			more: func(s *stage, db *sql.DB) error {
				done := 0
				for _, told := range []any{s.Told("a"), s.Told("b")} {
					if told == "done" || told == int64(1) {
						done++
					}
				}
				if done != 1 {
					return fmt.Errorf("%d retries were done, want 1", done)
				}
				return is(db, "ready old 0")
			},
			mutants: map[string][]mutation{
				"retries that do not look whether the alarm is dead": {restless, restless},
			},
		}.run)
	}
}

func TestARetryMeetsACancel(t *testing.T) {
	t.Parallel()
	for name, retry := range map[string]doing{"one": retries(1), "all": retriesAll} {
		t.Run(name, pair{
			fixture: []string{once(1), isDead(1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.acts("r", m[0], retry), s.acts("c", m[1], cancels(1))}
			},
			more: func(s *stage, db *sql.DB) error {
				want := TooLate
				if s.Told("r") == "done" || s.Told("r") == int64(1) {
					want = Prevented
				}
				if s.Told("c") != string(want) {
					return fmt.Errorf("cancel told %v, want %s", s.Told("c"), want)
				}
				return is(db, "gone")
			},
			mutants: map[string][]mutation{
				"a cancel without the lock": {nil, interleave.All(unfound, ruthless)},
			},
		}.run)
	}
}

func TestARetryMeetsAClaim(t *testing.T) {
	pair{
		fixture: []string{once(1), isDead(1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("r", m[0], retries(1)), s.claimAndEnd("o", m[1], false, fired)}
		},
		more: both(ends("o", map[any][]string{nil: {"ready old 0"}, "committed": {"gone"}}), func(s *stage, _ *sql.DB) error {
			if s.Told("r") != "done" {
				return errors.New("retry was refused")
			}
			return nil
		}),
		alike: true,
		mutants: map[string][]mutation{
			"a retry that does not make it ready": {keeping, nil},
		},
	}.run(t)
}

func TestARetryMeetsASchedule(t *testing.T) {
	pair{
		fixture: []string{once(1), isDead(1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("r", m[0], retries(1)), s.acts("s", m[1], schedules(1, inAnHour))}
		},
		more: ends("r", map[any][]string{"done": {"ready new 3600"}, "refused scheduled": {"ready new 3600"}}),
		mutants: map[string][]mutation{
			"a schedule without the lock":                          {nil, hasty},
			"a retry that does not look whether the alarm is dead": {restless, nil},
		},
	}.run(t)
}

// CancelAll and a schedule that makes the alarm due meet a process.
func TestACancelOfAllMeetsAScheduleAndAClaim(t *testing.T) {
	due := inAnHour
	due.At = interleave.Dawn
	t.Parallel()
	for name, fixture := range map[string][]string{"new key": nil, "ready": {once(1), isReady(1)}} {
		t.Run(name, pair{
			fixture: fixture,
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.acts("a", m[0], cancelsAll), s.acts("s", m[1], schedules(1, due)), s.claim("c", m[2])}
			},
			more: func(s *stage, db *sql.DB) error {
				// A claim of an alarm that is gone was taken away.
				held := interleave.Number(db, `select count(*) from perdure.leases l, unnest(l.ids) as held (id)
					where not exists (select 1 from perdure.alarm_items h where h.id = held.id) and not exists (select 1 from perdure.interrupts x where x.id = held.id and x.token = l.token)`)
				if held != 0 {
					return errors.New("alarm is gone, but its claim was not taken away")
				}
				return is(db, "gone", "ready new 0", "running new 0")
			},
			mutants: map[string][]mutation{
				"a cancel that takes nothing away":           {gentle, nil, nil},
				"a cancel that does not wait for the claim":  {unwaiting, nil, nil},
				"a cancel that leaves the alarm in its lane": {idle, nil, nil},
			},
		}.run)
	}
}

func TestACancelOfAllMeetsAnOutcome(t *testing.T) {
	t.Parallel()
	for name, e := range endings {
		t.Run(name, pair{
			fixture: []string{e.fixture, once(2), isReady(2), lease(9, 30, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.acts("c", m[0], cancelsAll), s.outcome("o", m[1], 1, e.recurs, e.ending, 1)}
			},
			more: both(func(s *stage, db *sql.DB) error {
				if got := state(db, 2); got != "gone" {
					return fmt.Errorf("second alarm is %s, want gone", got)
				}
				return is(db, "gone")
			}, func(s *stage, db *sql.DB) error {
				if e.recurs && e.ending == died {
					return nil // a dead letter that was recorded since may be kept
				}
				return buried(false, e.ending)(s, db)
			}),
			mutants: map[string][]mutation{
				"an outcome that is not asked": {nil, interleave.All(deaf, present)},
				"outcomes without the lock":    {nil, unlocked},
			},
		}.run)
	}
}
