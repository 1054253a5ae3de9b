package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/sqldb"
)

// laneA and laneB are lanes of hooks.
const (
	laneA = "hook\tshop\ta"
	laneB = "hook\tshop\tb"
)

// hooksOn is a MySQL database whose statements on hooks are tested.
type hooksOn struct {
	*testing.T
	db  sqldb.DB
	st  *Store
	now time.Time
}

func newHooksOn(t *testing.T) hooksOn {
	t.Helper()
	db, st := migrated(t, sqldb.MySQL)
	return hooksOn{T: t, db: db, st: st, now: minute(0)}
}

// begin starts a transaction that is rolled back in the end.
func (h hooksOn) begin() sqldb.Tx {
	h.Helper()
	tx, err := h.db.Begin(h.Context(), sqldb.Write)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(tx.Rollback)
	return tx
}

// run runs statements in a transaction of their own.
func (h hooksOn) run(stmts ...sqldb.Stmt) {
	h.Helper()
	if err := run(h.T, h.db, stmts...); err != nil {
		h.Fatal(err)
	}
}

// in runs statements in a transaction.
func (h hooksOn) in(tx sqldb.Runner, stmts ...sqldb.Stmt) {
	h.Helper()
	if err := tx.Run(h.Context(), stmts...); err != nil {
		h.Fatal(err)
	}
}

// claimable returns the id of the row of the nth hook.
func claimable(n int) string { return fmt.Sprintf("018f4e5a-0000-7abc-8def-%012d", n) }

// insert returns the statements that insert the nth hook, due after a delay.
func (h hooksOn) insert(n int, lane string, priority int, delay time.Duration) []sqldb.Stmt {
	return h.st.stmts("HookInsert", h.now, nil, delay.Microseconds(), claimable(n), nil, "shop", lane[len(lane)-1:], lane, `{"n":1}`, priority, `{"p":2}`, 5, "unit", nil)
}

// claimAt returns the arguments of a claim.
func (h hooksOn) claimAt(limit int, token string, suspects bool) []any {
	return []any{"hook\tshop", h.now.Add(time.Hour), limit, token, "host-1", h.st.dialect.Bool(suspects), time.Minute.Microseconds()}
}

// claim claims hooks of some lanes and returns the numbers of them.
func (h hooksOn) claim(ctx context.Context, tx sqldb.Runner, limit int, token string, lanes ...string) ([]int, error) {
	return h.claimWith(ctx, tx, h.st.bindAll(h.st.text("HookClaim"), append(h.claimAt(limit, token, false), one(lanes))))
}

// claimWith runs the statements of a claim.
func (h hooksOn) claimWith(ctx context.Context, tx sqldb.Runner, stmts []sqldb.Stmt) ([]int, error) {
	var claimed []int
	stmts[len(stmts)-1].Row = func(scan sqldb.Scan) error {
		var id, public, name, payload, policy, unit string
		var priority, most, attempt, crashes, n int
		var trace *string
		var created, due time.Time
		err := scan(&id, &public, &name, &payload, &priority, &policy, &most, &attempt, &crashes, &unit, &trace, &created, &due)
		if err != nil {
			return err
		}
		if fields := fmt.Sprint(public, payload, policy, most, unit, created); fields != fmt.Sprint(id, `{"n":1}`, `{"p":2}`, 5, "unit", h.now) {
			return fmt.Errorf("claimed %s", fields)
		}
		_, err = fmt.Sscanf(id[len(id)-12:], "%d", &n)
		claimed = append(claimed, n)
		return err
	}
	err := tx.Run(ctx, stmts...)
	return claimed, err
}

// claims claims and checks what was claimed.
func (h hooksOn) claims(tx sqldb.Runner, limit int, want []int, lanes ...string) string {
	h.Helper()
	token := uuid.NewString()
	got, err := h.claim(h.Context(), tx, limit, token, lanes...)
	if err != nil {
		h.Fatal(err)
	}
	if !slices.Equal(got, want) {
		h.Errorf("claimed %v, want %v", got, want)
	}
	return token
}

// count returns the number of rows of a table.
func (h hooksOn) count(table string) string {
	h.Helper()
	return texted(h.T, h.db, 1, "select cast(count(*) as char) from perdure."+table)[0]
}

