package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

// Native has a case for each promise about the transaction that the application gets.
type Native struct {
	open func(db enginetest.Database, t testing.TB, options *perdure.Options) *perdure.Engine
}

func TestNative(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(enginetest.Database, testing.TB, *perdure.Options) *perdure.Engine{
		"Open": enginetest.Database.Open, "OpenPgx": enginetest.Database.OpenPool, "OpenSQL": enginetest.Database.OpenSQL,
	} {
		t.Run(name, func(t *testing.T) {
			databases := enginetest.Names
			if name == "OpenPgx" {
				databases = []string{enginetest.Postgres}
			}
			enginetest.Conform(t, Native{open: open}, databases...)
		})
	}
}

// start opens an engine and creates a table of the application.
func (n Native) start(t *testing.T, db enginetest.Database) *perdure.Engine {
	t.Helper()
	eng := n.open(db, t, withOutbox())
	db.Exec(t, "create table notes (id integer primary key, note varchar(20))")
	createUser(t, eng, "ann")
	return eng
}

// own returns the transaction of a unit, or ends the test.
func own(t testing.TB, tx *perdure.Tx) *sql.Tx {
	t.Helper()
	stx, err := tx.SQL()
	enginetest.NoError(t, err)
	return stx
}

// note writes a row of the application.
func note(db enginetest.Database, stx *sql.Tx, id int) error {
	_, err := stx.ExecContext(context.Background(), db.Dialect().Rebind("insert into notes (id, note) values (?, ?)"), id, "x")
	return err
}

func countUsers(t testing.TB, db enginetest.Database, stx *sql.Tx) (n int) {
	t.Helper()
	enginetest.NoError(t, stx.QueryRowContext(context.Background(), "select count(*) from "+db.Table("blog", "users")).Scan(&n))
	return n
}

func notes(t testing.TB, db enginetest.Database) int64 {
	t.Helper()
	return db.Int(t, "select count(*) from notes")
}

func (n Native) ChangesAndStatementsRunInOrderAndCommitTogether(t *testing.T, db enginetest.Database) {
	eng := n.start(t, db)
	update(t, eng, func(tx *perdure.Tx) error {
		_, _ = tx.Create(users, schema.Values{"id": "bob", "name": "bob"})
		stx := own(t, tx)
		if got := countUsers(t, db, stx); got != 2 {
			t.Errorf("the transaction has %d users, want 2", got)
		}
		_, _ = tx.Create(users, schema.Values{"id": "cid", "name": "cid"})
		if got := countUsers(t, db, stx); got != 3 {
			t.Errorf("the transaction has %d users, want 3", got)
		}
		prepared, err := stx.PrepareContext(t.Context(), "select count(*) from notes")
		enginetest.NoError(t, err)
		_, _ = tx.Create(users, schema.Values{"id": "dan", "name": "dan"})
		enginetest.NoError(t, note(db, stx, 1))
		var written int
		enginetest.NoError(t, prepared.QueryRowContext(t.Context()).Scan(&written))
		if written != 1 {
			t.Errorf("the prepared statement found %d notes", written)
		}
		return nil
	})
	all := entries(t, eng)
	if got := len(all[len(all)-1].Payload.Mutations); got != 3 {
		t.Errorf("the entry has %d mutations, want 3", got)
	}
	if got := notes(t, db); got != 1 {
		t.Errorf("%d notes are committed", got)
	}
	sound(t, eng)
}

func (n Native) AnErrorOfTheFunctionRollsBack(t *testing.T, db enginetest.Database) {
	eng := n.start(t, db)
	mine := errors.New("mine")
	db.Unchanged(t, func() {
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_, _ = tx.Create(users, schema.Values{"name": "bob"})
			enginetest.NoError(t, note(db, own(t, tx), 1))
			return mine
		})
		enginetest.Is(t, err, mine)
	})
}

