package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

// lockUser locks the row of a user in a transaction of another program until release is
// called. On SQLite, that locks the database.
func lockUser(t testing.TB, db enginetest.Database, id string) (release func()) {
	t.Helper()
	tx, err := db.SQL(t).BeginTx(context.Background(), &sql.TxOptions{Isolation: isolation(db)})
	enginetest.NoError(t, err)
	result, err := tx.ExecContext(context.Background(), db.Dialect().Rebind("update "+db.Table("blog", "users")+" set points = points + 1000 where id = ?"), id)
	enginetest.NoError(t, err)
	if n, err := result.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("%d rows are locked: %v", n, err)
	}
	release = sync.OnceFunc(func() { enginetest.NoError(t, tx.Commit()) })
	t.Cleanup(release) // before the engine is closed
	return release
}

func isolation(db enginetest.Database) sql.IsolationLevel {
	if db.Name == enginetest.MySQL {
		return sql.LevelReadCommitted // a stricter level would lock other rows too
	}
	return sql.LevelDefault
}

// addPoint is a unit that changes a user, in an open transaction if open is true.
func addPoint(id string, open bool) func(*perdure.Tx) error {
	return func(tx *perdure.Tx) error {
		err := tx.Update(users, id, schema.Values{"points": 1})
		if open {
			_, err = tx.Get(users, id)
		}
		return err
	}
}

// onRowLocks runs a test on the databases that lock rows, with and without the outbox, and
// with units that are recorded and that are open.
func onRowLocks(t *testing.T, test func(t *testing.T, db enginetest.Database, options *perdure.Options, open bool)) {
	t.Helper()
	for _, outbox := range []bool{false, true} {
		for _, open := range []bool{false, true} {
			t.Run(fmt.Sprintf("Outbox=%v/Open=%v", outbox, open), func(t *testing.T) {
				t.Parallel()
				onServers(t, func(t *testing.T, db enginetest.Database) {
					test(t, db, &perdure.Options{Schemas: []*schema.Schema{blog}, Outbox: outbox, Timeout: enginetest.Patience}, open)
				})
			})
		}
	}
}

// A row that another program has locked holds up only the units that need it. They are
// committed when it is free.
func TestALockedRowHoldsUpOnlyTheUnitsThatNeedIt(t *testing.T) {
	t.Parallel()
	onRowLocks(t, func(t *testing.T, db enginetest.Database, options *perdure.Options, open bool) {
		eng := db.Open(t, options)
		createUser(t, eng, "locked")
		release := lockUser(t, db, "locked")
		const blocked, rounds, width = 40, 4, 8
		outcomes := make(chan error, blocked)
		begun := make(chan struct{}, blocked)
		for range blocked {
			go func() {
				begin := sync.OnceFunc(func() { begun <- struct{}{} })
				outcomes <- eng.Update(context.Background(), func(tx *perdure.Tx) error {
					begin()
					return addPoint("locked", open)(tx)
				})
			}()
		}
		for range blocked {
			<-begun
		}
		for round := range rounds {
			var all sync.WaitGroup
			for i := range width {
				all.Go(func() {
					if err := eng.Update(enginetest.Context(t), unitWith(fmt.Sprint("free", round, "-", i), open)); err != nil {
						t.Errorf("a unit that needs no locked row: %v", err)
					}
				})
			}
			all.Wait()
		}
		select {
		case err := <-outcomes:
			t.Fatalf("a unit that needs the locked row has ended: %v", err)
		default:
		}
		release()
		for range blocked {
			enginetest.NoError(t, <-outcomes)
		}
		if n := db.Rows(t, "blog", "users"); n != 1+rounds*width {
			t.Errorf("there are %d rows", n)
		}
		if options.Outbox {
			if n := db.Counter(t); n != 1+rounds*width+blocked {
				t.Errorf("the counter is at %d", n)
			}
			sound(t, eng)
		}
	})
}

