package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// end ends hooks with a status, a number of minutes after now.
func (h hooksOn) end(status string, minutes int, numbers ...int) {
	h.Helper()
	for _, n := range numbers {
		h.run(h.st.stmt("HookUnready", claimable(n)), h.st.stmt("HookEnd", "w", tuples{[]string{claimable(n)}, []string{status}, []*string{nil}, []time.Time{h.now}, []*int64{nil}}, h.now.Add(time.Duration(minutes)*time.Minute)))
	}
}

func TestRetentionOnMySQLRemovesOldHooksWithTheirAttempts(t *testing.T) {
	t.Parallel()
	h := newHooksOn(t)
	for n := range 8 {
		h.run(h.insert(n+1, laneA, 0, 0)...)
	}
	h.end("done", 3, 1)
	h.end("cancelled", 1, 2)
	h.end("done", 30, 3)
	h.end("failed", 2, 4)
	h.end("quarantined", 1, 5)
	h.end("failed", 30, 6)
	now, age := h.now.Add(15*time.Minute), (10 * time.Minute).Microseconds()
	first := h.begin()
	if got := h.list(first, h.st.stmt("HookPurge", now, age, 10), 1); !slices.Equal(got, []string{claimable(2), claimable(1)}) {
		t.Errorf("done: %v", got)
	}
	if got := h.list(first, h.st.stmt("HookPurgeDead", now, age, 1), 1); !slices.Equal(got, []string{claimable(5)}) {
		t.Errorf("dead: %v", got)
	}
	second := h.begin()
	same(t, "done, for another process", h.list(second, h.st.stmt("HookPurge", now, age, 10), 1), nil)
	same(t, "dead, for another process", h.list(second, h.st.stmt("HookPurgeDead", now, age, 10), 1), []string{claimable(4)})
	second.Rollback()

	failed := func(numbers ...int) sqldb.Stmt {
		var ids []string
		for _, n := range numbers {
			ids = append(ids, claimable(n))
		}
		n := len(ids)
		return h.st.stmt("HookAttempt", "host-1", tuples{ids, make([]string, n), slices.Repeat([]int{1}, n), slices.Repeat([]string{"e"}, n), make([]int64, n)}, now)
	}
	h.in(first, failed(1, 2, 3), failed(1, 3))
	deletes := h.st.stmts("HookDelete", one([]string{claimable(1), claimable(2), claimable(9)}))
	var removed int64
	deletes[len(deletes)-1] = counted(deletes[len(deletes)-1], &removed)
	h.in(first, deletes...)
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if removed != 2 {
		t.Errorf("removed %d hooks", removed)
	}
	same(t, "items", texted(t, h.db, 1, "select id from perdure.hook_items"), []string{claimable(3), claimable(4), claimable(5), claimable(6), claimable(7), claimable(8)})
	same(t, "ends", texted(t, h.db, 1, "select id from perdure.hook_ends"), []string{claimable(3), claimable(4), claimable(5), claimable(6)})
	same(t, "attempts", texted(t, h.db, 2, "select id, cast(seq as char) from perdure.attempts"), []string{claimable(3) + "|1", claimable(3) + "|2"})
}

func TestAttemptsOnMySQLAreCapped(t *testing.T) {
	t.Parallel()
	h := newHooksOn(t)
	for range 60 {
		h.run(h.st.stmt("HookAttempt", "host-1", tuples{[]string{claimable(1), claimable(2)}, []string{"", ""}, []int{1, 1}, []string{"a", "b"}, []int64{0, 0}}, h.now),
			h.st.stmt("HookAttemptCap", one([]string{claimable(1)})))
	}
	same(t, "attempts", texted(t, h.db, 4, "select id, cast(count(*) as char), cast(min(seq) as char), cast(max(seq) as char) from perdure.attempts group by id"),
		[]string{claimable(1) + "|50|11|60", claimable(2) + "|60|1|60"})
}

