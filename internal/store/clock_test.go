package store

import (
	"errors"
	"math"
	"testing"

	"github.com/perdure/perdure/internal/sqldb"
)

// reserve reserves n numbers in a transaction of its own.
func reserve(t *testing.T, db sqldb.DB, st *Store, n int, commit bool) (Clock, error) {
	t.Helper()
	tx, err := db.Begin(t.Context(), sqldb.Write)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var clock Clock
	if err := tx.Run(t.Context(), st.Reserve(n, &clock)...); err != nil {
		return clock, err
	}
	if commit {
		err = tx.Commit(t.Context())
	}
	return clock, err
}

func TestReserveIsDenseAndEndsAt63Bits(t *testing.T) {
	t.Parallel()
	for _, name := range dialects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, st := migrated(t, name)
			for _, c := range []struct {
				n      int
				commit bool
				want   uint64
			}{{1, true, 1}, {1, false, 2}, {5, false, 6}, {3, true, 4}, {0, true, 4}, {1, true, 5}} {
				clock, err := reserve(t, db, st, c.n, c.commit)
				if err != nil || clock.Counter != c.want || clock.Incarnation != 0 {
					t.Errorf("reserving %d gives %+v (%v), want counter %d", c.n, clock, err, c.want)
				}
			}
			set(t, db, st, math.MaxInt64-2)
			if clock, err := reserve(t, db, st, 2, true); err != nil || clock.Counter != math.MaxInt64 {
				t.Errorf("the last two numbers: %+v (%v)", clock, err)
			}
			for _, n := range []int{1, 2, 64} {
				if _, err := reserve(t, db, st, n, true); !errors.Is(err, ErrClockExhausted) {
					t.Errorf("reserving %d beyond the end: %v", n, err)
				}
			}
			if clock, err := reserve(t, db, st, 0, true); err != nil || clock.Counter != math.MaxInt64 {
				t.Errorf("the clock moved: %+v (%v)", clock, err)
			}
		})
	}
}

// set moves the counter by raw SQL.
func set(t *testing.T, db sqldb.DB, st *Store, counter int64) {
	t.Helper()
	tx, err := db.Begin(t.Context(), sqldb.Write)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	text := st.dialect.Rebind(localize(st.dialect, "update perdure.outbox_clock set counter = ?"))
	if err := tx.Run(t.Context(), sqldb.Exec(text, counter)); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAMissingClockIsAnErrorAndNotANewBeginning(t *testing.T) {
	t.Parallel()
	for _, name := range dialects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, st := migrated(t, name)
			tx, err := db.Begin(t.Context(), sqldb.Write)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			if err := tx.Run(t.Context(), sqldb.Exec(localize(st.dialect, "delete from perdure.outbox_clock"))); err != nil {
				t.Fatal(err)
			}
			var clock Clock
			if err := tx.Run(t.Context(), st.Reserve(1, &clock)...); !errors.Is(err, ErrClockExhausted) {
				t.Errorf("reserving without a clock: %v", err)
			}
		})
	}
}

func TestSplitKeepsBodiesTogether(t *testing.T) {
	t.Parallel()
	got := split("-- a comment;\ncreate table a (\n  x int -- why\n);\n\ncreate function f() as $$\nbegin;\n-- inside\nend;\n$$;\nselect 1;\n")
	want := []string{"create table a (\n  x int -- why\n)", "create function f() as $$\nbegin;\n-- inside\nend;\n$$", "select 1"}
	if len(got) != len(want) {
		t.Fatalf("there are %d statements: %q", len(got), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("statement %d is %q, want %q", i, got[i], want[i])
		}
	}
}
