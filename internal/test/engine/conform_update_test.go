package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

var errMine = errors.New("my own error")

func (Conformance) UpdateCommitsWhatWasRecorded(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	var id string
	update(t, eng, func(tx *perdure.Tx) (err error) {
		id, err = tx.Create(users, schema.Values{"name": "Ann"})
		return err
	})
	row := get(t, eng, users, id)
	if row.String("name") != "Ann" || row.Int("points") != 0 || row.Version != 0 || row.ID != id {
		t.Errorf("row is %+v", row)
	}
	update(t, eng, func(tx *perdure.Tx) error { return tx.Update(users, id, schema.Values{"points": 5}) })
	if row = get(t, eng, users, id); row.Int("points") != 5 || row.Version != 1 {
		t.Errorf("after the update: points %d at version %d", row.Int("points"), row.Version)
	}
	update(t, eng, func(tx *perdure.Tx) error { return tx.Delete(users, id) })
	if n := db.Rows(t, "blog", "users"); n != 0 {
		t.Errorf("after the delete there are %d rows", n)
	}
	sound(t, eng)
}

func (Conformance) UpdateWritesNothingWhenItsFunctionFails(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	db.Unchanged(t, func() {
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_, _ = tx.Create(users, schema.Values{"name": "Ann"})
			return errMine
		})
		enginetest.Is(t, err, errMine)
		err = eng.Update(t.Context(), func(tx *perdure.Tx) error { // the same with an open transaction
			id, _ := tx.Create(users, schema.Values{"name": "Ann"})
			if _, err := tx.Get(users, id); err != nil {
				return err
			}
			return errMine
		})
		enginetest.Is(t, err, errMine)
	})
}

func (Conformance) UpdateRollsBackAndPanicsOnWhenItsFunctionPanics(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	db.Unchanged(t, func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("recovered %v, want the panic of the function", p)
			}
		}()
		_ = eng.Update(t.Context(), func(tx *perdure.Tx) error {
			id, _ := tx.Create(users, schema.Values{"name": "Ann"})
			_, _ = tx.Get(users, id) // a transaction is open
			panic("boom")
		})
	})
	createUser(t, eng, "after") // the engine still works
}

func (Conformance) UpdateWithACancelledContextWritesNothing(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	db.Unchanged(t, func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := eng.Update(ctx, func(tx *perdure.Tx) error {
			_, err := tx.Create(users, schema.Values{"name": "Ann"})
			return err
		})
		enginetest.Is(t, err, context.Canceled)

		ctx, cancel = context.WithCancel(t.Context())
		err = eng.Update(ctx, func(tx *perdure.Tx) error {
			id, _ := tx.Create(users, schema.Values{"name": "Ann"})
			_, _ = tx.Get(users, id)
			cancel()
			_, err := tx.Create(users, schema.Values{"name": "Bob"})
			return err
		})
		enginetest.Is(t, err, context.Canceled)
	})
	createUser(t, eng, "after")
}

func (Conformance) ReadsEndWithTheirContext(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	err := eng.View(ctx, func(tx *perdure.Tx) error {
		cancel()
		_, err := tx.Get(users, "ann")
		return err
	})
	enginetest.Is(t, err, context.Canceled)
}

func (Conformance) AUnitThatTakesLongerThanTheTimeoutFails(t *testing.T, db enginetest.Database) {
	options := withOutbox()
	options.Timeout = 50 * time.Millisecond
	eng := openBlog(t, db)
	slow := db.Open(t, options)
	db.Unchanged(t, func() {
		err := slow.Update(t.Context(), func(tx *perdure.Tx) error {
			_, _ = tx.Create(users, schema.Values{"name": "Ann"})
			<-tx.Context().Done()
			return nil
		})
		enginetest.Is(t, err, context.DeadlineExceeded)
	})
	createUser(t, eng, "after")
}

