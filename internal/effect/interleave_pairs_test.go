package effect

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/interleave"
)

// outcomes are the outcomes of an attempt, by what they are called.
var outcomes = map[string]string{"done": store.StatusDone, "failed": store.StatusFailed, "tried again": ""}

// exclusive checks that a hook has the end that the sessions were told: it was cancelled, or
// has its outcome.
func exclusive(status string) func(s *stage, db *sql.DB) error {
	want := status
	if want == "" {
		want = "live"
	}
	return func(s *stage, db *sql.DB) error {
		got := statusOf(db, 1)
		switch {
		case s.Told("c") == "done" && got != "cancelled":
			return fmt.Errorf("hook is %s, want cancelled", got)
		case s.Told("c") != "done" && (got != want || s.Told("o") != "committed"):
			return fmt.Errorf("hook is %s, want %s", got, want)
		case status != "" && (s.Told("c") == "done") == (s.Told("o") == "committed"):
			return fmt.Errorf("hook is %s, and both or none have ended it", got)
		}
		return nil
	}
}

// rows checks that the application has a row for each completed hook, and for no other.
func rows(s *stage, db *sql.DB) error {
	written := interleave.Number(db, "select count(*) from written")
	if ends := interleave.Number(db, "select count(*) from perdure.hook_ends where status = 'done'"); ends != written {
		return fmt.Errorf("%d rows of %d completed hooks", written, ends)
	}
	return nil
}

// cancelMutants are the mutants of a cancel and an outcome. A completed outcome does not lock
// the hook: its end does that.
func cancelMutants(status string) map[string][]mutation {
	mutants := map[string][]mutation{
		"an outcome that is not asked":     {nil, deaf},
		"a cancel that takes nothing away": {gentle, nil},
	}
	if status == store.StatusDone {
		mutants["an outcome that leaves the end that it finds"] = []mutation{nil, lenient}
		mutants["a cancel that replaces the end that it finds"] = []mutation{ruthless, nil}
		return mutants
	}
	mutants["an outcome without the lock"] = []mutation{nil, unlocked}
	mutants["a cancel without the lock"] = []mutation{unfound, nil}
	return mutants
}

func TestACancelMeetsAnOutcome(t *testing.T) {
	t.Parallel()
	for name, status := range outcomes {
		t.Run(name, pair{
			quiet: quietly, fixture: []string{hook(1), lease(9, 30, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.act("c", m[0], cancels(1)), s.outcome("o", m[1], 9, 1, status, 1)}
			},
			more:    exclusive(status),
			mutants: cancelMutants(status),
		}.run)
	}
}

// both checks two things.
func both(a, b func(s *stage, db *sql.DB) error) func(s *stage, db *sql.DB) error {
	return func(s *stage, db *sql.DB) error { return errors.Join(a(s, db), b(s, db)) }
}
