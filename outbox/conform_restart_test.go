package outbox_test

import (
	"math"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

func restart(t testing.TB, eng *perdure.Engine) outbox.Incarnation {
	t.Helper()
	life, err := eng.Outbox().Restart(enginetest.Context(t), "restored from a backup")
	enginetest.NoError(t, err)
	return life
}

// restore puts the database back to the moment of an entry, as a backup does.
// The rows have the numbers of their entries as names.
func restore(t testing.TB, db enginetest.Database, to outbox.Stamp) {
	t.Helper()
	db.Exec(t, "delete from "+db.Table("perdure", "outbox")+" where versionstamp > ?", to[:])
	db.Exec(t, "update "+db.Table("perdure", "outbox_clock")+" set counter = ?", int64(to.Counter()))
	db.Exec(t, "delete from "+db.Table("blog", "users")+" where points > ?", int64(to.Counter()))
}

// numbered commits units whose rows know the number of their entry.
func numbered(t testing.TB, eng *perdure.Engine, prefix string, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		commit(t, eng, func(tx *perdure.Tx) error {
			_, err := tx.Create(users, schema.Values{"name": prefix, "points": i})
			return err
		})
	}
}

func (Conformance) ANewIncarnationIsAfterEverythingThatWasLost(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	numbered(t, eng, "first life", 1, 5)
	lost := list(t, eng, at(3))
	mirror := register(t, eng, "mirror", at(5)) // it has seen what will be lost
	restore(t, db, at(3))

	_, err := eng.Outbox().List(t.Context(), at(5), 0) // even before the operator acts
	if e := enginetest.As[*outbox.DivergedError](t, err); e.Common != at(3) || e.Cursor != at(5) {
		t.Errorf("the error is %+v", e)
	}
	life := restart(t, eng)
	if life.Number != 1 || life.After != at(3) || life.Reason != "restored from a backup" || life.Created.IsZero() {
		t.Errorf("the incarnation is %+v", life)
	}
	numbered(t, eng, "second life", 1, 4)
	entries := list(t, eng, at(3))
	if len(entries) != 4 || entries[0].Stamp != outbox.NewStamp(1, 1, 0) {
		t.Fatalf("the new entries are %+v", entries)
	}
	if newest := lost[len(lost)-1].Stamp; entries[0].Stamp.Compare(newest) <= 0 {
		t.Errorf("%s is not after %s, which was lost", entries[0].Stamp, newest)
	}
	for _, cursor := range []outbox.Stamp{at(4), at(5), at(5).At(9), at(4_000_000)} {
		_, err := eng.Outbox().List(t.Context(), cursor, 0)
		if e := enginetest.As[*outbox.DivergedError](t, err); e.Common != at(3) {
			t.Errorf("after %s: common is %s", cursor, e.Common)
		}
	}
	for _, cursor := range []outbox.Stamp{{}, at(2), at(3), outbox.NewStamp(1, 0, 0), outbox.NewStamp(1, 4, 0)} {
		if _, err := eng.Outbox().List(t.Context(), cursor, 0); err != nil {
			t.Errorf("after %s: %v", cursor, err)
		}
	}
	for _, cursor := range []outbox.Stamp{outbox.NewStamp(1, 5, 0), outbox.NewStamp(2, 1, 0), outbox.NewStamp(65535, 1, 0)} {
		_, err := eng.Outbox().List(t.Context(), cursor, 0)
		if e := enginetest.As[*outbox.DivergedError](t, err); e.Common != outbox.NewStamp(1, 4, 0) {
			t.Errorf("after %s: common is %s", cursor, e.Common)
		}
	}
	if err := mirror.Consume(t.Context(), fast, nil); err == nil {
		t.Error("a consumer went on from a past that is gone")
	}
	enginetest.NoError(t, mirror.Reset(t.Context(), at(3)))
	verified(t, eng)
}

func (Conformance) IncarnationsWithoutEntriesAreNoProblem(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	restart(t, eng) // before the first entry
	numbered(t, eng, "x", 1, 2)
	restart(t, eng)
	life := restart(t, eng)
	if life.Number != 3 || life.After != outbox.NewStamp(2, 0, 0) {
		t.Errorf("the incarnation is %+v", life)
	}
	verified(t, eng)
	status, err := eng.Outbox().Status(t.Context())
	enginetest.NoError(t, err)
	if len(status.Incarnations) != 3 || !status.Last.IsZero() {
		t.Errorf("the status is %+v", status)
	}
	numbered(t, eng, "x", 1, 1)
	entries := list(t, eng, outbox.Stamp{})
	if len(entries) != 3 || entries[0].Stamp != outbox.NewStamp(1, 1, 0) || entries[2].Stamp != outbox.NewStamp(3, 1, 0) {
		t.Errorf("the entries are %+v", entries)
	}
	verified(t, eng)
}

// AUsedUpCounterRefusesAndANewIncarnationHelps: correction 12 of the design. A
// number is never used twice and never becomes negative.
func (Conformance) AUsedUpCounterRefusesAndANewIncarnationHelps(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	db.Exec(t, "update "+db.Table("perdure", "outbox_clock")+" set counter = ?", int64(math.MaxInt64-1))
	create(t, eng, "last")
	if entries := list(t, eng, outbox.Stamp{}); len(entries) != 1 || entries[0].Stamp != at(math.MaxInt64) {
		t.Fatalf("the last number: %+v", entries)
	}
	db.Unchanged(t, func() {
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_, err := tx.Create(users, schema.Values{"name": "too late"})
			return err
		})
		enginetest.Is(t, err, store.ErrClockExhausted)
		err = eng.Update(t.Context(), func(tx *perdure.Tx) error { // in an open transaction
			_, _ = tx.Create(users, schema.Values{"id": "x", "name": "too late"})
			_, err := tx.Get(users, "x")
			return err
		})
		enginetest.Is(t, err, store.ErrClockExhausted)
		tx, err := db.SQL(t).BeginTx(t.Context(), nil) // in a caller's transaction
		enginetest.NoError(t, err)
		err = eng.JoinSQL(t.Context(), tx, func(tx *perdure.Tx) error { return tx.Delete(users, "last") })
		enginetest.Is(t, err, store.ErrClockExhausted)
		enginetest.NoError(t, tx.Rollback())
	})
	commit(t, eng, func(tx *perdure.Tx) error { return tx.Check(users, "last", 0) }) // what needs no number still works
	restart(t, eng)
	create(t, eng, "next")
	if entries := list(t, eng, at(math.MaxInt64)); len(entries) != 1 || entries[0].Stamp != outbox.NewStamp(1, 1, 0) {
		t.Errorf("after the restart: %+v", entries)
	}
}

func (Conformance) IncarnationsEndAt16Bits(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, options())
	db.Exec(t, "update "+db.Table("perdure", "outbox_clock")+" set incarnation = 65535")
	db.Unchanged(t, func() {
		_, err := eng.Outbox().Restart(t.Context(), "once more")
		enginetest.Is(t, err, store.ErrClockExhausted)
	})
	create(t, eng, "a")
	if entries := list(t, eng, outbox.Stamp{}); entries[0].Stamp != outbox.NewStamp(65535, 1, 0) {
		t.Errorf("the entry is %s", entries[0].Stamp)
	}
}
