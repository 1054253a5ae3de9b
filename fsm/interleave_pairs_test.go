package fsm

import (
	"database/sql"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/interleave"
)

// alwaysAlive is the mutation that drops the check of the token.
var alwaysAlive = instead("from perdure.leases\nwhere token = any($1::uuid[])\norder by token\nfor key share", "from unnest($1::text[]) as l (token)", "for key share")

func unlocked(lock string, marks ...string) mutation { return without(lock, append(marks, lock)...) }

// careless is a cancel that locks no lease.
var careless = both(unlocked("for update of l"), unlocked("for update", "perdure.leases"))

// both applies two mutations.
func both(a, b mutation) mutation { return func(text string) string { return b(a(text)) } }

// want returns a check of where an instance is, by what was told.
func want(n int, expected func(s *stage) []string) func(s *stage) func(db *sql.DB) error {
	return func(s *stage) func(db *sql.DB) error {
		return func(db *sql.DB) error {
			got := places(db, n)
			for _, e := range expected(s) {
				if got == e {
					return nil
				}
			}
			return fmt.Errorf("%s; told %v", got, s.results)
		}
	}
}

// purging is the mutation of an end that empties the inbox.
var purging = instead("insert into perdure.finished", "with purged as (delete from perdure.signals where target_id = any($2::uuid[]))\ninsert into perdure.finished")

// keepsSignals returns a check that the instance is in its place and that its inbox
// holds the signal if and only if it was acknowledged.
func keepsSignals(place func(s *stage) string) func(s *stage) func(db *sql.DB) error {
	return func(s *stage) func(db *sql.DB) error {
		return func(db *sql.DB) error {
			acknowledged := 0
			if s.told("d") == "delivered" {
				acknowledged = 1
			}
			if got := number(db, "select count(*) from perdure.signals where not received"); got != acknowledged {
				return fmt.Errorf("inbox holds %d signals, %d acknowledged", got, acknowledged)
			}
			return want(1, func(s *stage) []string { return []string{place(s)} })(s)(db)
		}
	}
}

// deliverAndEnd is a signal that meets the last step of an instance that awaits it:
// it comes too late, or the step runs again.
func deliverAndEnd(name string, end *decision) pair {
	blind := instead("where not s.received", "where false", "perdure.signals s")
	return pair{
		name:    "deliver and " + name,
		quiet:   []string{interrupts, endOfLease, statusOf, beyond},
		fixture: []string{instance(1, `awaits='["go"]'`, `awaited='["go"]'`), lease(9, 30, 1)},
		sessions: func(s *stage, m []mutation) []interleave.Session {
			ending := store.Instance{ID: id(1), Awaits: []string{"go"}, Awaited: []string{"go"}}
			return []interleave.Session{s.deliver("d", m[0], 1), s.outcome("e", m[1], ending, 9, 1, end)}
		},
		more: keepsSignals(func(s *stage) string {
			if s.told("d") == "delivered" {
				return "ready 1 waiting 0 leases 0 finished 0"
			}
			return "ready 0 waiting 0 leases 0 finished 1"
		}),
		mutants: map[string][]mutation{
			"an end without the lock":   {nil, unlocked("for no key update"), nil},
			"an end that does not look": {nil, blind, nil},
			"an end that purges":        {nil, both(blind, purging), nil},
		},
	}
}

