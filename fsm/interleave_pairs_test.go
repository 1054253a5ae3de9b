package fsm

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/interleave"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
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
		{
			name:    "two picks",
			fixture: []string{instance(1), instance(2), isReady(1), isReady(2)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.pick("a", m[0]), s.pick("b", m[1])}
			},
			alike: true, // they skip what is locked
			more: func(s *stage) func(*sql.DB) error {
				return func(*sql.DB) error {
					both := strings.Fields(fmt.Sprint(s.told("a"), " ", s.told("b")))
					if len(both) != 2 || both[0] == both[1] {
						return fmt.Errorf("claimed were %v", s.results)
					}
					return nil
				}
			},
			mutants: map[string][]mutation{"picks that do not take": {pickWithoutTaking, pickWithoutTaking, nil}},
		},
		{
			name:    "a fan-out and the reaper",
			quiet:   []string{interrupts, endOfLease},
			fixture: []string{instance(1), lease(9, -1, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.outcome("f", m[0], store.Instance{ID: id(1)}, 9, 1, isSpawn(1, 2)), s.reap("r", m[1])}
			},
			more: func(s *stage) func(*sql.DB) error {
				return func(db *sql.DB) error {
					children := number(db, "select count(*) from perdure.instances where parent_id is not null")
					if stale := s.told("f") == true; stale && children != 0 || !stale && children != 2 {
						return fmt.Errorf("%d children, told %v", children, s.results)
					}
					return nil
				}
			},
			mutants: map[string][]mutation{
				"a fan-out without the lock": {unlocked("for key share"), nil, nil},
				"no token":                   {alwaysAlive, nil, nil},
			},
		},
		{
			name:  "two children",
			quiet: []string{interrupts, noSignals, endOfLease, "for key share"},
			fixture: []string{
				instance(1, "fanout=1"), instance(2, "parent_id='"+id(1)+"'", "parent_fanout=1", "ordinal=0"), instance(3, "parent_id='"+id(1)+"'", "parent_fanout=1", "ordinal=1"),
				lease(8, 30, 2), lease(9, 30, 3), `insert into perdure.barriers (parent_id, fanout, pending) values ('` + id(1) + `', 1, 2)`,
			},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.outcome("a", m[0], childOf(2, 1), 8, 1, isDone()), s.outcome("b", m[1], childOf(3, 1), 9, 1, isDone())}
			},
			more:    want(1, func(*stage) []string { return []string{"ready 1 waiting 0 leases 0 finished 0"} }),
			mutants: map[string][]mutation{"a count that is read and written back": {countByReading, countByReading, nil}},
		},
		{
			name:  "a child and the timeout of the join",
			quiet: []string{interrupts, noSignals, endOfLease, "for key share"},
			fixture: []string{
				instance(1, "fanout=1"), instance(2, "parent_id='"+id(1)+"'", "parent_fanout=1", "ordinal=0"),
				lease(8, 30, 2), `insert into perdure.barriers (parent_id, fanout, pending, deadline_at) values ('` + id(1) + `', 1, 1, '2026-01-01Z')`,
			},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.outcome("c", m[0], childOf(2, 1), 8, 1, isDone()), s.joinTimeout("t", m[1])}
			},
			more: want(1, func(*stage) []string { return []string{"ready 1 waiting 0 leases 0 finished 0"} }),
			mutants: map[string][]mutation{"a release that does not look whether it is the one": {
				instead("from gone\n  where i.id = gone.parent_id", "where i.id = any($1::text[]::uuid[])", "b.pending <= b.until"), nil, nil,
			}},
		},
		{
			name:    "a pick and a start with the key of what it picks",
			fixture: []string{instance(1, "unique_name='m'", "unique_key='k'"), isReady(1), `insert into perdure.uniques (name, key, id) values ('m', 'k', '` + id(1) + `')`},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.pick("p", m[0]), s.begin("s", m[1], unique(2))}
			},
			alike: true, // they do not touch the same rows
			more: func(s *stage) func(*sql.DB) error {
				return func(db *sql.DB) error {
					if n := number(db, "select count(*) from perdure.instances"); n != 1 || s.told("p") != id(1) {
						return fmt.Errorf("%d instances, picked %v", n, s.told("p"))
					}
					return nil
				}
			},
			mutants: map[string][]mutation{"a start that does not look who owns the key": {nil, anyOwner, nil}},
		},
		{
			name:    "the end of the owner of a key and a start with it",
			quiet:   []string{interrupts, noSignals, endOfLease, "for key share"},
			fixture: []string{instance(1, "unique_name='m'", "unique_key='k'"), lease(9, 30, 1), `insert into perdure.uniques (name, key, id) values ('m', 'k', '` + id(1) + `')`},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				name, key := "m", "k"
				ends := s.outcome("e", m[0], store.Instance{ID: id(1), UniqueName: &name, UniqueKey: &key}, 9, 1, isDone())
				return []interleave.Session{ends, s.begin("s", m[1], unique(2))}
			},
			mutants: map[string][]mutation{"a start that does not look who owns the key": {nil, anyOwner, nil}},
		},
		{
			name: "two starts with one key",
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.begin("a", m[0], unique(1)), s.begin("b", m[1], unique(2))}
			},
			more: func(*stage) func(*sql.DB) error {
				return func(db *sql.DB) error {
					if n := number(db, "select count(*) from perdure.instances"); n != 1 {
						return fmt.Errorf("%d instances of one key", n)
					}
					return nil
				}
			},
			mutants: map[string][]mutation{"starts that do not look who owns the key": {anyOwner, anyOwner, nil}},
		},
		{
			name:    "the end of a head and a start in its partition",
			quiet:   []string{interrupts, noSignals, endOfLease, "for key share"},
			fixture: []string{instance(1, "partition_key='p'"), lease(9, 30, 1), `insert into perdure.partition_heads (key, head) values ('p', '` + id(1) + `')`},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				p := "p"
				return []interleave.Session{
					s.outcome("e", m[0], store.Instance{ID: id(1), Partition: &p}, 9, 1, isDone()), s.begin("s", m[1], store.NewInstance{ID: id(2), Partition: &p}),
				}
			},
			more: want(2, func(*stage) []string { return []string{"ready 1 waiting 0 leases 0 finished 0"} }),
			mutants: map[string][]mutation{
				"an end without the lock": {unlocked("for update", "partition_heads"), nil, nil},
			},
		},
		{
			name:    "a cancel and a next step",
			quiet:   []string{"delete from perdure.barriers", "delete from perdure.unrouted", "delete from perdure.partition_waiting", "delete from perdure.waiting", noSignals, statusOf},
			fixture: []string{instance(1), lease(9, 30, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.cancel("c", m[0], 1), s.outcome("n", m[1], store.Instance{ID: id(1)}, 9, 2, isNext())}
			},
			more: want(1, func(*stage) []string { return []string{"ready 0 waiting 0 leases 1 finished 1"} }),
			mutants: map[string][]mutation{
				"a cancel without the lock":    {careless, nil, nil},
				"an outcome without the lock":  {nil, unlocked("for key share"), nil},
				"an outcome that is not asked": {nil, instead("where token =", "where false and token =", "select id::text, token::text"), nil},
			},
		},
		{
			name:    "a cancel and the end",
			quiet:   []string{"delete from perdure.barriers", "delete from perdure.unrouted", "delete from perdure.partition_waiting", "delete from perdure.waiting", noSignals, statusOf, endOfLease},
			fixture: []string{instance(1), lease(9, 30, 1)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.cancel("c", m[0], 1), s.outcome("e", m[1], store.Instance{ID: id(1)}, 9, 1, isDone())}
			},
			more: func(s *stage) func(*sql.DB) error {
				return func(db *sql.DB) error {
					done := number(db, "select count(*) from perdure.finished where status = 'done'")
					if applied := s.told("e") == false; applied != (done == 1) || applied == (s.told("c") == "cancelled") {
						return fmt.Errorf("done %d, told %v", done, s.results)
					}
					return nil
				}
			},
			mutants: map[string][]mutation{"a cancel without the lock": {careless, nil, nil}},
		},
		{
			name: "a cancel, a step that ends and the pick of the next",
			quiet: []string{
				"delete from perdure.barriers", "delete from perdure.unrouted", "delete from perdure.partition_waiting", "delete from perdure.waiting", noSignals, statusOf,
				interrupts, "update perdure.instances", "select i.id::text, i.fsm", "select seq, target_id", "insert into perdure.finished",
			},
			fixture: []string{instance(1), instance(2), lease(9, 30, 1, 2)},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.cancel("c", m[0], 1), s.outcomeAndPick("n", m[1], store.Instance{ID: id(1)}, 9)}
			},
			more: func(s *stage) func(*sql.DB) error {
				return func(db *sql.DB) error {
					held := number(db, `select count(*) from perdure.leases l where '`+id(1)+`' = any(l.ids)
						and not exists (select 1 from perdure.interrupts x where x.id = '`+id(1)+`' and x.token = l.token) and l.token <> '`+id(9)+`'`)
					if finished := number(db, "select count(*) from perdure.finished"); finished != 1 || held != 0 {
						return fmt.Errorf("finished %d, and %d leases still have it; told %v", finished, held, s.results)
					}
					return nil
				}
			},
			mutants: map[string][]mutation{"a cancel that does not look again": {lookOnce(), nil, nil}},
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

