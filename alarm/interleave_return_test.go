package alarm

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/test/interleave"
	"github.com/perdure/perdure/internal/work"
)

// giveBack returns the alarm 1, whose outcome is in doubt, to its lane.
func (s *stage) giveBack(name string, mutate mutation) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, a *Alarms) error {
		a.runner.Leased(id(9), 1)
		return a.runner.GiveBack(ctx, []*work.Decided{decided(1, 9, false, fired)}, core.ErrLost)
	})
}

// own returns the alarms of expired leases of the process itself. It has no handlers, and
// thus claims nothing.
func (s *stage) own(name string, mutate mutation) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, a *Alarms) error {
		clear(a.handlers)
		a.options.DeadRetention = -1
		_, err := a.runner.Queues()[0].Process(ctx)
		return err
	})
}

// purge removes all dead letters and tells how many.
func (s *stage) purge(name string, mutate mutation) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, a *Alarms) error {
		n, err := a.PurgeDead(ctx, 0)
		s.Tell(name, n)
		return err
	})
}

func TestACancelMeetsAReturn(t *testing.T) {
	pair{
		fixture: []string{once(1), lease(9, 30, 1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("c", m[0], cancels(1)), s.giveBack("g", m[1])}
		},
		more: ends("c", map[any][]string{string(Prevented): {"gone"}, string(TooLate): {"gone"}}),
		mutants: map[string][]mutation{
			"a return without the lock": {nil, unlocked},
			"a cancel without the lock": {unfound, nil},
		},
	}.run(t)
}

func TestAScheduleMeetsAReturn(t *testing.T) {
	pair{
		fixture: []string{once(1), lease(9, 30, 1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("s", m[0], schedules(1, inAnHour)), s.giveBack("g", m[1])}
		},
		more: oneOf("ready new 3600"),
		mutants: map[string][]mutation{
			"a return without the lock":   {nil, unlocked},
			"a schedule without the lock": {hasty, nil},
		},
	}.run(t)
}

func TestACancelMeetsTheReaperOfItsOwnProcess(t *testing.T) {
	pair{
		fixture: []string{once(1), once(2), lease(9, -1, 1, 2)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("c", m[0], cancels(1)), s.own("r", m[1])}
		},
		more: ends("c", map[any][]string{string(Prevented): {"gone"}, string(TooLate): {"gone"}}),
		mutants: map[string][]mutation{
			"a reaper without the lock": {nil, untaken},
			"a cancel without the lock": {unfound, nil},
		},
	}.run(t)
}

func TestAScheduleMeetsTheReaperOfItsOwnProcess(t *testing.T) {
	pair{
		fixture: []string{once(1), once(2), lease(9, -1, 1, 2)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("s", m[0], schedules(1, inAnHour)), s.own("r", m[1])}
		},
		more: oneOf("ready new 3600", "running new 3600"),
		mutants: map[string][]mutation{
			"a reaper without the lock":   {nil, untaken},
			"a schedule without the lock": {hasty, nil},
		},
	}.run(t)
}

// The outcomes of two alarms are committed together, and one of them is cancelled or
// scheduled again.
func TestAGroupMeetsAnAct(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		act   doing
		state string
	}{"cancel": {cancels(1), "gone"}, "schedule": {schedules(1, inAnHour), "ready new 3600"}} {
		for ended, e := range endings {
			fixture, second := once(2), map[ending]string{fired: "gone", tried: "ready old 90", died: "failed old 0"}[e.ending]
			if e.recurs {
				fixture = often(2)
				second = map[ending]string{fired: "ready old 60", tried: "ready old 90", died: "ready old 60"}[e.ending]
			}
			t.Run(name+" "+ended, pair{
				fixture: []string{e.fixture, fixture, lease(9, 30, 1, 2)},
				sessions: func(s *stage, m []mutation) []interleave.Session {
					return []interleave.Session{s.acts("a", m[0], of.act), s.outcome("o", m[1], 2, e.recurs, e.ending, 2, 1)}
				},
				more: func(_ *stage, db *sql.DB) error {
					var err error
					if got := state(db, 2); got != second {
						err = fmt.Errorf("other alarm is %q, want %q", got, second)
					}
					return errors.Join(err, is(db, of.state))
				},
				mutants: map[string][]mutation{
					"outcomes without the lock": {nil, interleave.All(unlocked, lax)},
				},
			}.run)
		}
	}
}

func TestAPurgeMeetsARetry(t *testing.T) {
	pair{
		fixture: []string{once(1), isDead(1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.purge("p", m[0]), s.acts("r", m[1], retries(1))}
		},
		more: ends("r", map[any][]string{"done": {"ready old 0"}, "missing": {"gone"}}),
		mutants: map[string][]mutation{
			"a purge without the lock": {interleave.All(unpurged, ruthless), nil},
		},
	}.run(t)
}

func TestAPurgeMeetsASchedule(t *testing.T) {
	pair{
		fixture: []string{once(1), isDead(1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.purge("p", m[0]), s.acts("s", m[1], schedules(1, inAnHour))}
		},
		more: oneOf("ready new 3600"),
		mutants: map[string][]mutation{
			"a purge without the lock": {interleave.All(unpurged, ruthless), nil},
		},
	}.run(t)
}

// The dead letter of a tick is retried while the tick fails for good once more.
func TestATickThatDiesMeetsARetryOfItsDeadLetter(t *testing.T) {
	letter := Key{ID: "x1@2026-01-01T00:00:00Z"}
	again := func(a *Alarms, tx *perdure.Tx) (any, error) { return "done", a.RetryIn(tx, letter) }
	pair{
		fixture: []string{often(1), lease(9, 30, 1), once(2), isDead(2), "update perdure.alarm_items set alarm_id = '" + letter.ID + "' where id = '" + id(2) + "'"},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.acts("r", m[0], again), s.outcome("o", m[1], 1, true, died, 1)}
		},
		more: func(s *stage, db *sql.DB) error {
			if n := interleave.Number(db, "select count(*) from perdure.ready where id = $1", id(2)); n != 1 || s.Told("r") != "done" {
				return fmt.Errorf("dead letter is ready %d times after its retry was %v", n, s.Told("r"))
			}
			return is(db, "ready old 60")
		},
		mutants: map[string][]mutation{
			"an outcome that makes it dead again": {nil, interleave.Instead("set attempt = excluded.attempt", "set dead = 'failed', attempt = excluded.attempt", "on conflict")},
		},
	}.run(t)
}