func TestTheNextDueTimeOnMySQL(t *testing.T) {
	t.Parallel()
	h := newHooksOn(t)
	next := func(least int, lanes ...string) string {
		t.Helper()
		found := "none"
		stmt := h.st.stmt("HookNextWake", h.now, "hook\tshop", one(append([]string{}, lanes...)), least)
		stmt.Row = func(scan sqldb.Scan) error {
			var us int64
			err := scan(&us)
			found = (time.Duration(us) * time.Microsecond).String()
			return err
		}
		h.run(stmt)
		return found
	}
	is := func(want string, least int, lanes ...string) {
		t.Helper()
		if got := next(least, lanes...); got != want {
			t.Errorf("the next of %q with suspects from %d is %s, want %s", lanes, least, got, want)
		}
	}
	is("none", 1, laneA, laneB)
	is("none", 1)
	h.run(slices.Concat(h.insert(1, laneA, 1, 1500*time.Microsecond), h.insert(2, laneB, -1, 3*time.Second), h.insert(3, laneB, 0, 2*time.Second))...)
	is("1.5ms", 1, laneA, laneB)
	is("2s", 1, laneB)
	h.run(h.st.stmt("HookUnready", claimable(1)), sqldb.Exec("update perdure_hook_items set batch_limit = 3 where id = ?", claimable(1)), h.st.stmt("HookRelease", one([]string{claimable(1)})))
	is("2s", 0, laneA, laneB)
	is("1.5ms", 1, laneA, laneB)
	is("1.5ms", 3, laneA, laneB)
	is("2s", 4, laneA, laneB)
	h.run(sqldb.Exec("insert into perdure_leases (token, worker, queue, alone, claimed_at, expires_at, ids) values ('t', 'w', 'hook\tshop', 0, ?, ?, '[]')", h.now, h.now.Add(-time.Second)))
	is("-1s", 1, laneA, laneB)
	is("-1s", 1)
}

func TestSealedHooksOnMySQLAreReadInPagesAndReplaced(t *testing.T) {
	t.Parallel()
	h := newHooksOn(t)
	for n := range 3 {
		h.run(h.insert(n+1, laneA, 0, 0)...)
	}
	if got := h.list(h.begin(), h.st.stmt("HookSealed", claimable(1), 1), 3); !slices.Equal(got, []string{claimable(2)}) {
		t.Errorf("the page after the first is %v", got)
	}
	var changed, kept int64
	h.run(counted(h.st.stmt("HookReseal", `{"n":2}`, claimable(1), `{"n":1}`), &changed), counted(h.st.stmt("HookReseal", `{"n":3}`, claimable(1), `{"n":1}`), &kept))
	if changed != 1 || kept != 0 {
		t.Errorf("replaced %d, and %d that had changed", changed, kept)
	}
	same(t, "payloads", texted(t, h.db, 2, "select id, payload from perdure.hook_items where id = ?", claimable(1)), []string{claimable(1) + `|{"n":2}`})
}

// Two transactions lock the same rows, given in opposite orders. They would deadlock if they
// locked the rows in these orders.
func TestLocksOfManyHooksOnMySQLAreTakenInOrder(t *testing.T) {
	t.Parallel()
	h := newHooksOn(t)
	var ids []string
	for n := range 50 {
		h.run(h.insert(n+1, laneA, 0, 0)...)
		ids = append(ids, claimable(n+1))
	}
	reversed := slices.Clone(ids)
	slices.Reverse(reversed)
	tx := h.begin()
	if got := h.list(tx, h.st.stmt("HookLock", one(reversed)), 1); !slices.Equal(got, ids) {
		t.Errorf("read %v, want the order of the ids", got)
	}
	tx.Rollback()
	errs := make(chan error)
	for _, order := range [][]string{ids, reversed} {
		go func() {
			for range 50 {
				if err := h.lockAll(order); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func (h hooksOn) lockAll(ids []string) error {
	tx, err := h.db.Begin(h.Context(), sqldb.Write)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	n := int64(0)
	lock := h.st.stmt("HookLock", one(ids))
	lock.Row = func(scan sqldb.Scan) error { return scan(new(string)) }
	lock.Done = func(rows int64) error {
		n = rows
		return nil
	}
	if err := tx.Run(h.Context(), lock); err != nil {
		return err
	}
	if n != int64(len(ids)) {
		return fmt.Errorf("locked %d of %d", n, len(ids))
	}
	return tx.Commit(h.Context())
}
