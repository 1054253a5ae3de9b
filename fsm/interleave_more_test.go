package fsm

import (
	"database/sql"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/interleave"
)

// morePairs are the pairs with fan-outs, timeouts, unique keys and partitions.
func morePairs() []pair {
	return []pair{
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