func pairs() []pair {
	return []pair{
		{
			name:    "deliver and park",
			quiet:   []string{interrupts, endOfLease, statusOf, beyond},
			fixture: []string{instance(1), lease(9, 30, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.deliver("d", m[0], 1), s.outcome("p", m[1], store.Instance{ID: id(1)}, 9, 1, isAwait("go"))}
			},
			more: want(1, func(*stage) []string { return []string{"ready 1 waiting 0 leases 0 finished 0"} }),
			mutants: map[string][]mutation{
				"sender without its lock": {unlocked("for no key update"), nil, nil},
				"park that does not look": {nil, instead("perdure.signals s", "perdure.signals s, (select 1 where false) nothing", "parked as"), nil},
			},
		},
		deliverAndEnd("done", isDone()),
		deliverAndEnd("stop", isStop()),
		{
			name:    "deliver and the end of one that never awaited",
			quiet:   []string{interrupts, endOfLease, statusOf, beyond},
			fixture: []string{instance(1), lease(9, 30, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.deliver("d", m[0], 1), s.outcome("e", m[1], store.Instance{ID: id(1)}, 9, 1, isDone())}
			},
			alike:   true, // a signal that it never awaits does not keep it from ending, and stays with it
			more:    keepsSignals(func(*stage) string { return "ready 0 waiting 0 leases 0 finished 1" }),
			mutants: map[string][]mutation{"an end that purges": {nil, purging, nil}},
		},
		{
			name:    "deliver and the timeout",
			quiet:   []string{statusOf, beyond},
			fixture: []string{instance(1, `awaits='["go"]'`), `insert into perdure.waiting (id, names, deadline_at) values ('` + id(1) + `', '{go}', '2026-01-01Z')`},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.deliver("d", m[0], 1), s.timeout("t", m[1])}
			},
			alike: true, // the timeout skips what is locked
			more:  want(1, func(*stage) []string { return []string{"ready 1 waiting 0 leases 0 finished 0"} }),
			mutants: map[string][]mutation{"a timeout that does not look whether it is the one": {
				nil, both(unlocked("for no key update of i skip locked"), instead("from woken\n  where i.id = woken.id", "where i.id = any($1::text[]::uuid[])", "timed_out = true")), nil,
			}},
		},
		{
			name:    "the outcomes of two claims of one instance",
			quiet:   []string{interrupts},
			fixture: []string{instance(1), lease(9, 30, 1)}, // lease 8 was reaped before
			sessions: func(s *stage, m []mutation) []interleave.Session {
				one := store.Instance{ID: id(1)}
				return []interleave.Session{s.outcome("old", m[0], one, 8, 1, isNext()), s.outcome("new", m[1], one, 9, 1, isDone())}
			},
			alike: true, // the old one finds its lease gone and writes nothing
			more: func(s *stage) func(*sql.DB) error {
				return func(db *sql.DB) error {
					if s.told("old") != true || s.told("new") != false {
						return fmt.Errorf("told %v", s.results)
					}
					return want(1, func(*stage) []string { return []string{"ready 0 waiting 0 leases 0 finished 1"} })(s)(db)
				}
			},
			mutants: map[string][]mutation{"no token": {alwaysAlive, nil, nil}},
		},
		{
			name:    "an outcome and the reaper",
			quiet:   []string{interrupts},
			fixture: []string{instance(1), lease(9, -1, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.outcome("e", m[0], store.Instance{ID: id(1)}, 9, 1, isDone()), s.reap("r", m[1])}
			},
			more: want(1, func(s *stage) []string {
				if s.told("e") == true {
					return []string{"ready 1 waiting 0 leases 0 finished 0"}
				}
				return []string{"ready 0 waiting 0 leases 0 finished 1"}
			}),
			mutants: map[string][]mutation{
				"an outcome without the lock": {unlocked("for key share"), nil, nil},
				"a reaper without the lock":   {nil, unlocked("for update skip locked"), nil},
				"no token":                    {alwaysAlive, nil, nil},
			},
		},
		{
			name:    "a next step and the reaper",
			quiet:   []string{interrupts},
			fixture: []string{instance(1), lease(9, -1, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.outcome("n", m[0], store.Instance{ID: id(1)}, 9, 1, isNext()), s.reap("r", m[1])}
			},
			more: func(s *stage) func(*sql.DB) error {
				return func(db *sql.DB) error {
					state := number(db, "select state::text::int from perdure.instances")
					if applied := s.told("n") == false; applied != (state == 1) {
						return fmt.Errorf("state %d, told %v", state, s.results)
					}
					return want(1, func(*stage) []string { return []string{"ready 1 waiting 0 leases 0 finished 0"} })(s)(db)
				}
			},
			mutants: map[string][]mutation{
				"an outcome without the lock": {unlocked("for key share"), nil, nil},
				"no token":                    {alwaysAlive, nil, nil},
			},
		},
		{
			name:    "an outcome whose commit is in doubt and its resolution",
			quiet:   []string{interrupts},
			fixture: []string{instance(1), lease(9, 30, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.outcome("e", m[0], store.Instance{ID: id(1)}, 9, 1, isDone()), s.resolve("r", m[1], 1, 9)}
			},
			more: want(1, func(s *stage) []string {
				if s.told("e") == true {
					return []string{"ready 1 waiting 0 leases 0 finished 0"}
				}
				return []string{"ready 0 waiting 0 leases 0 finished 1"}
			}),
			mutants: map[string][]mutation{
				"a resolution without the lock": {nil, unlocked("for update", "perdure.leases"), nil},
				"no token":                      {alwaysAlive, nil, nil},
			},
		},
		{
			name:    "the resolution of a claim and the reaper",
			quiet:   []string{interrupts},
			fixture: []string{instance(1), lease(9, -1, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.resolve("e", m[0], 1, 9), s.reap("r", m[1])}
			},
			more: want(1, func(*stage) []string { return []string{"ready 1 waiting 0 leases 0 finished 0"} }),
			mutants: map[string][]mutation{
				"a resolution without the lock": {unlocked("for update", "perdure.leases"), nil, nil},
				"a reaper without the lock":     {nil, unlocked("for update skip locked"), nil},
			},
		},
		{
			name:    "a heartbeat and the reaper",
			quiet:   []string{interrupts},
			fixture: []string{instance(1), lease(9, -1, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.heartbeat("h", m[0], 1, 9), s.reap("r", m[1])}
			},
			more: want(1, func(s *stage) []string {
				if s.told("h") == true {
					return []string{"ready 1 waiting 0 leases 0 finished 0"}
				}
				return []string{"ready 0 waiting 0 leases 1 finished 0"}
			}),
			mutants: map[string][]mutation{"a reaper without the lock": {nil, unlocked("for update skip locked"), nil}},
		},
		{
			name:    "two reapers",
			fixture: []string{instance(1), instance(2), lease(9, -1, 1, 2)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.reap("a", m[0]), s.reap("b", m[1])}
			},
			alike: true, // they skip what is locked
			more: func(*stage) func(*sql.DB) error {
				return func(db *sql.DB) error {
					if n := number(db, "select sum(crashes) from perdure.instances"); n != 2 {
						return fmt.Errorf("%d crashes, want one for each", n)
					}
					return nil
				}
			},
			mutants: map[string][]mutation{"no locks": {unlocked("for update skip locked"), unlocked("for update skip locked"), nil}},
		},
	}
}