func (n Native) OnlyTheEngineCommits(t *testing.T, db enginetest.Database) {
	eng := n.start(t, db)
	for name, end := range map[string]func(stx *sql.Tx) error{
		"Commit":   (*sql.Tx).Commit,
		"Rollback": (*sql.Tx).Rollback,
		"COMMIT":   func(stx *sql.Tx) error { _, err := stx.ExecContext(t.Context(), " /* so */ COMMIT"); return err },
		"ROLLBACK": func(stx *sql.Tx) error { _, err := stx.ExecContext(t.Context(), "rollback"); return err },
	} {
		db.Unchanged(t, func() {
			err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
				_, _ = tx.Create(users, schema.Values{"name": "bob"})
				stx := own(t, tx)
				enginetest.NoError(t, note(db, stx, 1))
				enginetest.Is(t, end(stx), fault.ErrEngineCommits)
				return nil
			})
			if !errors.Is(err, fault.ErrEngineCommits) {
				t.Errorf("%s: the unit ended with %v", name, err)
			}
		})
	}
	for name, end := range map[string]func(tx *perdure.Tx) error{
		"Exec":  func(tx *perdure.Tx) error { _, err := tx.Exec("commit"); return err },
		"Query": func(tx *perdure.Tx) error { _, err := tx.Query("commit"); return err }, //nolint:rowserrcheck,sqlclosecheck // there are no rows
	} {
		db.Unchanged(t, func() {
			err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
				_, _ = tx.Create(users, schema.Values{"name": "bob"})
				return end(tx)
			})
			if !errors.Is(err, fault.ErrEngineCommits) {
				t.Errorf("Tx.%s: the unit ended with %v", name, err)
			}
		})
	}
}

func (n Native) AnErrorOfAStatementFailsTheUnit(t *testing.T, db enginetest.Database) {
	eng := n.start(t, db)
	db.Unchanged(t, func() {
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			stx := own(t, tx)
			_, _ = tx.Create(users, schema.Values{"name": "bob"})
			enginetest.NoError(t, note(db, stx, 1))
			if note(db, stx, 1) == nil {
				t.Error("a duplicate was written")
			}
			if note(db, stx, 2) == nil {
				t.Error("a failed transaction ran a statement")
			}
			return nil // the function drops the error
		})
		enginetest.As[*fault.Duplicate](t, err)
	})
}

// A statement that database/sql refuses because the context has ended never reaches the engine. The unit must not commit
// as if the statement had run.
func (n Native) AContextThatEndedIsHonouredWhenNothingIsLeftToRun(t *testing.T, db enginetest.Database) {
	eng := n.start(t, db)
	db.Unchanged(t, func() {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := eng.Update(ctx, func(tx *perdure.Tx) error {
			stx := own(t, tx)
			exec := func(ctx context.Context, query string) error {
				_, err := stx.ExecContext(ctx, query)
				return err
			}
			enginetest.NoError(t, exec(t.Context(), "savepoint sp1"))
			_, _ = tx.Create(users, schema.Values{"id": "bob", "name": "bob"})
			enginetest.NoError(t, note(db, stx, 1)) // applies the change
			cancel()
			if exec(ctx, "rollback to savepoint sp1") == nil {
				t.Error("a statement ran after its context ended")
			}
			return tx.Emit("tried", "bob", nil)
		})
		enginetest.Is(t, err, context.Canceled)
	})
}

func (n Native) ARollbackToASavepointRemovesWhatWasRecorded(t *testing.T, db enginetest.Database) {
	eng := n.start(t, db)
	update(t, eng, func(tx *perdure.Tx) error {
		_, _ = tx.Create(users, schema.Values{"id": "bob", "name": "bob"})
		stx := own(t, tx)
		exec := func(query string) {
			t.Helper()
			_, err := stx.ExecContext(t.Context(), query)
			enginetest.NoError(t, err)
		}
		exec("SAVEPOINT sp1")
		_, _ = tx.Create(users, schema.Values{"id": "cid", "name": "cid"})
		enginetest.NoError(t, note(db, stx, 1)) // applies the change
		_, _ = tx.Create(users, schema.Values{"id": "dan", "name": "dan"})
		if note(db, stx, 1) == nil {
			t.Error("a duplicate was written")
		}
		_, _ = tx.Create(users, schema.Values{"id": "eve", "name": "eve"}) // not applied yet
		exec("ROLLBACK TO SAVEPOINT sp1")
		exec("RELEASE SAVEPOINT sp1")
		exec("SAVEPOINT sp2")
		_, _ = tx.Create(users, schema.Values{"id": "fay", "name": "fay"})
		exec("RELEASE SAVEPOINT sp2")
		return note(db, stx, 2)
	})
	if got := db.Rows(t, "blog", "users"); got != 3 { // ann, bob, fay
		t.Errorf("%d users are committed, want 3", got)
	}
	all := entries(t, eng)
	if got := len(all[len(all)-1].Payload.Mutations); got != 2 {
		t.Errorf("the entry has %d mutations, want 2", got)
	}
	sound(t, eng)
}

