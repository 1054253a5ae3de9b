package engine_test

import (
	"context"
	"sync"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

func (Conformance) AfterAnSQLErrorNothingMoreReachesTheDatabase(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	table := db.Table("blog", "users")
	db.Unchanged(t, func() {
		var first error
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_, _ = tx.Exec("delete from " + table)
			_, first = tx.Exec("this is no SQL")
			if first == nil {
				t.Error("nonsense was accepted")
			}
			// If these reached the connection, some databases would run them
			// in a transaction of their own.
			n, err := tx.Exec("delete from " + table)
			if n != 0 || err != first { //nolint:errorlint // the very same error
				t.Errorf("exec after the error: %d rows, %v", n, err)
			}
			_, creating := tx.Create(users, schema.Values{"name": "Bob"})
			_, getting := tx.Get(users, "ann")
			_, finding := tx.Find(users, nil)
			_, querying := tx.Query("select 1")
			for _, err := range []error{
				creating, getting, finding, querying,
				tx.Update(users, "ann", schema.Values{"points": 1}), tx.Delete(users, "ann"), tx.Check(users, "ann", 0),
			} {
				if err != first { //nolint:errorlint // the very same error
					t.Errorf("after the error a method returns %v", err)
				}
			}
			return nil
		})
		enginetest.Is(t, err, first)
	})
	createUser(t, eng, "after") // on the same connections
}

func (Conformance) AHiddenErrorFailsTheUnitAllTheSame(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	db.Unchanged(t, func() {
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			id, _ := tx.Create(users, schema.Values{"name": "Bob"})
			_, _ = tx.Get(users, id)
			_, _ = tx.Create(users, schema.Values{"name": "name of ann"}) // taken
			_, _ = tx.Get(users, id)                                      // applies it, and fails
			_, _ = tx.Create(users, schema.Values{"name": "Cid"})
			return nil
		})
		enginetest.As[*fault.Duplicate](t, err)
		err = eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_, _ = tx.Create(users, schema.Values{"name": "Bob"})
			_ = tx.Update(users, "ann", schema.Values{"nonsense": 1})
			return nil
		})
		enginetest.As[*fault.Invalid](t, err)
	})
}

func (Conformance) AWrongAccessToARowFailsTheUnit(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	db.Unchanged(t, func() {
		for _, access := range []func(*schema.Row){
			func(row *schema.Row) { row.Int("pionts") },
			func(row *schema.Row) { row.String("points") },
			func(row *schema.Row) { row.IsNull("nothing") },
		} {
			err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
				row, err := tx.Get(users, "ann")
				if err != nil {
					return err
				}
				access(row)
				_ = tx.UpdateRow(row, schema.Values{"points": 1})
				return nil
			})
			enginetest.As[*fault.Invalid](t, err)
		}
	})
}

func (Conformance) AMissingRowDoesNotPoison(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	for _, prepare := range []func(*perdure.Tx){
		func(*perdure.Tx) {},
		func(tx *perdure.Tx) { _, _ = tx.Create(users, schema.Values{"name": tx.ID()}) }, // reads in the open transaction
	} {
		update(t, eng, func(tx *perdure.Tx) error {
			prepare(tx)
			_, err := tx.Get(users, "nobody")
			if missing := enginetest.As[*fault.NotFound](t, err); missing.Kind != "users" || missing.ID != "nobody" {
				t.Errorf("missing is %+v", missing)
			}
			_, err = tx.Create(users, schema.Values{"name": "after " + tx.ID()})
			return err
		})
	}
	if n := db.Rows(t, "blog", "users"); n != 3 {
		t.Errorf("there are %d rows, want 3", n)
	}
}

// ADeadlockIsRunAgainWhole: after a deadlock MySQL has rolled back already, and
// a statement that followed would be committed by itself.
func (Conformance) ADeadlockIsRunAgainWhole(t *testing.T, db enginetest.Database) {
	if db.Name == enginetest.SQLite {
		return // it has one writer and so no deadlocks
	}
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	createUser(t, eng, "bob")
	table := db.Table("blog", "users")
	add := db.Dialect().Rebind("update " + table + " set points = points + 1 where id = ?")
	var meet sync.WaitGroup
	meet.Add(2)
	var runs [2]int
	unit := func(i int, first, second string) error {
		return eng.Update(context.Background(), func(tx *perdure.Tx) error {
			runs[i]++
			_, _ = tx.Exec(add, first)
			if runs[i] == 1 {
				meet.Done()
				meet.Wait() // both hold their first lock
			}
			_, _ = tx.Exec(add, second)
			_, err := tx.Create(users, schema.Values{"id": first + second, "name": first + second})
			return err
		})
	}
	errs := make(chan error, 2)
	go func() { errs <- unit(0, "ann", "bob") }()
	go func() { errs <- unit(1, "bob", "ann") }()
	enginetest.NoError(t, <-errs)
	enginetest.NoError(t, <-errs)
	if runs[0]+runs[1] < 3 {
		t.Errorf("runs are %v: there was no deadlock", runs)
	}
	for _, id := range []string{"ann", "bob"} {
		if points := get(t, eng, users, id).Int("points"); points != 2 {
			t.Errorf("%s has %d points, want 2: each unit once and whole", id, points)
		}
	}
	if n := db.Rows(t, "blog", "users"); n != 4 {
		t.Errorf("there are %d rows, want 4", n)
	}
}

// WithoutTheOutboxsTablesNothingIsWritten: an outbox that cannot be written is
// never left out.
func (Conformance) WithoutTheOutboxsTablesNothingIsWritten(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	cascade := ""
	if db.Name == enginetest.Postgres {
		cascade = " cascade" // views depend on the table
	}
	for _, table := range []string{"outbox", "outbox_clock"} {
		db.Exec(t, "drop table "+db.Table("perdure", table)+cascade)
		for _, open := range []bool{false, true} {
			if err := eng.Update(t.Context(), unitWith("bob", open)); err == nil {
				t.Errorf("without %s a unit was committed", table)
			}
		}
	}
	if n := db.Rows(t, "blog", "users"); n != 1 {
		t.Errorf("there are %d rows, want 1", n)
	}
}