func TestAClaimOnMySQLTakesTheMostUrgentAndThenTheOldest(t *testing.T) {
	t.Parallel()
	h := newHooksOn(t)
	h.run(slices.Concat(
		h.insert(1, laneA, 0, 3*time.Second), h.insert(2, laneB, 0, time.Second), h.insert(3, laneA, 0, 2*time.Second), h.insert(4, laneB, 1, 0),
		h.insert(5, laneA, -1, 5*time.Second), h.insert(6, laneB, -1, 4*time.Second), h.insert(7, laneA, -1, 2*time.Hour), h.insert(8, "hook\tshop\tc", -1, 0),
	)...)
	tx := h.begin()
	token := h.claims(tx, 4, []int{6, 5, 2, 3}, laneA, laneB)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "lease", texted(t, h.db, 5, "select token, worker, queue, cast(alone as char), cast(timestampdiff(second, claimed_at, expires_at) as char) from perdure.leases"),
		[]string{token + "|host-1|hook\tshop|0|60"})
	same(t, "ids", texted(t, h.db, 1, "select held.id from perdure.leases l, json_table(l.ids, '$[*]' columns (id varchar(36) path '$')) held"),
		[]string{claimable(2), claimable(3), claimable(5), claimable(6)})
	same(t, "ready", texted(t, h.db, 1, "select id from perdure.ready"), []string{claimable(1), claimable(4), claimable(7), claimable(8)})

	tx = h.begin()
	h.claims(tx, 10, []int{1, 4}, laneA, laneB)
	h.claims(tx, 10, nil, laneA, laneB)
	h.claims(tx, 10, nil, "hook\tshop\tnone")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := h.count("leases"); n != "2" {
		t.Errorf("there are %s leases: a claim of nothing has one", n)
	}
}

