package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

// disturb changes a row from outside the unit that is being tested.
func disturb(t testing.TB, eng *perdure.Engine, id string) {
	t.Helper()
	update(t, eng, func(tx *perdure.Tx) error { return tx.Update(users, id, schema.Values{"points": 1000}) })
}

func (Conformance) AConflictRunsTheUnitAgainWithAFreshRead(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	for name, change := range map[string]func(*perdure.Tx, *schema.Row) error{
		"UpdateRow": func(tx *perdure.Tx, row *schema.Row) error {
			return tx.UpdateRow(row, schema.Values{"points": row.Int("points") + 1})
		},
		"DeleteRow": func(tx *perdure.Tx, row *schema.Row) error { return tx.DeleteRow(row) },
		"CheckRow": func(tx *perdure.Tx, row *schema.Row) error {
			_ = tx.CheckRow(row)
			_, err := tx.Create(users, schema.Values{"name": "beside " + row.ID})
			return err
		},
	} {
		createUser(t, eng, name)
		var seen []int64
		update(t, eng, func(tx *perdure.Tx) error {
			row, err := tx.Get(users, name)
			if err != nil {
				return err
			}
			seen = append(seen, row.Version)
			if len(seen) == 1 {
				disturb(t, eng, name)
			}
			return change(tx, row)
		})
		if len(seen) != 2 || seen[0] != 0 || seen[1] != 1 {
			t.Errorf("%s: versions that the runs saw are %v, want [0 1]", name, seen)
		}
	}
	if points := get(t, eng, users, "UpdateRow").Int("points"); points != 1001 {
		t.Errorf("points are %d: an update was lost", points)
	}
	sound(t, eng)
}

func (Conformance) ConflictsInAnOpenTransactionRunTheUnitAgain(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	runs := 0
	update(t, eng, func(tx *perdure.Tx) error {
		runs++
		row, err := tx.Get(users, "ann")
		if err != nil {
			return err
		}
		if runs == 1 {
			disturb(t, eng, "ann")
		}
		_ = tx.UpdateRow(row, schema.Values{"points": row.Int("points") + 1})
		_, err = tx.Get(users, "ann") // applies the update, and meets the conflict here
		return err
	})
	if points := get(t, eng, users, "ann").Int("points"); runs != 2 || points != 1001 {
		t.Errorf("after %d runs there are %d points", runs, points)
	}
}

func (Conformance) ReRunsEndWithMaxAttempts(t *testing.T, db enginetest.Database) {
	options := withOutbox()
	options.MaxAttempts = 3
	eng := db.Open(t, options)
	other := openBlog(t, db)
	createUser(t, eng, "ann")
	runs := 0
	err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
		runs++
		row, err := tx.Get(users, "ann")
		if err != nil {
			return err
		}
		disturb(t, other, "ann")
		return tx.UpdateRow(row, schema.Values{"points": 1})
	})
	conflict := enginetest.As[*fault.Conflict](t, err)
	if runs != 3 || conflict.Kind != "users" || conflict.ID != "ann" || conflict.Version != 2 {
		t.Errorf("after %d runs: %+v", runs, conflict)
	}
	if row := get(t, eng, users, "ann"); row.Int("points") != 1000 || row.Version != 3 {
		t.Errorf("the row is at version %d with %d points", row.Version, row.Int("points"))
	}
	sound(t, eng)
}

func (Conformance) AUnitThatDidNotReadIsNotRunAgain(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	old := get(t, eng, users, "ann")
	disturb(t, eng, "ann")
	for _, change := range []func(*perdure.Tx) error{
		func(tx *perdure.Tx) error { return tx.UpdateRow(old, schema.Values{"points": 1}) },
		func(tx *perdure.Tx) error { return tx.DeleteRow(old) },
		func(tx *perdure.Tx) error { return tx.CheckRow(old) },
		func(tx *perdure.Tx) error { return tx.Check(users, "ann", 7) },
	} {
		db.Unchanged(t, func() {
			runs := 0
			err := eng.Update(t.Context(), func(tx *perdure.Tx) error { runs++; return change(tx) })
			enginetest.As[*fault.Conflict](t, err)
			if runs != 1 {
				t.Errorf("there were %d runs", runs)
			}
		})
	}
}

