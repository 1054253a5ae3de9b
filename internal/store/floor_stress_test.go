package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/testdb"
)

// unreachable counts the rows of ready that no look would find: rows below the newest floor of
// their level that are no pins, although the floor has seen their transaction.
const unreachable = `select count(*)
from perdure.ready w
cross join lateral (
  select * from perdure.floors n where n.source = 'ready' and n.queue = w.queue and n.priority = w.priority order by n.seq desc limit 1
) f
where not w.suspect and f.server = pg_postmaster_start_time() and (w.due_at, w.id) < (f.at, f.id) and w.arrived < f.seen_to and not w.arrived = any(f.open)
  and not exists (select 1 from unnest(f.pin_at, f.pin_id) as p (at, id) where p.at = w.due_at and p.id = w.id)`

// floorScene is a database with two lanes on which writers, claimers and cancels work at once.
type floorScene struct {
	*testing.T
	db sqldb.DB
	st *Store

	mu      sync.Mutex
	live    map[string]bool // committed and not cancelled
	waiting []string
	writing atomic.Int64
}

func newFloorScene(t *testing.T) *floorScene {
	db, st := migrated(t, sqldb.Postgres)
	return &floorScene{T: t, db: db, st: st, live: map[string]bool{}}
}

// in runs fn in a transaction, which fn commits.
func (s *floorScene) in(access sqldb.Access, fn func(ctx context.Context, tx sqldb.Tx) error) {
	ctx, cancel := context.WithTimeout(context.Background(), testdb.Patience)
	defer cancel()
	tx, err := s.db.Begin(ctx, access)
	if err != nil {
		s.Error(err)
		return
	}
	defer tx.Rollback()
	if err := fn(ctx, tx); err != nil {
		s.Error(err)
	}
}

// number returns the result of a query in a snapshot of its own.
func (s *floorScene) number(query string, args ...any) (n int64) {
	s.in(sqldb.Read, func(ctx context.Context, tx sqldb.Tx) error {
		return tx.Run(ctx, sqldb.Stmt{SQL: query, Args: args, Row: func(scan sqldb.Scan) error { return scan(&n) }})
	})
	return n
}