func (Conformance) ATxIsDeadAfterItsFunction(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	row := get(t, eng, users, "ann")
	var dead *perdure.Tx
	update(t, eng, func(tx *perdure.Tx) error { dead = tx; return nil })
	db.Unchanged(t, func() {
		_, creating := dead.Create(users, schema.Values{"name": "Bob"})
		_, getting := dead.Get(users, "ann")
		_, finding := dead.Find(users, nil)
		_, executing := dead.Exec("delete from " + db.Table("blog", "users"))
		_, querying := dead.Query("select 1")
		for _, err := range []error{
			creating, getting, finding, executing, querying,
			dead.Update(users, "ann", schema.Values{"points": 1}), dead.UpdateRow(row, schema.Values{"points": 1}),
			dead.Delete(users, "ann"), dead.DeleteRow(row), dead.Check(users, "ann", 0), dead.CheckRow(row),
		} {
			enginetest.Is(t, err, sqldb.ErrDone)
		}
	})
}

func (Conformance) AUnitKeepsItsIDWhenItIsRunAgain(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	var ids []string
	update(t, eng, func(tx *perdure.Tx) error {
		ids = append(ids, tx.ID())
		row, err := tx.Get(users, "ann")
		if err != nil {
			return err
		}
		if len(ids) < 3 { // somebody else is faster
			update(t, eng, func(tx *perdure.Tx) error { return tx.Update(users, "ann", schema.Values{"points": len(ids)}) })
		}
		return tx.UpdateRow(row, schema.Values{"points": 100})
	})
	if len(ids) != 3 || len(slices.Compact(ids)) != 1 || ids[0] == "" {
		t.Fatalf("ids of the runs are %q, want three equal ones", ids)
	}
	entry, err := eng.Outbox().Find(t.Context(), ids[0])
	enginetest.NoError(t, err)
	if entry.Unit != ids[0] || entry.Payload.Mutations[0].Set["points"] != int64(100) {
		t.Errorf("entry of the unit is %+v", entry)
	}
}

func (Conformance) AUnitReadsWhatItWrote(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	update(t, eng, func(tx *perdure.Tx) error {
		id, _ := tx.Create(users, schema.Values{"name": "Bob", "points": 7})
		row, err := tx.Get(users, id)
		if err != nil {
			return err
		}
		_ = tx.UpdateRow(row, schema.Values{"points": row.Int("points") + 1})
		_ = tx.Delete(users, "ann")
		rows, err := tx.Find(users, nil)
		if err != nil {
			return err
		}
		if len(rows) != 1 || rows[0].Int("points") != 8 || rows[0].Version != 1 {
			t.Errorf("the unit sees %+v", rows)
		}
		return nil
	})
	if list := entries(t, eng); len(list) != 2 || len(list[1].Payload.Mutations) != 3 {
		t.Errorf("the outbox has %+v", list)
	}
	sound(t, eng)
}

func (Conformance) OwnSQLIsPartOfTheUnit(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	table := db.Table("blog", "users")
	rebind := db.Dialect().Rebind
	update(t, eng, func(tx *perdure.Tx) error {
		_ = tx.Update(users, "ann", schema.Values{"points": 4})
		n, err := tx.Exec(rebind("update "+table+" set points = points * 10 where id = ?"), "ann")
		if err != nil || n != 1 {
			t.Errorf("exec: %d rows, %v", n, err)
		}
		rows, err := tx.Query(rebind("select name, points from "+table+" where id = ?"), "ann")
		if err != nil {
			return err
		}
		defer rows.Close()
		var name string
		var points int64
		for rows.Next() {
			if err := rows.Scan(&name, &points); err != nil {
				return err
			}
		}
		if name != "name of ann" || points != 40 {
			t.Errorf("query sees %q with %d points", name, points)
		}
		return rows.Err()
	})
	if row := get(t, eng, users, "ann"); row.Int("points") != 40 {
		t.Errorf("committed are %d points", row.Int("points"))
	}
	db.Unchanged(t, func() {
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			if _, err := tx.Exec("delete from " + table); err != nil {
				return err
			}
			return errMine
		})
		enginetest.Is(t, err, errMine)
	})
}

