package alarm

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/perdure/perdure/internal/test/interleave"
)

// isPoison is a fixture: the next crash of the alarm 1, which runs alone, quarantines it.
const isPoison = `with l as (update perdure.leases set alone = true) update perdure.alarm_items set batch_limit = -200, crashes = 99 where alarm_id = 'x1'`

func TestTwoCancelsMeet(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]string{"ready": isReady(1), "running": lease(9, 30, 1), "dead": isDead(1)} {
		t.Run(name, pair{
			fixture: []string{once(1), place},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.acts("a", m[0], cancels(1)), s.acts("b", m[1], cancels(1))}
			},
			more: func(s *stage, db *sql.DB) error {
				if (s.Told("a") == string(NothingFound)) == (s.Told("b") == string(NothingFound)) {
					return errors.New("not one of them has cancelled it")
				}
				return is(db, "gone")
			},
			mutants: map[string][]mutation{
				"cancels that remove nothing": {undying, undying},
			},
		}.run)
	}
}

func TestAQuarantineMeetsACancel(t *testing.T) {
	pair{
		notify: true, fixture: []string{once(1), lease(9, -1, 1), isPoison},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("c", m[0], cancels(1)), s.reaper("r", m[1])}
		},
		more: ends("c", map[any][]string{string(TooLate): {"gone"}}),
		mutants: map[string][]mutation{
			"a reaper without the lock": {nil, untaken},
			"a cancel without the lock": {unfound, nil},
		},
	}.run(t)
}

// The crash of an alarm that was scheduled again while it ran counts for the new one.
func TestAQuarantineMeetsASchedule(t *testing.T) {
	pair{
		notify: true, fixture: []string{once(1), lease(9, -1, 1), isPoison},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("s", m[0], schedules(1, inAnHour)), s.reaper("r", m[1])}
		},
		more: oneOf("quarantined new 3600", "ready new 3600", "running new 3600"),
		mutants: map[string][]mutation{
			"a schedule without the lock": {hasty, nil},
		},
	}.run(t)
}

func TestAScheduleMeetsAnAlarmThatCancelsItself(t *testing.T) {
	pair{
		fixture: []string{once(1), lease(9, 30, 1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("s", m[0], schedules(1, inAnHour)), s.with("o", m[1], 1, false, cancels(1))}
		},
		more: oneOf("gone", "ready new 3600"),
		mutants: map[string][]mutation{
			"an outcome that leaves the interrupt": {nil, clinging},
		},
	}.run(t)
}

func TestTheReaperMeetsAnAlarmThatCancelsItself(t *testing.T) {
	pair{
		// The outcome has the lock of the alarm that it cancels.
		quiet:   append([]string{"from perdure.alarm_items\nwhere actor_type", "select 1\nfrom perdure.alarm_items h", "as version"}, written...),
		fixture: []string{once(1), once(2), lease(9, -1, 1, 2)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.reaper("r", m[0]), s.with("o", m[1], 2, false, cancels(1))}
		},
		more: both(rows("o"), ends("o", map[any][]string{"committed": {"gone"}, "lost": {"ready old 0"}})),
		mutants: map[string][]mutation{
			"a reaper without the lock": {untaken, nil},
		},
	}.run(t)
}