// A caller whose row is locked returns when its context ends, while the row is still locked.
// The error tells why, and nothing was written.
func TestACallerOfALockedRowReturnsWithItsContext(t *testing.T) {
	t.Parallel()
	onRowLocks(t, func(t *testing.T, db enginetest.Database, options *perdure.Options, open bool) {
		eng := db.Open(t, options)
		createUser(t, eng, "locked")
		release := lockUser(t, db, "locked")
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
				defer cancel()
				err := eng.Update(ctx, addPoint("locked", open))
				if locked := enginetest.As[*fault.Locked](t, err); locked.Lock != "row" {
					t.Errorf("the error is %v", err)
				}
				enginetest.Is(t, err, context.DeadlineExceeded)
			})
		}
		all.Wait()
		release()
		if row := get(t, eng, users, "locked"); row.Int("points") != 1000 {
			t.Errorf("a unit whose caller has left was written: %v", row.Values())
		}
		update(t, eng, addPoint("locked", open))
	})
}

// The timeout bounds the caller, not each attempt.
func TestTheTimeoutBoundsTheWaitForALockedRow(t *testing.T) {
	t.Parallel()
	onRowLocks(t, func(t *testing.T, db enginetest.Database, options *perdure.Options, open bool) {
		options.Timeout = 2 * time.Second
		eng := db.Open(t, options)
		createUser(t, eng, "locked")
		defer lockUser(t, db, "locked")()
		enginetest.As[*fault.Locked](t, eng.Update(context.Background(), addPoint("locked", open)))
	})
}

// A caller that leaves while its group is being committed takes only its own unit with it.
func (Conformance) CallersLeaveWithoutTheirGroup(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	const n = 200
	var all sync.WaitGroup
	committed := make([]bool, n)
	for i := range n {
		all.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if i%2 == 0 {
				go cancel()
			}
			err := eng.Update(ctx, unitWith(fmt.Sprint("u", i), false))
			switch {
			case err == nil:
				committed[i] = true
			case i%2 == 1 || !errors.Is(err, context.Canceled):
				t.Errorf("unit %d: %v", i, err)
			}
		})
	}
	all.Wait()
	want := int64(1)
	for _, ok := range committed {
		if ok {
			want++
		}
	}
	if got := db.Rows(t, "blog", "users"); got != want {
		t.Errorf("there are %d rows, want %d", got, want)
	}
	sound(t, eng)
}

// SQLite has one writer: a transaction of another process holds up all writers. They return
// with their contexts, and the error tells why.
func TestAWriterOfAnotherProcessHoldsUpSQLiteUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} {
		t.Run(fmt.Sprintf("Open=%v", open), func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, enginetest.SQLite)
			eng := openBlog(t, db)
			createUser(t, eng, "ann")
			release := lockUser(t, db, "ann")
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
					defer cancel()
					err := eng.Update(ctx, addPoint("ann", open))
					if locked := enginetest.As[*fault.Locked](t, err); locked.Lock != "database" {
						t.Errorf("the error is %v", err)
					}
					enginetest.Is(t, err, context.DeadlineExceeded)
				})
			}
			all.Wait()
			release()
			update(t, eng, addPoint("ann", open))
		})
	}
}

// A unit inside an open unit would wait for itself.
func TestAUnitInsideAnOpenUnitIsAnErrorOnSQLite(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.SQLite)
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	for _, open := range []bool{false, true} {
		var inner error
		update(t, eng, func(tx *perdure.Tx) error {
			if err := addPoint("ann", true)(tx); err != nil {
				return err
			}
			inner = eng.Update(context.Background(), addPoint("ann", open))
			return nil
		})
		enginetest.As[*fault.Invalid](t, inner)
	}
	update(t, eng, func(tx *perdure.Tx) error { // the outer unit is not open
		if err := tx.Update(users, "ann", schema.Values{"points": 2}); err != nil {
			return err
		}
		return eng.Update(context.Background(), addPoint("ann", true))
	})
	sound(t, eng)
}
