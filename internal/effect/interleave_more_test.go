package effect

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/interleave"
)

func TestACancelMeetsARowOfTheApplication(t *testing.T) {
	pair{
		quiet: quietly, fixture: []string{hook(1), lease(9, 30, 1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.act("c", m[0], cancels(1)), s.with("o", m[1], 9, 1, 1, false)}
		},
		more: both(exclusive(store.StatusDone), rows),
		mutants: map[string][]mutation{
			"an outcome without the lock":  {nil, unlocked},
			"a cancel without the lock":    {unfound, nil},
			"an outcome that is not asked": {nil, deaf},
		},
	}.run(t)
}

func TestACancelMeetsAClaim(t *testing.T) {
	pair{
		quiet: quietly, fixture: []string{hook(1), isReady(1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.act("c", m[0], cancels(1)), s.claimAndEnd("o", m[1], false, store.StatusDone)}
		},
		more: func(s *stage, db *sql.DB) error {
			if got := statusOf(db, 1); (got == "cancelled") != (s.Told("c") == "done") || (got == "done") != (s.Told("o") == "committed") {
				return fmt.Errorf("hook is %s", got)
			}
			return nil
		},
		mutants: map[string][]mutation{
			"a cancel that leaves the hook in its lane": {idle, nil},
			"a claim that leases what it has read":      {nil, greedy},
			"a cancel that takes nothing away":          {gentle, nil},
		},
	}.run(t)
}

func TestACancelMeetsTheReaper(t *testing.T) {
	pair{
		quiet: quietly, fixture: []string{hook(1), hook(2), lease(9, -1, 1, 2)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.act("c", m[0], cancels(1)), s.reaper("r", m[1])}
		},
		more: func(_ *stage, db *sql.DB) error {
			if got := statusOf(db, 1); got != "cancelled" {
				return fmt.Errorf("hook is %s, want cancelled", got)
			}
			return nil
		},
		mutants: map[string][]mutation{
			"a reaper without the lock": {nil, untaken},
			"a cancel without the lock": {unfound, nil},
		},
	}.run(t)
}

func TestACancelMeetsTheReaperOfItsOwnProcess(t *testing.T) {
	pair{
		quiet: quietly, fixture: []string{hook(1), hook(2), lease(9, -1, 1, 2)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.act("c", m[0], cancels(1)), s.own("r", m[1])}
		},
		more: func(_ *stage, db *sql.DB) error {
			if got := statusOf(db, 1); got != "cancelled" {
				return fmt.Errorf("hook is %s, want cancelled", got)
			}
			return nil
		},
		mutants: map[string][]mutation{
			"a reaper without the lock": {nil, untaken},
			"a cancel without the lock": {unfound, nil},
		},
	}.run(t)
}

func TestARowOfTheApplicationMeetsTheReaperOfItsOwnProcess(t *testing.T) {
	pair{
		quiet: append([]string{interrupts}, quietly...), fixture: []string{hook(1), hook(2), lease(9, -1, 1, 2)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.own("r", m[0]), s.with("o", m[1], 9, 2, 1, false)}
		},
		more: rows,
		mutants: map[string][]mutation{
			"a reaper without the lock":      {untaken, nil},
			"an outcome that needs no lease": {nil, unseen},
		},
	}.run(t)
}

func TestTheReaperMeetsAnOutcome(t *testing.T) {
	t.Parallel()
	for name, status := range outcomes {
		without := unshared
		if status != store.StatusDone { // the lock on the hook is enough
			without = interleave.All(unshared, unlocked)
		}
		t.Run(name, pair{
			quiet: quietly, fixture: []string{hook(1), hook(2), lease(9, -1, 1, 2)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.reaper("r", m[0]), s.outcome("o", m[1], 9, 2, status, 1)}
			},
			mutants: map[string][]mutation{
				"an outcome without its locks":   {nil, without},
				"an outcome that needs no lease": {nil, immortal},
			},
		}.run)
	}
}