func (n Native) AConflictRunsTheFunctionAgain(t *testing.T, db enginetest.Database) {
	eng := n.start(t, db)
	runs := 0
	update(t, eng, func(tx *perdure.Tx) error {
		runs++
		ann, err := tx.Get(users, "ann")
		if err != nil {
			return err
		}
		if runs == 1 {
			update(t, eng, func(tx *perdure.Tx) error { return tx.Update(users, "ann", schema.Values{"points": 5}) })
		}
		stx := own(t, tx)
		if err := note(db, stx, 1); err != nil {
			return err
		}
		return tx.UpdateRow(ann, schema.Values{"points": ann.Int("points") + 1})
	})
	if got := get(t, eng, users, "ann").Int("points"); got != 6 || runs != 2 {
		t.Errorf("after %d runs there are %d points", runs, got)
	}
	if got := notes(t, db); got != 1 {
		t.Errorf("%d notes are committed", got)
	}
	sound(t, eng)
}

func (n Native) RowsThatAreLeftOpenAreClosed(t *testing.T, db enginetest.Database) {
	eng := n.start(t, db)
	createUser(t, eng, "bob")
	update(t, eng, func(tx *perdure.Tx) error {
		rows, err := own(t, tx).QueryContext(t.Context(), "select id from "+db.Table("blog", "users")) //nolint:rowserrcheck,sqlclosecheck // that is the test
		if err != nil || !rows.Next() {
			t.Errorf("no rows: %v", err)
		}
		_, err = tx.Create(users, schema.Values{"id": "cid", "name": "cid"})
		return err
	})
	if got := db.Rows(t, "blog", "users"); got != 3 {
		t.Errorf("%d users are committed", got)
	}
}

func (n Native) AStatementClosesTheRowsOfTheTx(t *testing.T, db enginetest.Database) {
	eng := n.start(t, db)
	update(t, eng, func(tx *perdure.Tx) error {
		stx := own(t, tx)
		rows, err := tx.Query("select id from " + db.Table("blog", "users")) //nolint:rowserrcheck,sqlclosecheck // that is the test
		if err != nil || !rows.Next() {
			t.Errorf("no rows: %v", err)
		}
		return note(db, stx, 1)
	})
	if got := notes(t, db); got != 1 {
		t.Errorf("%d notes are committed", got)
	}
}

func (n Native) UseAfterTheUnitIsAnError(t *testing.T, db enginetest.Database) {
	eng := n.start(t, db)
	var stx *sql.Tx
	var late sync.WaitGroup
	started := make(chan struct{})
	update(t, eng, func(tx *perdure.Tx) error {
		stx = own(t, tx)
		late.Go(func() { // it does not end with the function
			close(started)
			for i := 100; ; i++ {
				if err := note(db, stx, i); err != nil {
					if !errors.Is(err, sql.ErrTxDone) {
						t.Errorf("late use: %v", err)
					}
					return
				}
			}
		})
		<-started
		return nil
	})
	late.Wait()
	enginetest.Is(t, note(db, stx, 1), sql.ErrTxDone)
	enginetest.Is(t, stx.Commit(), sql.ErrTxDone)
}

func (n Native) AViewHasItsSnapshot(t *testing.T, db enginetest.Database) {
	eng := n.start(t, db)
	enginetest.NoError(t, eng.View(t.Context(), func(tx *perdure.Tx) error {
		stx := own(t, tx)
		before := countUsers(t, db, stx)
		createUser(t, eng, "bob")
		if after := countUsers(t, db, stx); before != 1 || after != 1 {
			t.Errorf("the snapshot has %d users, then %d", before, after)
		}
		return nil
	}))
	db.Unchanged(t, func() {
		_ = eng.View(t.Context(), func(tx *perdure.Tx) error { return note(db, own(t, tx), 1) })
	})
}

func (n Native) ALockedRowIsWaitedForInSeveralRuns(t *testing.T, db enginetest.Database) {
	if db.Name == enginetest.SQLite {
		t.Skip("SQLite has no row locks")
	}
	eng := n.start(t, db)
	release := lockUser(t, db, "ann")
	runs := 0
	update(t, eng, func(tx *perdure.Tx) error {
		if runs++; runs == 2 {
			release()
		}
		stx := own(t, tx)
		if err := note(db, stx, 1); err != nil {
			return err
		}
		_, err := stx.ExecContext(t.Context(), "update "+db.Table("blog", "users")+" set points = points + 1 where id = 'ann'")
		return err
	})
	if got := get(t, eng, users, "ann").Int("points"); got != 1001 || runs < 2 {
		t.Errorf("after %d runs there are %d points", runs, got)
	}
}
