package mysql

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/testdb"
)

// A bound of the wait for locks is not one of a large statement that takes long without a
// wait: an outcome with a large state is committed on a slow server, too.
func TestAShortBoundOfLocksIsNoneOfALargeStatement(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), testdb.MySQL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	begin := func() sqldb.Tx {
		tx, err := db.Begin(t.Context(), sqldb.Group)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(tx.Rollback)
		return tx
	}
	run := func(tx sqldb.Tx, stmts ...sqldb.Stmt) {
		t.Helper()
		if err := tx.Run(t.Context(), stmts...); err != nil {
			t.Fatal(err)
		}
	}
	holder := begin()
	run(holder, sqldb.Exec("create table counters (id int primary key, n int not null)"), sqldb.Exec("insert into counters values (1, 0), (2, 0)"))
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	holder = begin()
	run(holder, sqldb.Exec("update counters set n = 1 where id = 1"))
	short := sqldb.LimitLocks(20 * time.Millisecond)
	large := strings.Repeat("x", largeStatement)
	run(begin(), short, sqldb.Exec("update counters set n = sleep(0.2) where id = 2 and ? <> ''", large))
	for _, value := range []string{"x", large} {
		if err := begin().Run(t.Context(), short, sqldb.Exec("update counters set n = 2 where id = 1 and ? <> ''", value)); !sqldb.IsLocked(err) {
			t.Errorf("the error of a locked row is %v", err)
		}
	}
}
