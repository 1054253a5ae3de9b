package store

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure/internal/sqldb"
)

// The transaction that commits the last outcomes of a lease locks the lease and then
// removes it. A heartbeat that comes in between waits, and must not deadlock with it.
func TestHeartbeatsAndOutcomesOnMySQLDoNotDeadlock(t *testing.T) {
	t.Parallel()
	h := newHooksOn(t)
	for range 200 {
		token := uuid.NewString()
		h.run(sqldb.Exec("insert into perdure_leases (token, worker, queue, alone, claimed_at, expires_at, ids) values (?, 'w', 'q', 0, ?, ?, '[]')", token, h.now, h.now))
		share := h.st.stmt("LeaseShare", one([]string{token}))
		share.Row = func(scan sqldb.Scan) error { return scan(new(string)) }
		heartbeat := []sqldb.Stmt{h.st.stmt("LeaseExtend", h.now, time.Minute.Microseconds(), token)}
		errs := make(chan error, 3)
		for _, stmts := range [][]sqldb.Stmt{{share, h.st.stmt("LeaseDelete", one([]string{token}))}, heartbeat, heartbeat} {
			go func() { errs <- h.commit(stmts) }()
		}
		for range 3 {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := h.count("leases"); n != "0" {
		t.Errorf("%s leases are left", n)
	}
}

// commit runs statements in a transaction of their own, on any goroutine.
func (h hooksOn) commit(stmts []sqldb.Stmt) error {
	tx, err := h.db.Begin(h.Context(), sqldb.Write)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := tx.Run(h.Context(), stmts...); err != nil {
		return err
	}
	return tx.Commit(h.Context())
}