func TestTheReaperMeetsARowOfTheApplication(t *testing.T) {
	pair{
		quiet: quietly, fixture: []string{hook(1), hook(2), lease(9, -1, 1, 2)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.reaper("r", m[0]), s.with("o", m[1], 9, 2, 1, false)}
		},
		more: rows,
		mutants: map[string][]mutation{
			"an outcome without the lock":    {nil, unlocked},
			"an outcome that needs no lease": {nil, unseen},
			"a reaper without the lock":      {untaken, nil},
		},
		variants: map[string]func(s *stage) []interleave.Session{"an outcome that does not verify": func(s *stage) []interleave.Session {
			return []interleave.Session{s.reaper("r", nil), s.with("o", nil, 9, 2, 1, true)}
		}},
	}.run(t)
}

func TestTheNextProcessMeetsARowOfTheApplication(t *testing.T) {
	pair{
		quiet: append([]string{interrupts}, quietly...), fixture: []string{hook(1), lease(9, -1, 1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.claimAndEnd("n", m[0], true, ""), s.with("o", m[1], 9, 1, 1, false)}
		},
		more: rows,
		mutants: map[string][]mutation{
			"an outcome that needs no lease": {nil, unseen},
		},
		variants: map[string]func(s *stage) []interleave.Session{"an outcome that does not verify": func(s *stage) []interleave.Session {
			return []interleave.Session{s.claimAndEnd("n", nil, true, ""), s.with("o", nil, 9, 1, 1, true)}
		}},
	}.run(t)
}

func TestARetryMeetsAnOutcome(t *testing.T) {
	t.Parallel()
	for name, status := range outcomes {
		t.Run(name, pair{
			quiet: quietly, fixture: []string{hook(1), lease(9, 30, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.act("r", m[0], retries(1)), s.outcome("o", m[1], 9, 1, status, 1)}
			},
			alike: status == store.StatusDone,
			mutants: map[string][]mutation{
				"a retry that does not look whether the hook runs": {blind, nil},
			},
		}.run)
	}
}

func TestARetryMeetsAClaim(t *testing.T) {
	pair{
		quiet: quietly, fixture: []string{hook(1), isReady(1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.act("r", m[0], retries(1)), s.claim("c", m[1])}
		},
		mutants: map[string][]mutation{
			"a retry that does not look whether the hook runs": {blind, nil},
		},
	}.run(t)
}

func TestARetryOfOneThatFailedMeetsAClaim(t *testing.T) {
	pair{
		quiet: quietly, fixture: []string{hook(1), isFailed(1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.act("r", m[0], retries(1)), s.claim("c", m[1])}
		},
		alike: true,
	}.run(t)
}

func TestADeleteMeetsAClaim(t *testing.T) {
	pair{
		quiet: quietly, fixture: []string{hook(1), isReady(1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.act("d", m[0], deletes(1)), s.claimAndEnd("o", m[1], false, store.StatusDone)}
		},
		mutants: map[string][]mutation{
			"a delete that does not look whether the hook runs": {blind, nil},
		},
	}.run(t)
}

func TestADeleteMeetsAnOutcome(t *testing.T) {
	t.Parallel()
	for name, status := range outcomes {
		t.Run(name, pair{
			quiet: quietly, fixture: []string{hook(1), lease(9, 30, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.act("d", m[0], deletes(1)), s.outcome("o", m[1], 9, 1, status, 1)}
			},
			alike: status == store.StatusDone,
			mutants: map[string][]mutation{
				"a delete that does not look whether the hook runs": {blind, nil},
			},
		}.run)
	}
}

func TestTwoCancelsMeet(t *testing.T) {
	for name, place := range map[string]string{"ready": isReady(1), "running": lease(9, 30, 1)} {
		t.Run(name, pair{
			quiet: quietly, fixture: []string{hook(1), place},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.act("a", m[0], cancels(1)), s.act("b", m[1], cancels(1))}
			},
			more: func(s *stage, _ *sql.DB) error {
				if (s.Told("a") == "done") == (s.Told("b") == "done") {
					return errors.New("not one of them has cancelled it")
				}
				return nil
			},
			mutants: map[string][]mutation{
				"cancels without the lock that replace the end": {interleave.All(unfound, ruthless), interleave.All(unfound, ruthless)},
			},
		}.run)
	}
}

func TestTwoRetriesMeet(t *testing.T) {
	for name, place := range map[string]string{"ready": isReady(1), "failed": isFailed(1)} {
		t.Run(name, pair{
			quiet: quietly, fixture: []string{hook(1), place},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.act("a", m[0], retries(1)), s.act("b", m[1], retries(1))}
			},
			mutants: map[string][]mutation{
				"retries that do not look": {blind, blind},
			},
		}.run)
	}
}