// add inserts rows that are due in the given number of microseconds, or were. It commits most of
// them, after a while.
func (s *floorScene) add(random *rand.Rand, patience time.Duration) {
	s.in(sqldb.Write, func(ctx context.Context, tx sqldb.Tx) error {
		lane := fmt.Sprintf("lane%d", random.IntN(2))
		var ids []string
		for range 1 + random.IntN(5) {
			id := uuid.Must(uuid.NewV7()).String()
			due := []int{0, 0, -random.IntN(10_000_000), random.IntN(50_000)}[random.IntN(4)]
			ids = append(ids, id)
			if err := tx.Run(ctx, sqldb.Exec("insert into perdure.ready (queue, priority, due_at, id) values ($1, $2, now() + $3::bigint * interval '1 microsecond', $4::uuid)",
				lane, random.IntN(3)-1, due, id)); err != nil {
				return err
			}
			time.Sleep(time.Duration(random.Int64N(int64(patience))))
		}
		if random.IntN(10) == 0 {
			return nil
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, id := range ids {
			s.live[id] = true
		}
		s.waiting = append(s.waiting, ids...)
		return nil
	})
}

// cancel removes a row, unless it was claimed before.
func (s *floorScene) cancel(random *rand.Rand) {
	s.mu.Lock()
	if len(s.waiting) == 0 {
		s.mu.Unlock()
		return
	}
	id := s.waiting[random.IntN(len(s.waiting))]
	s.mu.Unlock()
	s.in(sqldb.Write, func(ctx context.Context, tx sqldb.Tx) error {
		var gone int64
		if err := tx.Run(ctx, counted(sqldb.Exec("delete from perdure.ready where id = $1::uuid", id), &gone)); err != nil {
			return err
		}
		if err := tx.Commit(ctx); err != nil || gone == 0 {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.live, id)
		return nil
	})
}

// claim claims as a dispatcher does. Some claims are rolled back, some return a row at once, and
// some move a row to an earlier time.
func (s *floorScene) claim(random *rand.Rand) {
	s.in(sqldb.Claim, func(ctx context.Context, tx sqldb.Tx) error {
		if random.IntN(2) == 0 { // the transaction has a number already, lower than that of others that end before
			if err := tx.Run(ctx, sqldb.Exec("select pg_current_xact_id()")); err != nil {
				return err
			}
			time.Sleep(time.Duration(random.Int64N(int64(4 * time.Millisecond))))
		}
		token := uuid.NewString()
		lane := fmt.Sprintf("lane%d", random.IntN(2))
		stmts := s.st.Instances().Claim(Claim{Queue: lane, Worker: "w", Token: token, Lease: time.Hour, Limit: 1 + random.IntN(40)}, nil, func(Claimed) {})
		if err := tx.Run(ctx, stmts...); err != nil {
			return err
		}
		switch random.IntN(6) {
		case 0:
			return nil
		case 1:
			if err := tx.Run(ctx, sqldb.Exec("insert into perdure.ready (queue, priority, due_at, id) select queue, 0, now() - interval '20 s', ids[1] from perdure.leases where token = $1::uuid", token),
				sqldb.Exec("update perdure.leases set ids = ids[2:] where token = $1::uuid", token)); err != nil {
				return err
			}
		case 2:
			if err := tx.Run(ctx, sqldb.Exec("update perdure.ready set due_at = due_at - interval '1 minute' where ctid = (select ctid from perdure.ready limit 1 for update skip locked)")); err != nil {
				return err
			}
		}
		return tx.Commit(ctx)
	})
}

// run lets all of them work at once, while a snapshot is held. It returns the number of rows
// that were unreachable at some time, and those that were never taken, or taken twice.
func (s *floorScene) run(rounds int) (lost int64) {
	s.in(sqldb.Read, func(ctx context.Context, held sqldb.Tx) error {
		if err := held.Run(ctx, sqldb.Stmt{SQL: "select count(*) from perdure.settings", Row: func(scan sqldb.Scan) error { return scan(new(int64)) }}); err != nil {
			return err
		}
		var writers, claimers sync.WaitGroup
		for n := range 6 {
			s.writing.Add(1)
			writers.Go(func() {
				defer s.writing.Add(-1)
				random := rand.New(rand.NewPCG(uint64(n), 1))
				for range rounds {
					s.add(random, time.Duration(1+random.IntN(4))*time.Millisecond)
				}
			})
		}
		for n := range 4 {
			claimers.Go(func() {
				random := rand.New(rand.NewPCG(uint64(n), 2))
				for s.writing.Load() > 0 {
					switch n {
					case 3:
						lost += s.number(unreachable)
						s.cancel(random)
					default:
						s.claim(random)
					}
				}
			})
		}
		writers.Wait()
		claimers.Wait()
		return nil
	})
	lost += s.number(unreachable)
	random := rand.New(rand.NewPCG(1, 3))
	for s.number("select count(*) from perdure.ready")-s.number(unreachable) > 0 {
		s.claim(random)
	}
	taken := s.number("select count(*) from perdure.leases, unnest(ids)")
	different := s.number("select count(distinct id) from perdure.leases, unnest(ids) as id")
	if twice := taken - different; twice != 0 {
		s.Errorf("%d rows were taken twice", twice)
	}
	return lost + int64(len(s.live)) - different
}

// Late commits, due times in the past, rollbacks, cancels, returned rows and moved rows: no row
// is missed or taken twice.
func TestFloorsMissNothing(t *testing.T) {
	t.Parallel()
	if lost := newFloorScene(t).run(40); lost != 0 {
		t.Errorf("%d rows were missed", lost)
	}
}
