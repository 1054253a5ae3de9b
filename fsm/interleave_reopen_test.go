package fsm

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/interleave"
)

// then runs a piece of a tree after a session has changed it.
func (s *stage) then(name string, mutate mutation, change func(ctx context.Context, m *Machines) error) interleave.Session {
	return s.session(name, mutate, func(ctx context.Context, m *Machines) error {
		if s.told(name) == nil {
			if err := change(ctx, m); err != nil {
				return err
			}
			s.tell(name, "changed")
		}
		_, err := m.endPiece(ctx, "")
		return err
	})
}

func cancelRoot(ctx context.Context, m *Machines) error {
	_, err := m.tryEnd(ctx, id(1), Cancelled, "no", false)
	return err
}

func retryRoot(ctx context.Context, m *Machines) error {
	return m.transact(ctx, func(tx sqldb.Tx) error {
		r := reopening{machines: m, tx: tx, root: id(1)}
		enter, err := r.one(ctx, id(1))
		if err != nil {
			return err
		}
		return tx.Run(ctx, enter...)
	})
}

// retriedRoot is a fixture: instance 1 was retried and waits for its fan-out, which is
// not reopened yet.
func retriedRoot() []string {
	return []string{
		instance(1, "fanout=1"), fmt.Sprintf(`insert into perdure.barriers (parent_id, fanout, pending) values ('%s', 1, %d)`, id(1), store.Uncounted),
		`insert into perdure.tree_ends (parent_id, first_fanout, last_fanout, kind, root_id, reason, due_at, created_at)
			values ('` + id(1) + `', 1, 1, 'reopen', '` + id(1) + `', 'retried', '2026-01-01Z', '2026-01-01Z')`,
	}
}

// endedWith is a fixture: an instance has ended because instance 1 had.
func endedWith(n int) string {
	return `insert into perdure.finished (id, status, ended_by, finished_at) values ('` + id(n) + `', 'cancelled', '` + id(1) + `', '2026-01-01Z')`
}

// sorted is the order of the rows of one parent, which mutants leave out.
const sorted = "exists (select 1 from perdure.tree_ends x where x.parent_id = t.parent_id and x.seq < t.seq)"

// afterRest handles what is left of the tree, and compares numbers.
func afterRest(query string, wanted ...int) func(s *stage) func(*sql.DB) error {
	return func(s *stage) func(*sql.DB) error {
		return func(db *sql.DB) error {
			if err := s.rest(); err != nil {
				return err
			}
			got := number(db, query)
			for _, n := range wanted {
				if n == got {
					return nil
				}
			}
			return fmt.Errorf("%s: %d, want %v; told %v", query, got, wanted, s.results)
		}
	}
}

// reopenPairs are the pairs in which a piece that reopens children takes part.
func reopenPairs() []pair {
	quiet := append([]string{
		"perdure.leases", "perdure.ready", "perdure.deadlines", "perdure.barriers", "update perdure.instances", "select id::text\nfrom perdure.instances",
	}, quietPiece...)
	return []pair{
		{
			name:    "the last piece of a retry and the end of a child",
			quiet:   []string{interrupts, noSignals, endOfLease, "for key share", "perdure.tree_ends"},
			fixture: append(retriedRoot(), isChild(2), lease(8, 30, 2)),
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.piece("p", m[0]), s.outcome("e", m[1], childOf(2, 1), 8, 1, isDone())}
			},
			more: afterRest("select (select count(*) from perdure.ready) * 10 + (select count(*) from perdure.barriers)", 10),
			mutants: map[string][]mutation{
				"a count without the lock": {unlocked("for update skip locked", "from perdure.barriers"), nil, nil},
			},
		},
		{
			name:    "a piece of a retry and a cancel",
			quiet:   quiet,
			fixture: append(retriedRoot(), isChild(2), endedWith(2)),
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.piece("p", m[0]), s.then("c", m[1], cancelRoot)}
			},
			alike: true, // pieces wait for nothing
			more:  afterRest("select (select count(*) from perdure.finished) * 10 + (select count(*) from perdure.ready)", 20),
			mutants: map[string][]mutation{
				"rows in any order": {nil, instead(sorted, "false"), nil},
			},
		},
		{
			name:    "a piece of a cancel and a retry",
			quiet:   quiet,
			fixture: append(endedRoot(), isChild(2), isReady(2), `update perdure.instances set wait = '{"for": "children", "until": 0}' where id = '`+id(1)+`'`),
			sessions: func(s *stage, m []mutation) []interleave.Session {
				return []interleave.Session{s.piece("p", m[0]), s.then("r", m[1], retryRoot)}
			},
			alike: true, // pieces wait for nothing
			more:  afterRest("select (select count(*) from perdure.finished) * 10 + (select pending from perdure.barriers) + (select count(*) from perdure.ready)", 2),
			mutants: map[string][]mutation{
				"rows in any order": {nil, instead(sorted, "false"), nil},
			},
		},
	}
}
