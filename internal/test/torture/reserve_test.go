package torture_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/interleave"
)

func TestReservationsInterleaved(t *testing.T) {
	on(t, servers, func(t *testing.T, dsn string) {
		r := newReservation(t, dsn)
		insert3, insert4 := business("insert into business values (3, 0)"), business("insert into business values (4, 0)")
		b := r.session("b", insert4, reserveNow, enter, commit)

		t.Run("FirstUseByTwoSessionsIsInOrder", func(t *testing.T) {
			r.holds(t, 2, r.session("a", insert3, reserveNow, enter, commit), b)
		})
		t.Run("ARollbackLeavesNoGap", func(t *testing.T) {
			r.holds(t, 1, r.session("a", insert3, reserveNow, enter, rollback), b)
		})
		t.Run("ASavepointBeforeTheReservationIsHarmless", func(t *testing.T) {
			r.holds(t, 2, r.session("a", business("savepoint s"), insert3, business("rollback to savepoint s"), reserveNow, enter, commit), b)
		})
		t.Run("AReservationInASavepointThatIsRolledBackBreaksTheOrder", func(t *testing.T) {
			inSavepoint := r.session("a", business("savepoint s"), reserveNow, business("rollback to savepoint s"), enter, commit)
			r.breaks(t, 2, "duplicate value", inSavepoint, b)
		})
		t.Run("ThreeSessionsAreInOrder", func(t *testing.T) {
			r.holds(t, 3, r.session("a", reserveNow, enter, commit), r.session("b", reserveNow, enter, commit), r.session("c", reserveNow, enter, commit))
		})
	})
}

func TestReservationsAndBusinessLocksInterleaved(t *testing.T) {
	on(t, servers, func(t *testing.T, dsn string) {
		r := newReservation(t, dsn)
		update := business("update business set n = n + 1 where id = 1")
		last := func(name string) interleave.Session { return r.session(name, update, reserveNow, enter, commit) }
		t.Run("ReservedLastNothingDeadlocks", func(t *testing.T) {
			r.holds(t, 2, last("a"), last("b"))
		})
		t.Run("ReservedFirstByOneSomeDeadlock", func(t *testing.T) {
			first := r.session("a", reserveNow, update, enter, commit)
			deadlocks := 0
			r.explore(t, func(_ context.Context, _ *sql.DB, o interleave.Outcome) error {
				for _, err := range o.Errors {
					if !deadlock(err) {
						return err
					}
					deadlocks++
				}
				return nil
			}, first, last("b"))
			if deadlocks == 0 {
				t.Error("no schedule had a deadlock")
			}
			t.Logf("%d schedules had a deadlock", deadlocks)
		})
	})
}

// The seed's text for MySQL (003, section 5.3): the row is created by its first
// use, and the number is LAST_INSERT_ID. The first session gets the id that
// AUTO_INCREMENT gave to the row instead of the counter: the second session
// then gets the same number, or a smaller one if the row was not the table's
// first, which in a table of settings it is not.
func TestTheSeedsReservationBreaksTheOrderOnMySQL(t *testing.T) {
	on(t, []backend{onMySQL}, func(t *testing.T, dsn string) {
		r := newReservation(t, dsn)
		a := r.session("a", seedReserve, enter, seedCommit)
		b := r.session("b", seedReserve, enter, seedCommit)
		t.Run("OnFirstUse", func(t *testing.T) {
			r.breaks(t, 2, "duplicate value", a, b)
		})
		t.Run("OnFirstUseAfterOtherSettings", func(t *testing.T) {
			r.settings = 3
			r.breaks(t, 2, "commits have the numbers [4 1]", a, b)
		})
	})
}

func seedReserve(ctx context.Context, s *session) error {
	read := sqldb.Stmt{SQL: "select last_insert_id()", Row: func(scan sqldb.Scan) error { return scan(&s.number) }}
	return s.run.Run(ctx, sqldb.Exec("insert into seed_version (k, value) values ('outbox', '0') on duplicate key update value = last_insert_id(cast(value as unsigned) + 1)"), read)
}

// seedCommit commits and moves the real clock along, so that only the numbers
// can be found wrong.
func seedCommit(ctx context.Context, s *session) error {
	if err := commit(ctx, s); err != nil {
		return err
	}
	_, err := s.conn.SQL().ExecContext(ctx, "update perdure_outbox_clock set counter = counter + 1")
	return err
}
