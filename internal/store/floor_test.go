package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure/internal/sqldb"
)

// maxEntries is the largest number of index entries that a claim of a few rows may read.
const maxEntries = 1000

// walked has the statements that count what a session has read: entries of the indexes of the hot
// tables, dead ones included, and scans of whole tables.
func walked(entries, scans *int64) sqldb.Stmt {
	return sqldb.Stmt{
		SQL: `select (select sum(pg_stat_get_xact_tuples_returned(i.indexrelid)) from pg_index i where i.indrelid in ('perdure.ready'::regclass, 'perdure.leases'::regclass, 'perdure.floors'::regclass))::bigint,
			pg_stat_get_xact_numscans('perdure.ready'::regclass) + pg_stat_get_xact_numscans('perdure.leases'::regclass) + pg_stat_get_xact_numscans('perdure.floors'::regclass)`,
		Row: func(scan sqldb.Scan) error { return scan(entries, scans) },
	}
}

// reads returns how many index entries statements read, and fails if they scan a table.
func (s *floorScene) reads(access sqldb.Access, stmts ...sqldb.Stmt) int64 {
	s.Helper()
	var before, after, scans, scanned int64
	s.in(access, func(ctx context.Context, tx sqldb.Tx) error {
		if err := tx.Run(ctx, walked(&before, &scans)); err != nil {
			return err
		}
		if err := tx.Run(ctx, stmts...); err != nil {
			return err
		}
		if err := tx.Run(ctx, walked(&after, &scanned)); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
	if scanned != scans {
		s.Errorf("%d scans of whole tables", scanned-scans)
	}
	return after - before
}

// held holds a snapshot until the test ends.
func (s *floorScene) held() {
	tx, err := s.db.Begin(s.Context(), sqldb.Read)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(tx.Rollback)
	if err := tx.Run(s.Context(), sqldb.Stmt{SQL: "select count(*) from perdure.settings", Row: func(scan sqldb.Scan) error { return scan(new(int64)) }}); err != nil {
		s.Fatal(err)
	}
}

func (s *floorScene) exec(sql string, args ...any) {
	s.Helper()
	s.in(sqldb.Write, func(ctx context.Context, tx sqldb.Tx) error {
		if err := tx.Run(ctx, sqldb.Exec(sql, args...)); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
}

// fill adds rows that are due now to a lane.
func (s *floorScene) fill(lane string, n int) {
	s.Helper()
	s.exec("insert into perdure.ready (queue, priority, due_at, id) select $1, 0, now(), gen_random_uuid() from generate_series(1, $2::integer)", lane, n)
}

// A claim, and the question for the next due time, read few entries, however many rows were
// claimed before while another session holds a snapshot. It does not matter whether the
// planner has statistics.
func TestClaimsDoNotWalkOverDeadRows(t *testing.T) {
	t.Parallel()
	s := newFloorScene(t)
	s.held()
	hooks, alarms := HookLane("shop", "mail"), AlarmLane("a")
	kinds := []struct {
		family *Family
		claim  Claim
	}{
		{s.st.Instances(), Claim{Queue: "default"}},
		{s.st.Hooks(), Claim{Queue: HookQueue("shop"), Lanes: []string{HookLane("shop", "none"), hooks}}},
		{s.st.Alarms(), Claim{Queue: AlarmQueue, Lanes: []string{alarms}}},
	}
	claim := func(n, limit int) []sqldb.Stmt {
		c := kinds[n].claim
		c.Worker, c.Token, c.Lease, c.Limit = "w", uuid.NewString(), time.Minute, limit
		return kinds[n].family.Claim(c, nil, func(Claimed) {})
	}
	next := func(n int) sqldb.Stmt {
		if n == 0 {
			return s.st.NextInstance("default", nil, 1, nil, func(time.Duration) {})
		}
		return kinds[n].family.Next(kinds[n].claim.Queue, kinds[n].claim.Lanes, 1, nil, func(time.Duration) {})
	}
	for n, lane := range []string{"default", hooks, alarms} {
		for round := range 6 {
			s.fill(lane, 2000)
			for range 5 {
				s.reads(sqldb.Claim, claim(n, 400)...)
			}
			if round == 3 {
				s.exec("analyze perdure.ready")
				s.exec("analyze perdure.floors")
			}
			for range 3 {
				s.fill(lane, 10)
				if entries := s.reads(sqldb.Look, next(n)); entries > maxEntries {
					t.Errorf("the question for the next due time reads %d entries in round %d of %q", entries, round, lane)
				}
				if entries := s.reads(sqldb.Claim, claim(n, 5)...); entries > maxEntries { // the rows of the batch before are dead
					t.Errorf("a claim reads %d entries in round %d of %q", entries, round, lane)
				}
				if entries := s.reads(sqldb.Claim, claim(n, 20)...); entries > 200 {
					t.Errorf("a second claim reads %d entries in round %d of %q", entries, round, lane)
				}
			}
			s.exec("update perdure.leases set queue = 'other'")
		}
	}
	blind := claim(0, 10)
	blind[0].SQL = strings.ReplaceAll(blind[0].SQL, "(w.due_at, w.id) >= (l.at, l.id)", "true")
	if entries := s.reads(sqldb.Claim, blind...); entries < 12_000 {
		t.Errorf("without floors a claim reads only %d entries: there is nothing to test", entries)
	}
}

// Leases of claims that have ended are not walked over, either, whether or not the planner has
// statistics.
func TestExpiredLeasesAreFoundAmongDeadOnes(t *testing.T) {
	t.Parallel()
	s := newFloorScene(t)
	s.held()
	for round := range 12 {
		if round == 3 {
			s.exec("analyze perdure.leases")
			s.exec("analyze perdure.floors")
		}
		s.exec("insert into perdure.leases (token, worker, queue, alone, expires_at, ids) select gen_random_uuid(), 'w', 'q', false, now() + interval '30 s', '{}' from generate_series(1, 400)")
		s.exec("delete from perdure.leases where worker = 'w'")
		expired := 0
		s.exec("insert into perdure.leases (token, worker, queue, alone, expires_at, ids) values (gen_random_uuid(), 'crashed', 'q', false, now() - interval '1 s', '{}')")
		s.exec("insert into perdure.leases (token, worker, queue, alone, expires_at, ids) values (gen_random_uuid(), 'alive', 'q', false, now() + interval '30 s', '{}')")
		look := func() sqldb.Stmt {
			return s.st.ExpiredLeases("q", 10, nil, func(l ExpiredLease) {
				if expired++; l.Worker != "crashed" {
					t.Errorf("the lease of a process that is %s was returned", l.Worker)
				}
			})
		}
		if entries := s.reads(sqldb.Urgent, look()); entries > maxEntries {
			t.Errorf("expired leases: %d entries in round %d", entries, round)
		}
		if expired != 1 {
			t.Errorf("%d expired leases in round %d, want 1", expired, round)
		}
		s.exec("delete from perdure.leases where worker = 'crashed'")
		if entries := s.reads(sqldb.Look, s.st.NextInstance("q", nil, 1, nil, func(time.Duration) {})); entries > maxEntries {
			t.Errorf("next due time: %d entries in round %d", entries, round)
		}
	}
}
