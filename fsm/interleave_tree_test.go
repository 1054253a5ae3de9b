package fsm

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/interleave"
)

// piece ends children of trees, in one transaction.
func (s *stage) piece(name string, mutate mutation) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		p, err := m.endPiece(ctx, "")
		if err == nil {
			s.tell(name, p.handled)
		}
		return err
	})
}

// rest ends what the pieces of a schedule have left of the tree of instance 1.
func (s *stage) rest() error {
	m, err := New(s.eng, &Options{OnError: func(error) {}, OnCrash: func(perdure.Crash) {}})
	if err != nil {
		return err
	}
	return m.endTree(context.Background(), id(1))
}

// endedRoot is a fixture: instance 1 was cancelled, with a fan-out of children.
func endedRoot() []string {
	return []string{
		instance(1, "fanout=1"),
		`insert into perdure.finished (id, status, finished_at) values ('` + id(1) + `', 'cancelled', '2026-01-01Z')`,
		`insert into perdure.tree_ends (parent_id, first_fanout, last_fanout, kind, root_id, reason, due_at, created_at)
			values ('` + id(1) + `', 1, 1, 'end', '` + id(1) + `', 'no', '2026-01-01Z', '2026-01-01Z')`,
	}
}

// isChild is a fixture: a child of instance 1.
func isChild(n int, columns ...string) string {
	return instance(n, append(columns, "parent_id='"+id(1)+"'", "parent_fanout=1", fmt.Sprint("ordinal=", n))...)
}

// quietPiece are the statements of a piece that meet nobody in these schedules.
var quietPiece = []string{
	"from perdure.tree_ends", "update perdure.tree_ends", "i.cancel_reason", "key = any", "select parent_id::text",
	"delete from perdure.waiting", "delete from perdure.unrouted", "delete from perdure.partition_waiting", "insert into perdure.attempts", "delete from perdure.attempts",
	"insert into perdure.interrupts", "select id::text\nfrom perdure.finished", noSignals, interrupts, statusOf, "update perdure.barriers", "select seq, target_id",
}

// allEnded checks that the tree is gone once the rest of it has ended, and that the
// child is done exactly if its outcome was applied.
func allEnded(outcome string, instances int) func(s *stage) func(*sql.DB) error {
	return func(s *stage) func(*sql.DB) error {
		return func(db *sql.DB) error {
			if err := s.rest(); err != nil {
				return err
			}
			done := number(db, "select count(*) from perdure.finished where status = 'done'")
			ended := number(db, "select count(*) from perdure.finished")
			live := number(db, "select (select count(*) from perdure.ready) + (select count(*) from perdure.barriers) + (select count(*) from perdure.tree_ends)")
			if applied := s.told(outcome) == false; outcome != "" && applied != (done == 1) || ended != instances || live != 0 {
				return fmt.Errorf("done %d, ended %d, places %d, told %v", done, ended, live, s.results)
			}
			return nil
		}
	}
}

// treePairs are the pairs in which a piece of a tree takes part.
func treePairs() []pair {
	return []pair{
		{
			name:    "a piece of a tree and the end of a child",
			quiet:   append([]string{endOfLease, "delete from perdure.ready", "delete from perdure.barriers"}, quietPiece...),
			fixture: append(endedRoot(), isChild(2), lease(8, 30, 2)),
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.piece("p", m[0]), s.outcome("e", m[1], childOf(2, 1), 8, 1, isDone())}
			},
			more: allEnded("e", 2),
			mutants: map[string][]mutation{
				"a piece without the lock": {unlocked("for update skip locked", "from perdure.leases"), nil, nil},
			},
		},
		{
			name:  "a cancel with a cancel step and the end",
			quiet: append([]string{"delete from perdure.barriers", "delete from perdure.ready", endOfLease, "update perdure.instances", "insert into perdure.transitions", "from perdure.definitions"}, quietPiece...),
			fixture: []string{
				`insert into perdure.definitions (fsm, version, first_step, queue, steps, cancel_step, updated_at) values ('m', 1, 'only', 'default', '["only"]', 'undo', '2026-01-01Z') on conflict do nothing`,
				instance(1), lease(9, 30, 1),
			},
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.cancel("c", m[0], 1), s.outcome("e", m[1], store.Instance{ID: id(1)}, 9, 1, isDone())}
			},
			more: want(1, func(s *stage) []string {
				if s.told("e") == false {
					return []string{"ready 0 waiting 0 leases 0 finished 1"}
				}
				return []string{"ready 1 waiting 0 leases 0 finished 0"}
			}),
			mutants: map[string][]mutation{
				"an outcome that does not hand over": {nil, instead("l.worker = 'cancel:'", "false and l.worker = 'cancel:'"), nil},
				"a cancel without the lock":          {careless, nil, nil},
			},
		},
		{
			name:    "a piece of a tree and the pick of a child",
			quiet:   append([]string{endOfLease, "delete from perdure.barriers", "insert into perdure.finished"}, quietPiece...),
			fixture: append(endedRoot(), isChild(2), isReady(2), instance(3), lease(8, 30, 2, 3)), // lease 8 had it before
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.piece("p", m[0]), s.pick("c", m[1])}
			},
			alike: true, // a piece waits for nothing, and what it has locked is not picked
			more: func(s *stage) func(*sql.DB) error {
				return func(db *sql.DB) error {
					free := number(db, `select count(*) from perdure.leases l where '`+id(2)+`' = any(l.ids) and l.token <> '`+id(8)+`'
						and not exists (select 1 from perdure.interrupts x where x.id = '`+id(2)+`' and x.token = l.token)`)
					if ended := number(db, "select count(*) from perdure.finished where id = '"+id(2)+"'"); ended == 1 && free != 0 {
						return fmt.Errorf("it has ended and is claimed; told %v", s.results)
					}
					return allEnded("", 2)(s)(db)
				}
			},
			mutants: map[string][]mutation{
				"a piece that does not look whether it is ready": {instead("from perdure.ready r where r.queue", "from perdure.ready r where false and r.queue", "held.token"), nil, nil},
			},
		},
		{
			name:    "a piece of a tree and the last grandchild",
			quiet:   append([]string{endOfLease, "delete from perdure.ready", "insert into perdure.tree_ends"}, quietPiece...),
			fixture: append(endedRoot(), isChild(2, "fanout=1"), instance(3, "parent_id='"+id(2)+"'", "parent_fanout=1", "ordinal=0"), instance(4), lease(8, 30, 2, 4), lease(9, 30, 3), `insert into perdure.barriers (parent_id, fanout, pending) values ('`+id(2)+`', 1, 1)`),
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.piece("p", m[0]), s.outcome("e", m[1], childOf(3, 2), 9, 1, isDone())}
			},
			alike: true, // the outcome may wait for the piece, which waits for nothing
			more:  allEnded("e", 3),
			mutants: map[string][]mutation{
				"a piece that does not look whether it waits for children": {
					instead("from perdure.barriers b where b.parent_id = i.id", "from perdure.barriers b where false and b.parent_id = i.id", "held.token"), nil, nil,
				},
			},
		},
	}
}
