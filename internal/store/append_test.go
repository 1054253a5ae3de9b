package store

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

func drafts(units ...string) []Draft {
	var all []Draft
	for _, u := range units {
		nonce := fmt.Sprintf("%020x", len(u)+0xabcdef)
		all = append(all, Draft{Unit: u, Nonce: nonce, Payload: `{"a": "` + nonce + `0000", "b": "` + nonce + `0001"}`})
	}
	return all
}

// appendTo begins a transaction in which the drafts are appended.
func appendTo(t *testing.T, db sqldb.DB, st *Store, units ...string) (sqldb.Tx, error) {
	t.Helper()
	tx, err := db.Begin(t.Context(), sqldb.Write)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tx.Rollback)
	return tx, tx.Run(t.Context(), st.Append(drafts(units...), time.Now()))
}

// listed returns the entries as "stamp unit", and checks that the stamp has
// come into the payload.
func listed(t *testing.T, db sqldb.DB, st *Store) string {
	t.Helper()
	tx, err := db.Begin(t.Context(), sqldb.Read)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var all []string
	err = tx.Run(t.Context(), st.ListEntries(make([]byte, 12), 100, func(e Entry) error {
		hex := fmt.Sprintf("%x", e.Stamp)
		all = append(all, hex+" "+e.Unit)
		if want := `{"a": "` + hex + `", "b": "` + hex[:20] + `0001"}`; e.Payload != want {
			t.Errorf("payload is %s, want %s", e.Payload, want)
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, ", ")
}

func TestAppendGivesNumbersInOrderOfCommit(t *testing.T) {
	t.Parallel()
	db, st := migrated(t, sqldb.Postgres)
	first, err := appendTo(t, db, st, "a", "bb")
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		tx, err := appendTo(t, db, st, "ccc")
		if err == nil {
			err = tx.Commit(t.Context())
		}
		waiting <- err
	}()
	select {
	case err := <-waiting:
		t.Fatalf("the second did not wait for the first: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Fatal(err)
	}
	if got, want := listed(t, db, st), "000000000000000000010000 a, 000000000000000000020000 bb, 000000000000000000030000 ccc"; got != want {
		t.Errorf("got %s", got)
	}
}

func TestAppendTakesBackTheNumbersOfARollback(t *testing.T) {
	t.Parallel()
	db, st := migrated(t, sqldb.Postgres)
	lost, err := appendTo(t, db, st, "lost", "losts")
	if err != nil {
		t.Fatal(err)
	}
	lost.Rollback()
	if clock, err := reserve(t, db, st, 1, true); err != nil || clock.Counter != 1 { // the other way to reserve
		t.Fatal(clock, err)
	}
	kept, err := appendTo(t, db, st, "kept")
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := listed(t, db, st), "000000000000000000020000 kept"; got != want {
		t.Errorf("got %s", got)
	}
}

// An entry without a number must never be committed: COMMIT is already on its
// way when the statement runs.
func TestAppendFailsWithoutNumbers(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]string{
		"used up":    fmt.Sprintf("update perdure.outbox_clock set counter = %d", int64(math.MaxInt64)-1),
		"no counter": "delete from perdure.outbox_clock",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, st := migrated(t, sqldb.Postgres)
			err := db.Exclusively(t.Context(), func(run sqldb.Runner) error { return run.Run(t.Context(), sqldb.Exec(spoil)) })
			if err != nil {
				t.Fatal(err)
			}
			tx, err := db.Begin(t.Context(), sqldb.Write)
			if err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(t.Context(), st.Append(drafts("a", "bb"), time.Now())); err == nil {
				t.Error("it was committed")
			}
			if got := listed(t, db, st); got != "" {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestAppendUsesTheIncarnation(t *testing.T) {
	t.Parallel()
	db, st := migrated(t, sqldb.Postgres)
	err := db.Exclusively(t.Context(), func(run sqldb.Runner) error {
		return run.Run(t.Context(), sqldb.Exec("update perdure.outbox_clock set incarnation = 65535, counter = 255"))
	})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := appendTo(t, db, st, "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := listed(t, db, st), "ffff00000000000001000000 a"; got != want {
		t.Errorf("got %s", got)
	}
}