func TestTheStopOfTwoMeetsAGroup(t *testing.T) {
	t.Parallel()
	for name, status := range outcomes {
		t.Run(name, pair{
			quiet: append([]string{interrupts}, quietly...), fixture: []string{hook(1), hook(2), lease(9, 30, 1, 2)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.act("s", m[0], stops(1, 2)), s.outcome("o", m[1], 9, 2, status, 2, 1)}
			},
			mutants: map[string][]mutation{
				"outcomes that are not asked":    {nil, deaf},
				"a stop that takes nothing away": {gentle, nil},
			},
		}.run)
	}
}

// The ids that users chose have another order than those of the rows. The transactions may
// deadlock then, and are run again.
func TestTheStopOfTwoWithChosenIDsMeetsAGroup(t *testing.T) {
	t.Parallel()
	for name, status := range outcomes {
		t.Run(name, pair{
			quiet:   append([]string{interrupts}, quietly...),
			fixture: []string{hook(1), hook(2), lease(9, 30, 1, 2), "update perdure.hook_items set key = case id when '" + id(1) + "' then '" + id(8) + "' else '" + id(7) + "' end"},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.act("s", m[0], stops(7, 8)), s.outcome("o", m[1], 9, 2, status, 1, 2)}
			},
			mutants: map[string][]mutation{"outcomes that are not asked": {nil, deaf}},
		}.run)
	}
}

func TestACancelMeetsAReturn(t *testing.T) {
	pair{
		quiet: quietly, fixture: []string{hook(1), lease(9, 30, 1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.act("c", m[0], cancels(1)), s.giveBack("g", m[1], 9, 1, 1, "")}
		},
		mutants: map[string][]mutation{
			"a return without the lock": {nil, unlocked},
			"a cancel without the lock": {unfound, nil},
		},
	}.run(t)
}

func TestAReturnMeetsARowOfTheApplication(t *testing.T) {
	pair{
		quiet: quietly, fixture: []string{hook(1), hook(2), lease(9, 30, 1, 2)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.giveBack("g", m[0], 9, 2, 1, "o"), s.with("o", m[1], 9, 2, 1, false)}
		},
		more: rows,
		mutants: map[string][]mutation{
			"a return without the lock": {unlocked, nil},
		},
	}.run(t)
}

func TestACancelAndARetryMeetAnOutcome(t *testing.T) {
	t.Parallel()
	for name, status := range outcomes {
		t.Run(name, pair{
			quiet: append([]string{interrupts}, quietly...), fixture: []string{hook(1), lease(9, 30, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.then("c", m[0], cancels(1), retries(1)), s.outcome("o", m[1], 9, 1, status, 1)}
			},
			mutants: hastyMutants(status),
		}.run)
	}
}

func TestACancelAndADeleteMeetAnOutcome(t *testing.T) {
	t.Parallel()
	for name, status := range outcomes {
		t.Run(name, pair{
			quiet: append([]string{interrupts}, quietly...), fixture: []string{hook(1), lease(9, 30, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.then("c", m[0], cancels(1), deletes(1)), s.outcome("o", m[1], 9, 1, status, 1)}
			},
			mutants: hastyMutants(status),
		}.run)
	}
}

func TestAClaimAndAnOutcomeMeetACancelAndARetry(t *testing.T) {
	// What the retry writes is under locks that it has.
	written := []string{interrupts, "set attempt = 0", "insert into perdure.ready (queue, suspect"}
	pair{
		quiet: append(written, quietly...), fixture: []string{hook(1), isReady(1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			return []interleave.Session{s.then("c", m[0], cancels(1), retries(1)), s.claimAndEnd("o", m[1], false, store.StatusDone)}
		},
		mutants: map[string][]mutation{
			"a retry that does not wait": {hasty, nil},
		},
	}.run(t)
}

// hastyMutants are the mutants of a cancel, with an act after it, and an outcome.
func hastyMutants(status string) map[string][]mutation {
	mutants := map[string][]mutation{"an outcome that is not asked": {nil, deaf}}
	if status == store.StatusDone { // others lock the hook
		mutants["an act that does not wait"] = []mutation{hasty, nil}
	}
	return mutants
}