// pickWithoutTaking is a pick that only looks.
func pickWithoutTaking(text string) string {
	text = strings.ReplaceAll(text, "for update skip locked", "")
	return strings.ReplaceAll(text, "delete from perdure.ready r\n  where r.ctid = any(array(select ctid from due))\n  returning r.id", "select id from due")
}

// countByReading is a barrier that is read, unlocked, and written back.
func countByReading(text string) string {
	if strings.Contains(text, "from perdure.barriers") {
		text = strings.ReplaceAll(text, "for update", "")
	}
	return strings.ReplaceAll(text, "set pending = b.pending - o.n", "set pending = (select x.pending from perdure.barriers x where x.parent_id = b.parent_id) - o.n")
}

// anyOwner is an insert that does not care who owns the unique key.
var anyOwner = instead("and u.id = new.id", "")

// lookOnce lets the second look for the newest lease find the oldest.
func lookOnce() mutation {
	looks := 0
	return func(text string) string {
		if strings.Contains(text, "order by seq desc") {
			if looks++; looks%2 == 0 {
				return strings.ReplaceAll(text, "order by seq desc", "order by seq")
			}
		}
		return text
	}
}

func unique(n int) store.NewInstance {
	name, key := "m", "k"
	return store.NewInstance{ID: id(n), UniqueName: &name, UniqueKey: &key}
}

func childOf(n, parent int) store.Instance {
	p, fanout := id(parent), 1
	return store.Instance{ID: id(n), Parent: &p, ParentFanout: &fanout}
}

func isSpawn(parent, n int) *decision {
	d := &decision{outcome: Outcome{kind: kindSpawn, step: "only"}, state: []byte("1")}
	for i := range n {
		p, fanout, ordinal := id(parent), 1, i
		d.children = append(d.children, store.NewInstance{
			ID: id(100 + i), FSM: "m", Version: 1, Step: "only", State: "0", Queue: DefaultQueue, Parent: &p, Fanout: &fanout, Ordinal: &ordinal,
		})
	}
	return d
}
