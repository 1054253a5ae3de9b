package store

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/perdure/perdure/internal/sqldb"
)

// readInstances counts the entries of indexes and the rows that a session has read of
// instances and of what has finished.
func readInstances(rows *int64) sqldb.Stmt {
	return sqldb.Stmt{
		SQL: `select (select sum(pg_stat_get_xact_tuples_returned(i.indexrelid)) from pg_index i where i.indrelid in ('perdure.instances'::regclass, 'perdure.finished'::regclass))::bigint
			+ pg_stat_get_xact_tuples_returned('perdure.instances'::regclass) + pg_stat_get_xact_tuples_returned('perdure.finished'::regclass)`,
		Row: func(scan sqldb.Scan) error { return scan(rows) },
	}
}

// The look for leases of a set of instances reads these instances, however many others there
// are, and although the statistics are those of small tables.
func TestTheLookForHeldInstancesReadsNoOthers(t *testing.T) {
	t.Parallel()
	s := newFloorScene(t)
	s.exec("alter table perdure.instances set (autovacuum_enabled = false)")
	s.exec("alter table perdure.finished set (autovacuum_enabled = false)")
	s.exec("analyze perdure.instances")
	s.exec("analyze perdure.finished")
	s.exec(`with made as (
			insert into perdure.instances (id, fsm, version, step, state, queue, priority, due_at, created_at)
			select gen_random_uuid(), 'order', 1, 'pay', '{}', 'q', 0, now(), now() from generate_series(1, 5000)
			returning id, due_at
		)
		insert into perdure.waiting (id, names) select id, '{paid}' from made`)
	asked := make([]string, 400)
	for i := range asked {
		asked[i] = uuid.NewString()
	}
	s.exec("insert into perdure.instances (id, fsm, version, step, state, queue, priority, due_at, created_at) select id, 'order', 1, 'pay', '{}', 'q', 0, now(), now() from unnest($1::uuid[]) as o (id)", asked)
	s.exec("insert into perdure.leases (token, worker, queue, alone, expires_at, ids) values (gen_random_uuid(), 'w', 'q', false, now() + interval '1 h', $1::uuid[])", asked[:300])
	for range 8 { // so that the plan is also a generic one
		var before, after int64
		held := map[string]bool{}
		s.in(sqldb.Write, func(ctx context.Context, tx sqldb.Tx) error {
			return tx.Run(ctx, readInstances(&before), s.st.HeldInstances(asked, func(h Held) { held[h.ID] = true }), readInstances(&after))
		})
		if len(held) != 300 {
			t.Fatalf("%d instances are held, want 300", len(held))
		}
		if n := after - before; n > 2000 {
			t.Errorf("the look for 400 of 5,400 instances reads %d rows", n)
		}
	}
}
