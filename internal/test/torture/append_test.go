package torture_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/outbox"
)

// appendNow is the engine's statement on PostgreSQL: it reserves and inserts at
// once.
func appendNow(ctx context.Context, s *session) error {
	draft := store.Draft{Unit: s.name, Payload: `{"stamp":"@"}`, Nonce: "@"}
	if err := s.run.Run(ctx, s.store.Append([]store.Draft{draft}, time.Now().UTC())); err != nil {
		return err
	}
	var stamp outbox.Stamp
	row := s.conn.SQL().QueryRowContext(ctx, "select versionstamp from perdure.outbox where unit_id = $1", s.name)
	if err := row.Scan(&stamp); err != nil {
		return err
	}
	s.number = stamp.Counter()
	return nil
}

func TestAppendsInterleaved(t *testing.T) {
	on(t, []backend{onPostgres}, func(t *testing.T, dsn string) {
		r := newReservation(t, dsn)
		insert3, insert4 := business("insert into business values (3, 0)"), business("insert into business values (4, 0)")
		b := r.session("b", insert4, appendNow, commit)

		t.Run("FirstUseByTwoSessionsIsInOrder", func(t *testing.T) {
			r.holds(t, 2, r.session("a", insert3, appendNow, commit), b)
		})
		t.Run("ARollbackLeavesNoGap", func(t *testing.T) {
			r.holds(t, 1, r.session("a", insert3, appendNow, rollback), b)
		})
		t.Run("ASavepointBeforeItIsHarmless", func(t *testing.T) {
			r.holds(t, 2, r.session("a", business("savepoint s"), insert3, business("rollback to savepoint s"), appendNow, commit), b)
		})
		t.Run("InOneThatIsRolledBackItLeavesNothing", func(t *testing.T) {
			r.holds(t, 2, r.session("a", business("savepoint s"), appendNow, business("rollback to savepoint s"), appendNow, commit), b)
		})
		t.Run("BesideAReservationItIsInOrder", func(t *testing.T) {
			r.holds(t, 2, r.session("a", reserveNow, enter, commit), b)
		})
		t.Run("LastItDeadlocksWithNothing", func(t *testing.T) {
			update := business("update business set n = n + 1 where id = 1")
			r.holds(t, 2, r.session("a", update, appendNow, commit), r.session("b", update, appendNow, commit))
		})
	})
}