// timeout wakes those whose wait is over.
func (s *stage) timeout(name string, mutate mutation) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		for { // what was locked is looked for again later
			var ids []string
			err := m.transact(ctx, func(tx sqldb.Tx) error {
				err := tx.Run(ctx, m.rt.Store.ExpiredWaits(10, m.rt.Now(), func(id string) { ids = append(ids, id) }))
				if err != nil || len(ids) == 0 {
					return err
				}
				return tx.Run(ctx, m.rt.Store.TimeoutWaits(ids, m.rt.Now(), func(string) {})...)
			})
			if err != nil || len(ids) == 0 {
				return err
			}
		}
	})
}

// joinTimeout wakes parents whose wait is over.
func (s *stage) joinTimeout(name string, mutate mutation) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		return m.transact(ctx, func(tx sqldb.Tx) error {
			return tx.Run(ctx, m.rt.Store.TimeoutBarriers(10, m.rt.Now(), func(string) {})...)
		})
	})
}

// heartbeat extends a lease and tells whether it was gone.
func (s *stage) heartbeat(name string, mutate mutation, _, token int) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		var stale bool
		err := m.transact(ctx, func(tx sqldb.Tx) error {
			return tx.Run(ctx, m.rt.Store.ExtendLease(id(token), time.Minute, m.rt.Now(), &stale))
		})
		s.tell(name, stale)
		return err
	})
}

// outcomeAndPick commits a next step and claims it again.
func (s *stage) outcomeAndPick(name string, mutate mutation, i store.Instance, token int) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		i.FSM, i.Version, i.Step, i.State = "m", 1, "only", "0"
		m.flusher.lease(id(token), 2)
		settled := &settlement{decision: isNext(), execution: &execution{machines: m, instance: &i, queue: DefaultQueue, token: id(token)}}
		if err := m.flusher.transact([]*settlement{settled}, &news{}, 0); err != nil {
			return err
		}
		s.tell(name, settled.stale)
		_, err := m.served.all()[0].take(ctx, 10, time.Minute)
		return err
	})
}
