package fsm_test

import (
	"database/sql"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// expireLeases makes the database believe that all leases are over.
func (f *fixture) expireLeases() {
	f.t.Helper()
	switch f.db.Name {
	case enginetest.SQLite:
		f.db.Exec(f.t, "update perdure_leases set expires_at = 0")
		return
	case enginetest.MySQL:
		// One by one and without locks on gaps: otherwise it could meet an outcome that locks
		// several leases, or a claim that adds one.
		db := f.db.SQL(f.t)
		for _, token := range strings.Fields(f.db.Text(f.t, "select coalesce(group_concat(token separator ' '), '') from perdure_leases")) {
			tx, err := db.BeginTx(f.t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
			enginetest.NoError(f.t, err)
			_, err = tx.ExecContext(f.t.Context(), "update perdure_leases set expires_at = '1970-01-01' where token = ?", token)
			enginetest.NoError(f.t, err)
			enginetest.NoError(f.t, tx.Commit())
		}
		return
	}
	f.db.Exec(f.t, "update perdure.leases set expires_at = 'epoch' where token in (select token from perdure.leases order by token for update skip locked)")
}

// leaseEnd returns when the only lease ends.
func (f *fixture) leaseEnd() time.Time {
	f.t.Helper()
	switch f.db.Name {
	case enginetest.SQLite:
		return time.UnixMicro(f.db.Int(f.t, "select max(expires_at) from perdure_leases")).UTC()
	case enginetest.MySQL:
		return time.UnixMicro(f.db.Int(f.t, "select timestampdiff(microsecond, '1970-01-01', max(expires_at)) from perdure_leases")).UTC()
	}
	return time.UnixMicro(f.db.Int(f.t, "select (extract(epoch from max(expires_at)) * 1000000)::bigint from perdure.leases")).UTC()
}
