package store

import (
	"testing"
	"time"
)

// violations returns what the rules of hooks and instances find: "rule id: detail".
func (s *hookScene) violations() []string {
	s.Helper()
	var all []string
	for _, r := range Rules {
		if r.Kind != "hook" && r.Kind != "instance" || !s.st.Has(r) {
			continue
		}
		s.read(s.st.Break(r, noon, func(v Violation) { all = append(all, v.Rule+" "+v.ID+": "+v.Detail) }))
	}
	return all
}

func TestTheRulesOfHooksFindWhatIsBroken(t *testing.T) {
	t.Parallel()
	const away = "00000000-0000-7000-9000-0000000000ff"
	for what, c := range map[string]struct {
		text string
		args []any
		want []string
	}{
		"nothing":              {"delete from perdure.attempts", nil, nil},
		"nowhere":              {"delete from perdure.ready where id = ?", []any{item(2)}, []string{"HookDoctorPlace " + item(2) + ": nowhere"}},
		"two places":           {"insert into perdure.ready (queue, priority, due_at, id) values (?, 0, ?, ?)", []any{feed, noon, item(6)}, []string{"HookDoctorPlace done: ended, ready"}},
		"an interrupt":         {"insert into perdure.interrupts (id, token) values (?, '00000000-0000-4000-8000-000000000002')", []any{item(4)}, []string{"HookDoctorPlace run: nowhere"}},
		"elsewhere":            {"update perdure.hook_items set priority = 1 where id = ?", []any{item(1)}, []string{"HookDoctorReady wait: is ready elsewhere than its queue, batch limit, priority and due time say"}},
		"ready of no hook":     {"insert into perdure.ready (queue, priority, due_at, id) values (?, 0, ?, ?)", []any{mail, noon, away}, []string{"HookDoctorEnded " + away + ": ready of no hook"}},
		"end of no hook":       {"insert into perdure.hook_ends (id, status, created_at, finished_at) values (?, 'failed', ?, ?)", []any{away, noon, noon}, []string{"HookDoctorEnded " + away + ": end of no hook"}},
		"another time":         {"update perdure.hook_ends set created_at = ? where id = ?", []any{noon.Add(time.Second), item(7)}, []string{"HookDoctorEnded fail-z: end with another time of creation"}},
		"too many attempts":    {"update perdure.hook_items set attempt = 5 where id = ?", []any{item(6)}, []string{"HookDoctorAttempts done: feed"}},
		"an old claim":         {"update perdure.leases set expires_at = ? where token = '00000000-0000-4000-8000-000000000003'", []any{noon.Add(-time.Second)}, []string{"HookDoctorStuck " + item(5) + ": mail"}},
		"an old settled claim": {"update perdure.leases set expires_at = ? where token = '00000000-0000-4000-8000-000000000004'", []any{noon.Add(-time.Second)}, nil},
		"lost attempts":        {"insert into perdure.attempts (kind, id, seq, attempt, outcome, error, ended_at) values ('hook', ?, 1, 1, 'failed', 'odd', ?)", []any{"ghost", noon}, []string{"HookDoctorKept ghost: odd"}},
		"kept attempts":        {"insert into perdure.attempts (kind, id, seq, attempt, outcome, error, ended_at) values ('hook', ?, 1, 1, 'failed', 'odd', ?)", []any{item(1), noon}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			hookScenes(t, dialects, func(s *hookScene) {
				s.exec(c.text, c.args...)
				s.same("violations", s.violations(), c.want)
			})
		})
	}
	t.Run("due for long", func(t *testing.T) {
		t.Parallel()
		hookScenes(t, dialects, func(s *hookScene) {
			var found []string
			for _, r := range Rules {
				if r.Name == "HookDoctorUnhandled" {
					s.read(s.st.Break(r, noon.Add(time.Second), func(v Violation) { found = append(found, v.ID) }))
				}
			}
			if len(found) != 3 {
				s.Errorf("found %v", found)
			}
		})
	})
}
