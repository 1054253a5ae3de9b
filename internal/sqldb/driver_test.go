package sqldb_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/driver/mysql"
	"github.com/perdure/perdure/driver/postgres"
	"github.com/perdure/perdure/driver/sqlite"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// Driver has a case for each thing that the drivers promise.
type Driver struct{}

func TestDriver(t *testing.T) { enginetest.Conform(t, Driver{}) }

// open opens the database through its driver, with a table of numbers.
func open(t *testing.T, database enginetest.Database) sqldb.DB {
	t.Helper()
	db := connect(t, database)
	err := db.Exclusively(t.Context(), func(run sqldb.Runner) error {
		return run.Run(t.Context(), sqldb.Exec("create table if not exists numbers (n int primary key)"))
	})
	enginetest.NoError(t, err)
	return db
}

func connect(t *testing.T, database enginetest.Database) sqldb.DB {
	t.Helper()
	var db sqldb.DB
	var err error
	switch database.Name {
	case enginetest.Postgres:
		db, err = postgres.Open(t.Context(), database.DSN)
	case enginetest.MySQL:
		db, err = mysql.Open(t.Context(), database.DSN)
	default:
		db, err = sqlite.Open(t.Context(), database.DSN)
	}
	enginetest.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func begin(t *testing.T, db sqldb.DB, access sqldb.Access) sqldb.Tx {
	t.Helper()
	tx, err := db.Begin(enginetest.Context(t), access)
	enginetest.NoError(t, err)
	t.Cleanup(tx.Rollback)
	return tx
}

func insert(db sqldb.DB, n int) sqldb.Stmt {
	return sqldb.Exec(db.Dialect().Rebind("insert into numbers (n) values (?)"), n)
}

// numbers counts the rows that are committed.
func numbers(t *testing.T, db sqldb.DB) (n int64) {
	t.Helper()
	tx := begin(t, db, sqldb.Read)
	defer tx.Rollback()
	enginetest.NoError(t, tx.Run(t.Context(), count(&n)))
	return n
}

func count(n *int64) sqldb.Stmt {
	return sqldb.Stmt{SQL: "select count(*) from numbers", Row: func(scan sqldb.Scan) error { return scan(n) }}
}

func (Driver) RunSaysWhichStatementFailed(t *testing.T, database enginetest.Database) {
	db := open(t, database)
	for _, first := range []bool{true, false} { // BEGIN rides with the first list
		tx := begin(t, db, sqldb.Write)
		if !first {
			enginetest.NoError(t, tx.Run(t.Context(), insert(db, 100)))
		}
		err := tx.Run(t.Context(), insert(db, 1), insert(db, 2), insert(db, 1), insert(db, 3))
		failed := enginetest.As[*sqldb.StmtError](t, err)
		if failed.Index != 2 {
			t.Errorf("statement %d failed, want 2", failed.Index)
		}
		enginetest.As[*fault.Duplicate](t, err)
		tx.Rollback()
	}
	if n := numbers(t, db); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func (Driver) RunStopsWhereAResultIsRefused(t *testing.T, database enginetest.Database) {
	db := open(t, database)
	refuse := errors.New("refused")
	for i, s := range []sqldb.Stmt{
		{SQL: "select 1", Row: func(sqldb.Scan) error { return refuse }},
		{SQL: "select 1", Row: func(sqldb.Scan) error { return nil }, Done: func(rows int64) error {
			if rows != 1 {
				t.Errorf("%d rows were returned", rows)
			}
			return refuse
		}},
		{SQL: "delete from numbers", Done: sqldb.One(refuse)},
	} {
		tx := begin(t, db, sqldb.Write)
		later := insert(db, 9)
		ran := false
		later.Done = func(int64) error { ran = true; return nil }
		err := tx.Run(t.Context(), s, later)
		enginetest.Is(t, err, refuse)
		if failed := enginetest.As[*sqldb.StmtError](t, err); failed.Index != 0 || ran {
			t.Errorf("case %d: statement %d failed, the next was judged: %v", i, failed.Index, ran)
		}
		tx.Rollback()
	}
	if n := numbers(t, db); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func (Driver) CommitIsAllOrNothing(t *testing.T, database enginetest.Database) {
	db := open(t, database)
	tx := begin(t, db, sqldb.Write)
	enginetest.NoError(t, tx.Run(t.Context(), insert(db, 1)))
	enginetest.NoError(t, tx.Commit(t.Context(), insert(db, 2), insert(db, 3)))
	tx.Rollback() // nothing more
	if n := numbers(t, db); n != 3 {
		t.Fatalf("%d rows are committed, want 3", n)
	}
	for _, lead := range [][]sqldb.Stmt{nil, {insert(db, 10)}} {
		tx = begin(t, db, sqldb.Write)
		enginetest.NoError(t, tx.Run(t.Context(), lead...))
		enginetest.As[*fault.Duplicate](t, tx.Commit(t.Context(), insert(db, 11), insert(db, 1), insert(db, 12)))
		tx.Rollback()
	}
	tx = begin(t, db, sqldb.Write)
	judged := insert(db, 13)
	judged.Done = func(int64) error { return errors.New("refused") }
	if err := tx.Commit(t.Context(), judged); err == nil {
		t.Error("a refused statement was committed")
	}
	tx.Rollback()
	if n := numbers(t, db); n != 3 {
		t.Errorf("%d rows are committed, want 3", n)
	}
}

func (Driver) ATransactionEndsOnce(t *testing.T, database enginetest.Database) {
	db := open(t, database)
	for _, access := range []sqldb.Access{sqldb.Write, sqldb.Read} {
		tx := begin(t, db, access)
		enginetest.NoError(t, tx.Commit(t.Context()))
		enginetest.Is(t, tx.Commit(t.Context()), sqldb.ErrDone)
		tx = begin(t, db, access)
		tx.Rollback()
		tx.Rollback()
		enginetest.Is(t, tx.Commit(t.Context()), sqldb.ErrDone)
	}
}

func (Driver) NothingReachesAnEndedTransaction(t *testing.T, database enginetest.Database) {
	db := open(t, database)
	tx := begin(t, db, sqldb.Write)
	enginetest.NoError(t, tx.Run(t.Context(), insert(db, 1)))
	tx.Rollback()
	if err := tx.Run(t.Context(), insert(db, 2)); err == nil {
		t.Error("an ended transaction ran a statement")
	}
	if _, err := tx.Query(t.Context(), "select 1"); err == nil {
		t.Error("an ended transaction ran a query")
	}
	if n := numbers(t, db); n != 0 {
		t.Errorf("%d rows are committed", n)
	}
}

func (Driver) ReadsSeeOneSnapshotAndCannotWrite(t *testing.T, database enginetest.Database) {
	db := open(t, database)
	tx := begin(t, db, sqldb.Read)
	var before, after int64
	enginetest.NoError(t, tx.Run(t.Context(), count(&before)))
	writer := begin(t, db, sqldb.Write)
	enginetest.NoError(t, writer.Run(t.Context(), insert(db, 1)))
	enginetest.NoError(t, writer.Commit(t.Context()))
	enginetest.NoError(t, tx.Run(t.Context(), count(&after)))
	if before != 0 || after != 0 {
		t.Errorf("the snapshot has %d rows, then %d", before, after)
	}
	if err := tx.Run(t.Context(), insert(db, 2)); err == nil {
		t.Error("a read-only transaction wrote")
	}
	tx.Rollback()
	if n := numbers(t, db); n != 1 {
		t.Errorf("%d rows are committed", n)
	}
}

func (Driver) ExclusivelyIsExclusive(t *testing.T, database enginetest.Database) {
	open(t, database)
	var inside, most atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		db := connect(t, database) // as another process
		all.Go(func() {
			for range 5 {
				err := db.Exclusively(context.Background(), func(run sqldb.Runner) error {
					if n := inside.Add(1); n > most.Load() {
						most.Store(n)
					}
					defer inside.Add(-1)
					return run.Run(context.Background(), sqldb.Exec("delete from numbers"))
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d were inside at once", most.Load())
	}
}

func (Driver) ExclusivelyWaitsNoLongerThanItsContext(t *testing.T, database enginetest.Database) {
	db, other := open(t, database), connect(t, database)
	err := db.Exclusively(t.Context(), func(sqldb.Runner) error {
		ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := other.Exclusively(ctx, func(sqldb.Runner) error { t.Error("two are inside"); return nil })
		if err == nil || time.Since(began) > enginetest.Patience {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		return nil
	})
	enginetest.NoError(t, err)
	enginetest.NoError(t, other.Exclusively(t.Context(), func(sqldb.Runner) error { return nil }))
}

func (Driver) AFailedExclusiveWriteIsUndoneAndLetsGo(t *testing.T, database enginetest.Database) {
	db := open(t, database)
	mine := errors.New("mine")
	err := db.Exclusively(t.Context(), func(sqldb.Runner) error { return mine })
	enginetest.Is(t, err, mine)
	func() {
		defer func() { _ = recover() }()
		_ = db.Exclusively(t.Context(), func(sqldb.Runner) error { panic("boom") })
	}()
	enginetest.NoError(t, db.Exclusively(t.Context(), func(sqldb.Runner) error { return nil }))
}

func (Driver) BeginWaitsNoLongerThanItsContext(t *testing.T, database enginetest.Database) {
	db := open(t, database)
	var held []sqldb.Tx
	for range 64 { // more than any pool has
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		began := time.Now()
		tx, err := db.Begin(ctx, sqldb.Write)
		took := time.Since(began)
		cancel()
		if err == nil {
			held = append(held, tx)
			continue
		}
		enginetest.Is(t, err, context.DeadlineExceeded)
		if took > enginetest.Patience {
			t.Errorf("it took %v", took)
		}
		for _, tx := range held {
			tx.Rollback()
		}
		begin(t, db, sqldb.Write).Rollback() // and there is one again
		return
	}
	t.Fatal("the pool has no end")
}

func (Driver) AnErrorOfTheContextIsOne(t *testing.T, database enginetest.Database) {
	db := open(t, database)
	for _, access := range []sqldb.Access{sqldb.Write, sqldb.Read} {
		tx := begin(t, db, access)
		ctx, cancel := context.WithCancel(t.Context())
		var n int64
		enginetest.NoError(t, tx.Run(ctx, count(&n)))
		cancel()
		err := tx.Run(ctx, count(&n))
		enginetest.Is(t, err, context.Canceled)
		if sqldb.IsTransient(err) {
			t.Errorf("an ended context invites another try: %v", err)
		}
		tx.Rollback()
	}
	if n := numbers(t, db); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// Statements are counted, but not those that begin and end a transaction, and
// transactions that were committed.
func (Driver) CountsWhatItRuns(t *testing.T, database enginetest.Database) {
	db := open(t, database)
	ctx := enginetest.Context(t)
	before := db.(sqldb.Counted).Ran()
	tx := begin(t, db, sqldb.Write)
	enginetest.NoError(t, tx.Run(ctx, sqldb.Exec("insert into numbers values (1)"), sqldb.Exec("insert into numbers values (2)")))
	rows, err := tx.Query(ctx, "select n from numbers")
	enginetest.NoError(t, err)
	enginetest.NoError(t, rows.Close())
	enginetest.NoError(t, tx.Commit(ctx, sqldb.Exec("delete from numbers")))
	begin(t, db, sqldb.Write).Rollback()
	numbers(t, db) // a statement, and a snapshot
	after := db.(sqldb.Counted).Ran()
	if ran := after.Statements - before.Statements; ran != 5 {
		t.Errorf("%d statements were counted, 5 were run", ran)
	}
	if committed := after.Commits - before.Commits; committed != 1 {
		t.Errorf("%d commits were counted, 1 was made", committed)
	}
}