func (Conformance) RowsThatAreLeftOpenDoNotKeepAUnitFromEnding(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	for _, id := range []string{"ann", "bob", "cid"} {
		createUser(t, eng, id)
	}
	began := time.Now()
	query := func(tx *perdure.Tx) error {
		rows, err := tx.Query("select id from " + db.Table("blog", "users"))
		if err == nil {
			rows.Next() // and forget them
		}
		return err
	}
	enginetest.NoError(t, eng.View(t.Context(), query))
	err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
		if err := query(tx); err != nil {
			return err
		}
		return errMine
	})
	enginetest.Is(t, err, errMine)
	update(t, eng, query)
	update(t, eng, func(tx *perdure.Tx) error {
		if err := query(tx); err != nil {
			return err
		}
		return tx.Update(users, "ann", schema.Values{"points": 1})
	})
	if took := time.Since(began); took > enginetest.Patience {
		t.Errorf("it took %v", took)
	}
	if points := get(t, eng, users, "ann").Int("points"); points != 1 {
		t.Errorf("points are %d", points)
	}
}

func (Conformance) ViewSeesOneMomentAndRefusesChanges(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	err := eng.View(t.Context(), func(tx *perdure.Tx) error {
		if _, err := tx.Get(users, "ann"); err != nil {
			return err
		}
		createUser(t, eng, "bob")
		update(t, eng, func(tx *perdure.Tx) error { return tx.Update(users, "ann", schema.Values{"points": 9}) })
		rows, err := tx.Find(users, nil)
		if err != nil {
			return err
		}
		if len(rows) != 1 || rows[0].Int("points") != 0 {
			t.Errorf("the snapshot moved: %d rows, %d points", len(rows), rows[0].Int("points"))
		}
		return nil
	})
	enginetest.NoError(t, err)
	db.Unchanged(t, func() {
		for _, change := range []func(*perdure.Tx) error{
			func(tx *perdure.Tx) error { _, err := tx.Create(users, schema.Values{"name": "Eve"}); return err },
			func(tx *perdure.Tx) error { return tx.Delete(users, "ann") },
			func(tx *perdure.Tx) error { return tx.Check(users, "ann", 0) },
			func(tx *perdure.Tx) error { _, err := tx.Exec("delete from " + db.Table("blog", "users")); return err },
		} {
			enginetest.Is(t, eng.View(t.Context(), change), perdure.ErrReadOnly)
			err := eng.View(t.Context(), func(tx *perdure.Tx) error { _ = change(tx); return nil })
			enginetest.Is(t, err, perdure.ErrReadOnly) // though the function hides it
		}
		err := eng.View(t.Context(), func(tx *perdure.Tx) error { // past the engine's own check
			rows, err := tx.Query("delete from " + db.Table("blog", "users"))
			if err != nil {
				return err
			}
			defer rows.Close()
			rows.Next()
			return rows.Err()
		})
		if err == nil {
			t.Error("a delete in a View was accepted")
		}
	})
}

func (Conformance) CloseWaitsForUnitsAndThenRefuses(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	inside, closing := make(chan struct{}), make(chan error, 1)
	done := make(chan error, 1)
	go func() {
		done <- eng.Update(context.Background(), func(tx *perdure.Tx) error {
			close(inside)
			enginetest.Eventually(t, "close begins", func() bool {
				return errors.Is(eng.View(context.Background(), func(*perdure.Tx) error { return nil }), fault.ErrClosed)
			})
			_, err := tx.Create(users, schema.Values{"id": "ann", "name": "Ann"})
			return err
		})
	}()
	<-inside
	go func() { closing <- eng.Close() }()
	enginetest.NoError(t, <-done)
	enginetest.NoError(t, <-closing)
	enginetest.NoError(t, eng.Close())
	if n := db.Rows(t, "blog", "users"); n != 1 {
		t.Errorf("the unit that was running left %d rows", n)
	}
	nothing := func(*perdure.Tx) error { t.Error("the function ran"); return nil }
	enginetest.Is(t, eng.Update(t.Context(), nothing), fault.ErrClosed)
	enginetest.Is(t, eng.View(t.Context(), nothing), fault.ErrClosed)
	tx, err := db.SQL(t).BeginTx(t.Context(), nil)
	enginetest.NoError(t, err)
	enginetest.Is(t, eng.JoinSQL(t.Context(), tx, nothing), fault.ErrClosed)
	enginetest.NoError(t, tx.Rollback())
	_, err = eng.Outbox().List(t.Context(), [12]byte{}, 0)
	enginetest.Is(t, err, fault.ErrClosed)
}