func (Conformance) ConcurrentIncrementsLoseNothing(t *testing.T, db enginetest.Database) {
	const writers = 16
	each := 20 * int64(enginetest.Soak())
	options := withOutbox()
	options.MaxAttempts = 10_000
	eng := db.Open(t, options)
	createUser(t, eng, "ann")
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				err := eng.Update(context.Background(), func(tx *perdure.Tx) error {
					row, err := tx.Get(users, "ann")
					if err != nil {
						return err
					}
					return tx.UpdateRow(row, schema.Values{"points": row.Int("points") + 1})
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	row := get(t, eng, users, "ann")
	if row.Int("points") != writers*each || row.Version != writers*each {
		t.Errorf("points are %d at version %d, want %d", row.Int("points"), row.Version, writers*each)
	}
	if n := db.Counter(t); n != writers*each+1 {
		t.Errorf("the counter is at %d", n)
	}
	sound(t, eng)
}

// ACheckedRowStaysUntilCommit: between the check and the commit nobody changes
// the row.
func (Conformance) ACheckedRowStaysUntilCommit(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	other := openBlog(t, db)
	createUser(t, eng, "ann")
	changed := make(chan error, 1)
	update(t, eng, func(tx *perdure.Tx) error {
		row, err := tx.Get(users, "ann")
		if err != nil {
			return err
		}
		_ = tx.CheckRow(row)
		if _, err := tx.Get(users, "ann"); err != nil { // applies the check
			return err
		}
		go func() {
			changed <- other.Update(context.Background(), func(tx *perdure.Tx) error {
				return tx.Update(users, "ann", schema.Values{"points": 5})
			})
		}()
		select {
		case err := <-changed:
			t.Errorf("the checked row was changed before the commit (%v)", err)
		case <-time.After(300 * time.Millisecond): // it waits
		}
		return nil
	})
	enginetest.NoError(t, <-changed)
	if points := get(t, eng, users, "ann").Int("points"); points != 5 {
		t.Errorf("points are %d", points)
	}
}

func (Conformance) ChangesOfMissingRowsAreErrors(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "gone")
	gone := get(t, eng, users, "gone")
	update(t, eng, func(tx *perdure.Tx) error { return tx.Delete(users, "gone") })
	refuse := func(change func(*perdure.Tx) error) (err error) {
		db.Unchanged(t, func() {
			err = eng.Update(t.Context(), func(tx *perdure.Tx) error {
				_, _ = tx.Create(users, schema.Values{"name": "beside"})
				_ = change(tx)
				_, _ = tx.Create(users, schema.Values{"name": "after"})
				return nil
			})
		})
		return err
	}
	for _, change := range []func(*perdure.Tx) error{
		func(tx *perdure.Tx) error { return tx.Update(users, "gone", schema.Values{"points": 1}) },
		func(tx *perdure.Tx) error { return tx.Delete(users, "gone") },
	} {
		if e := enginetest.As[*fault.NotFound](t, refuse(change)); e.Kind != "users" || e.ID != "gone" {
			t.Errorf("the error is %+v", e)
		}
	}
	for _, change := range []func(*perdure.Tx) error{
		func(tx *perdure.Tx) error { return tx.UpdateRow(gone, schema.Values{"points": 1}) },
		func(tx *perdure.Tx) error { return tx.DeleteRow(gone) },
		func(tx *perdure.Tx) error { return tx.CheckRow(gone) },
		func(tx *perdure.Tx) error { return tx.Check(users, "never", 0) },
	} {
		enginetest.As[*fault.Conflict](t, refuse(change))
	}
}