// The transactions are open until the end: a statement that waited for a row of another one
// would fail when its time limit for locks is over.
func TestAClaimOnMySQLSkipsWhatOthersHaveLocked(t *testing.T) {
	t.Parallel()
	h := newHooksOn(t)
	for n := range 12 {
		h.run(h.insert(n+1, []string{laneA, laneB}[n%2], 0, time.Duration(n)*time.Second)...)
	}
	first, second, third := h.begin(), h.begin(), h.begin()
	h.claims(first, 2, []int{1, 3}, laneA)
	h.claims(second, 2, []int{5, 7}, laneA)
	h.claims(third, 2, []int{2, 4}, laneB)

	locked := sqldb.Stmt{
		SQL:  "select 1 from perdure_ready where queue = ? and suspect = 0 and priority = 0 and due_at = ? and id = ? for update",
		Args: []any{laneA, h.now.Add(8 * time.Second), claimable(9)}, Row: func(scan sqldb.Scan) error { return scan(new(int)) }, Done: sqldb.One(fmt.Errorf("there is no row")),
	}
	h.in(second, locked)
	h.claims(third, 5, []int{11}, laneA)

	// New hooks do not wait, and hooks that are inserted but not committed are not claimed.
	writer := h.begin()
	h.in(writer, slices.Concat(h.insert(13, laneA, 0, 0), h.insert(14, laneA, 0, time.Hour), h.insert(15, laneB, 0, 0))...)
	h.claims(first, 5, nil, laneA)
	for _, tx := range []sqldb.Tx{first, second, third, writer} {
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	last := h.begin()
	h.claims(last, 20, []int{13, 15, 6, 8, 9, 10, 12, 14}, laneA, laneB)
}

// An operator locks the item of a hook before its row in ready. A claim does it the other
// way round, and must therefore not lock the item.
func TestAClaimOnMySQLDoesNotWaitForAnOperator(t *testing.T) {
	t.Parallel()
	h := newHooksOn(t)
	h.run(slices.Concat(h.insert(1, laneA, 0, 0), h.insert(2, laneA, 0, time.Second))...)
	operator, claimer := h.begin(), h.begin()
	found := ""
	find := h.st.stmt("HookFind", claimable(1), claimable(1))
	find.Row = func(scan sqldb.Scan) error { return scan(&found, new(string)) }
	h.in(operator, find)
	if found != claimable(1) {
		t.Errorf("found %q", found)
	}
	h.claims(claimer, 5, []int{1, 2}, laneA)
	if err := claimer.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	removed := int64(-1)
	h.in(operator, counted(h.st.stmt("HookUnready", claimable(1)), &removed))
	if removed != 0 {
		t.Errorf("the operator has removed %d rows that were claimed", removed)
	}
}

func TestConcurrentClaimsOnMySQLNeverShareAHook(t *testing.T) {
	t.Parallel()
	const hooks, claimers = 200, 4
	h := newHooksOn(t)
	for n := range hooks {
		h.run(h.insert(n+1, []string{laneA, laneB}[n%2], n%3-1, time.Duration(n%7)*time.Second)...)
	}
	var all sync.WaitGroup
	claimed, errs := make([][]int, claimers), make([]error, claimers)
	for c := range claimers {
		all.Go(func() { claimed[c], errs[c] = h.drain() })
	}
	all.Wait()
	times := map[int]int{}
	for c := range claimers {
		if errs[c] != nil {
			t.Error(errs[c])
		}
		for _, n := range claimed[c] {
			times[n]++
		}
	}
	for n := 1; n <= hooks; n++ {
		if times[n] != 1 {
			t.Errorf("hook %d was claimed %d times", n, times[n])
		}
	}
	if n := h.count("ready"); n != "0" {
		t.Errorf("%s rows are left in ready", n)
	}
}

// drain claims until no row is left, by this process or by others.
func (h hooksOn) drain() ([]int, error) {
	var all []int
	for {
		tx, err := h.db.Begin(h.Context(), sqldb.Write)
		if err != nil {
			return all, err
		}
		got, err := h.claim(h.Context(), tx, 7, uuid.NewString(), laneA, laneB)
		if err == nil {
			err = tx.Commit(h.Context())
		}
		tx.Rollback()
		if err != nil {
			return all, err
		}
		all = append(all, got...)
		if len(got) > 0 {
			continue
		}
		left := 0
		err = sqldb.Each(h.Context(), h.db, func(scan sqldb.Scan) error { return scan(&left) }, "select count(*) from perdure_ready")
		if err != nil || left == 0 {
			return all, err
		}
	}
}

func TestSuspectsOnMySQLAreListedAndClaimed(t *testing.T) {
	t.Parallel()
	h := newHooksOn(t)
	for n := range 5 {
		h.run(h.insert(n+1, laneA, 0, 0)...)
	}
	for n, limit := range map[int]int{2: 1, 3: 4, 4: 2} {
		h.run(h.st.stmt("HookUnready", claimable(n)), sqldb.Exec("update perdure_hook_items set batch_limit = ? where id = ?", limit, claimable(n)), h.st.stmt("HookRelease", one([]string{claimable(n)})))
	}
	now := h.now.Add(time.Hour)
	list := func(tx sqldb.Runner, least, limit int) (found []string) {
		stmt := h.st.stmt("HookSuspectList", one([]string{laneB, laneA}), now, least, limit)
		stmt.Row = func(scan sqldb.Scan) error {
			var id string
			var size int
			err := scan(&id, &size)
			found = append(found, fmt.Sprint(id[len(id)-1:], ":", size))
			return err
		}
		h.in(tx, stmt)
		return found
	}
	first, second := h.begin(), h.begin()
	if got := fmt.Sprint(list(first, 1, 10)); got != "[3:4 4:2 2:1]" {
		t.Errorf("listed %s", got)
	}
	if got := fmt.Sprint(list(second, 1, 10)); got != "[]" {
		t.Errorf("listed %s, which are locked", got)
	}
	if got := fmt.Sprint(list(first, 2, 1)); got != "[3:4]" {
		t.Errorf("listed %s of those with a limit of at least 2", got)
	}
	due := 0
	stmt := h.st.stmt("HookSuspectDue", one([]string{laneA}), now)
	stmt.Row = func(scan sqldb.Scan) error { return scan(&due) }
	if h.in(second, stmt); due != 1 {
		t.Error("no suspect is due")
	}

	_, rest, _ := strings.Cut(h.st.text("HookClaim"), "\n;\n")
	text := strings.ReplaceAll(h.st.text("HookSuspectClaim"), "{rest}", rest)
	token := uuid.NewString()
	args := append(h.claimAt(10, token, true), one([]string{claimable(3), claimable(4)}), one([]string{laneA, laneB}))
	got, err := h.claimWith(t.Context(), first, h.st.bindAll(text, args))
	if err != nil || !slices.Equal(got, []int{3, 4}) {
		t.Errorf("claimed %v: %v", got, err)
	}
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "ready", texted(t, h.db, 1, "select id from perdure.ready"), []string{claimable(1), claimable(2), claimable(5)})
	same(t, "lease", texted(t, h.db, 2, "select token, cast(alone as char) from perdure.leases"), []string{token + "|1"})
}

func TestAClaimOnMySQLSkipsWhatItCannotDecrypt(t *testing.T) {
	t.Parallel()
	h := newHooksOn(t)
	key, err := seal.Generate("mine", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if h.st.keys, err = seal.Parse(key); err != nil {
		t.Fatal(err)
	}
	h.run(slices.Concat(h.insert(1, laneA, 0, 0), h.insert(2, laneA, 0, time.Second))...)
	h.run(sqldb.Exec(`update perdure_hook_items set payload = '{"$sealed":"v1","key":"other","data":""}' where id = ?`, claimable(1)))
	h.st.SkipForeign()
	tx := h.begin()
	h.claims(tx, 5, []int{2}, laneA)
}
