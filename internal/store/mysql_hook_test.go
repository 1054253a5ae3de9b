package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure/internal/sqldb"
)

// leased returns a database with hooks 1 to n of lane a, claimed by one lease.
func leased(t *testing.T, n int) (h hooksOn, token string) {
	t.Helper()
	h = newHooksOn(t)
	want := make([]int, n)
	for i := range n {
		want[i] = i + 1
		h.run(h.insert(i+1, laneA, 0, time.Duration(i)*time.Second)...)
	}
	tx := h.begin()
	token = h.claims(tx, n, want, laneA)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h, token
}

// hook returns a hook as HookGet reads it.
func (h hooksOn) hook(public string) string {
	h.Helper()
	get := h.st.stmt("HookGet", public, public)
	var found string
	get.Row = func(scan sqldb.Scan) error {
		var id, key, namespace, name, payload, status, policy, unit string
		var priority, most, attempts, crashes int
		var fault, worker *string
		var created, due time.Time
		var next, last, finished, expires *time.Time
		err := scan(&id, &key, &namespace, &name, &payload, &status, &priority, &policy, &most, &attempts, &crashes, &fault, &unit, &created, &next, &due, &last, &finished, &worker, &expires)
		if key != public || namespace+payload+policy+unit != `shop{"n":1}{"p":2}unit` || most != 5 || !created.Equal(h.now) {
			h.Errorf("hook %s of %s has %s %s %s %d %s %s", key, namespace, payload, policy, unit, most, id, created)
		}
		found = fmt.Sprintf("%s attempts=%d crashes=%d error=%s due=%s next=%s last=%s finished=%s worker=%s", status, attempts, crashes, shown(fault),
			h.since(&due), h.since(next), h.since(last), h.since(finished), shown(worker))
		return err
	}
	get.Done = sqldb.One(fmt.Errorf("there is no hook %s", public))
	h.run(get)
	return found
}

// since returns a time as the time after now.
func (h hooksOn) since(at *time.Time) string {
	if at == nil {
		return "null"
	}
	return at.Sub(h.now).String()
}

func (h hooksOn) is(public, want string) {
	h.Helper()
	if got := h.hook(public); got != want {
		h.Errorf("%s is %s\nwant %s", public, got, want)
	}
}

// list returns the first column of the rows of a statement.
func (h hooksOn) list(run sqldb.Runner, stmt sqldb.Stmt, columns int) (found []string) {
	h.Helper()
	stmt.Row = func(scan sqldb.Scan) error {
		dest := make([]any, columns)
		for i := range dest {
			dest[i] = new(string)
		}
		err := scan(dest...)
		found = append(found, *dest[0].(*string))
		return err
	}
	h.in(run, stmt)
	return found
}

func TestAnInsertedHookOnMySQLIsDueWhenItSays(t *testing.T) {
	t.Parallel()
	h := newHooksOn(t)
	insert := func(id string, key any, now, at any, delay time.Duration) []sqldb.Stmt {
		return h.st.stmts("HookInsert", now, at, delay.Microseconds(), id, key, "shop", "a", laneA, `{"n":1}`, 0, `{"p":2}`, 5, "unit", nil)
	}
	fine := h.now.Add(90 * time.Minute).Add(654321 * time.Microsecond)
	h.run(slices.Concat(insert(claimable(1), "order 7", h.now, nil, 0), insert(claimable(2), nil, h.now, nil, 1500*time.Microsecond),
		insert(claimable(3), nil, h.now, fine, 0), insert(claimable(4), nil, h.now, h.now.Add(-time.Hour), 0))...)
	h.is("order 7", "ready attempts=0 crashes=0 error=null due=0s next=null last=null finished=null worker=null")
	h.is(claimable(2), "ready attempts=0 crashes=0 error=null due=1.5ms next=1.5ms last=null finished=null worker=null")
	h.is(claimable(3), "ready attempts=0 crashes=0 error=null due=1h30m0.654321s next=1h30m0.654321s last=null finished=null worker=null")
	h.is(claimable(4), "ready attempts=0 crashes=0 error=null due=0s next=null last=null finished=null worker=null")

	started := time.Now()
	h.run(insert(claimable(5), nil, nil, nil, 0)...) // by the server's clock
	if n := texted(t, h.db, 1, "select cast(count(*) as char) from perdure.ready where id = ? and abs(timestampdiff(second, due_at, ?)) < 600", claimable(5), started); n[0] != "1" {
		t.Error("the hook is not due now")
	}
	if err := run(t, h.db, insert(claimable(6), "order 7", h.now, nil, 0)...); err == nil {
		t.Error("two hooks have one key")
	}
	find := func(key, id any) []string { return h.list(h.begin(), h.st.stmt("HookFind", key, id), 2) }
	same(t, "by key", find("order 7", nil), []string{claimable(1)})
	same(t, "by id", find(claimable(2), claimable(2)), []string{claimable(2)})
	same(t, "by the id of the row of a key", find(claimable(1), claimable(1)), nil)
	same(t, "by a key in another case", find("Order 7", nil), nil)
}

func TestOutcomesOnMySQL(t *testing.T) {
	t.Parallel()
	h, token := leased(t, 5)
	h.is(claimable(1), "running attempts=0 crashes=0 error=null due=0s next=null last=1h0m0s finished=null worker=host-1")
	now := h.now.Add(2 * time.Hour)
	same(t, "held", h.list(h.begin(), h.st.stmt("HookHeld", "host-1"), 7), slices.Repeat([]string{token}, 5))

	tx := h.begin()
	same(t, "shared", h.list(tx, h.st.stmt("LeaseShare", one([]string{token, uuid.NewString()})), 1), []string{token})
	tried := h.st.stmt("HookTried", tuples{
		[]string{claimable(1), claimable(2)}, []string{"it's “refused”\n\\", "last"}, []int64{1_500_000, 7}, []*int64{new(int64(2_500_001)), nil},
	}, now)
	ended := h.st.stmt("HookEnd", "w", tuples{
		[]string{claimable(2), claimable(3)}, []string{"failed", "done"}, []*string{new("last"), nil}, []time.Time{h.now, h.now}, []*int64{new(int64(7)), nil},
	}, now)
	h.in(tx, tried, ended, h.st.stmt("HookPostpone", "no handler", now, int64(1000), claimable(4)), h.st.stmt("HookRelease", one([]string{claimable(1), claimable(4)})))
	h.in(tx, h.st.stmt("HookAttempt", "host-1", tuples{[]string{claimable(1), claimable(2)}, []string{"", ""}, []int{1, 3}, []string{"a", "b"}, []int64{1_500_000, 7}}, now))
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.is(claimable(1), "ready attempts=1 crashes=0 error=it's “refused”\n\\ due=2h0m2.500001s next=2h0m2.500001s last=1h59m58.5s finished=null worker=null")
	h.is(claimable(2), "failed attempts=1 crashes=0 error=last due=1s next=null last=1h59m59.999993s finished=2h0m0s worker=w")
	h.is(claimable(3), "done attempts=1 crashes=0 error=null due=2s next=null last=null finished=2h0m0s worker=w")
	h.is(claimable(4), "ready attempts=0 crashes=0 error=no handler due=2h0m0.001s next=2h0m0.001s last=null finished=null worker=null")
	h.is(claimable(5), "running attempts=0 crashes=0 error=null due=4s next=4s last=1h0m0s finished=null worker=host-1")
	same(t, "attempts", texted(t, h.db, 6, "select id, cast(seq as char), cast(attempt as char), outcome, error, worker from perdure.attempts"),
		[]string{claimable(1) + "|1|1|failed|a|host-1", claimable(2) + "|1|3|failed|b|host-1"})
	same(t, "created", texted(t, h.db, 1, "select id from perdure.hook_ends where created_at = ?", h.now), []string{claimable(2), claimable(3)})
	same(t, "held", texted(t, h.db, 1, "select id from perdure.hooks where status = 'running' and worker = 'host-1'"), []string{claimable(5)})
	var held []string
	stmt := h.st.stmt("HookHeld", "host-1")
	stmt.Row = func(scan sqldb.Scan) error {
		var token, id, public, name string
		var alone bool
		var crashes, limit int
		err := scan(&token, &alone, &id, &crashes, &limit, &public, &name)
		held = append(held, fmt.Sprint(id, alone, crashes, limit, public == id, name))
		return err
	}
	h.run(stmt)
	same(t, "held", held, []string{claimable(5) + "false 0 1 truea"})
}

// The leases of other processes are not locked: their heartbeats do not wait, and it does
// not wait for them.
func TestTheReturnOfALeaseOnMySQL(t *testing.T) {
	t.Parallel()
	h, token := leased(t, 3)
	h.run(h.insert(4, laneB, 0, 0)...)
	tx := h.begin()
	other := h.claims(tx, 1, []int{4}, laneB)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := h.now.Add(3 * time.Hour)
	alive, reaper := h.begin(), h.begin()
	h.in(alive, h.st.stmt("LeaseExtend", now, time.Minute.Microseconds(), other))
	same(t, "expired", h.list(reaper, h.st.stmt("LeaseExpired", "hook\tshop", now, 10), 2), []string{token})
	same(t, "expired for another process", h.list(h.begin(), h.st.stmt("LeaseExpired", "hook\tshop", now, 10), 2), nil)
	same(t, "taken", h.list(reaper, h.st.stmt("HookTakeMany", one([]string{claimable(3), claimable(1), claimable(2)})), 1), []string{claimable(1), claimable(2), claimable(3)})
	same(t, "taken by another process", h.list(h.begin(), h.st.stmt("HookTakeMany", one([]string{claimable(1), claimable(2)})), 1), nil)
	h.in(reaper, h.st.stmt("HookLost", "lost", "crashed", now, token, one([]string{claimable(1), claimable(2), claimable(3)})), h.st.stmt("HookAttemptCap", one([]string{claimable(1)})))
	var woken []string
	h.in(reaper, h.st.waking("HookReturn", func(queue string) { woken = append(woken, queue) }, "crashed", now, tuples{
		[]string{claimable(1), claimable(2)}, []int{1, 2}, []int64{0, 5_000_000}, []*int{nil, new(4)},
	})...)
	h.in(reaper, append(h.st.stmts("HookQuarantine", "crashed", now, claimable(3)), h.st.stmt("LeaseDelete", one([]string{token})))...)
	if err := reaper.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "woken", woken, []string{laneA, laneA})
	h.is(claimable(1), "ready attempts=0 crashes=1 error=crashed due=3h0m0s next=null last=1h0m0s finished=null worker=null")
	h.is(claimable(2), "ready attempts=0 crashes=2 error=crashed due=3h0m5s next=3h0m5s last=1h0m0s finished=null worker=null")
	h.is(claimable(3), "quarantined attempts=0 crashes=1 error=crashed due=2s next=null last=1h0m0s finished=3h0m0s worker=null")
	same(t, "ready", texted(t, h.db, 2, "select id, cast(suspect as char) from perdure.ready"), []string{claimable(1) + "|0", claimable(2) + "|1"})
	same(t, "leases", texted(t, h.db, 1, "select token from perdure.leases"), []string{other})
	same(t, "attempts", texted(t, h.db, 4, "select id, outcome, error, worker from perdure.attempts"),
		[]string{claimable(1) + "|lost|crashed|host-1", claimable(2) + "|lost|crashed|host-1", claimable(3) + "|lost|crashed|host-1"})
}

func TestAnOperatorOnMySQL(t *testing.T) {
	t.Parallel()
	h, token := leased(t, 3)
	now := h.now.Add(2 * time.Hour)
	same(t, "lease", h.list(h.begin(), h.st.stmt("LeaseOf", claimable(2)), 1), []string{token})
	same(t, "no lease", h.list(h.begin(), h.st.stmt("LeaseOf", claimable(9)), 1), nil)
	tx := h.begin()
	same(t, "locked", h.list(tx, h.st.stmt("LeaseTake", token), 1), []string{token})
	h.in(tx, h.st.stmt("HookCancel", now, claimable(1)), h.st.stmt("InterruptInsert", claimable(1), token), h.st.stmt("InterruptInsert", claimable(1), token), h.st.stmt("InterruptInsert", claimable(2), token))
	same(t, "seen", h.list(h.begin(), h.st.stmt("LeaseSee", one([]string{token})), 1), []string{token})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.is(claimable(1), "cancelled attempts=0 crashes=0 error=null due=0s next=null last=null finished=2h0m0s worker=null")
	same(t, "interrupts", h.list(h.begin(), h.st.stmt("InterruptList", one([]string{token})), 2), []string{claimable(1), claimable(2)})
	h.run(h.st.stmt("InterruptDelete", tuples{[]string{claimable(1), claimable(3)}, []string{token, token}}))
	same(t, "interrupts", h.list(h.begin(), h.st.stmt("InterruptList", one([]string{token})), 2), []string{claimable(2)})
	h.run(h.st.stmt("InterruptPurge", token))
	same(t, "interrupts", h.list(h.begin(), h.st.stmt("InterruptList", one([]string{token})), 2), nil)

	removed := int64(-1)
	h.run(h.st.stmt("HookRevive", now, claimable(1)), counted(h.st.stmt("HookUnend", claimable(1)), &removed), h.st.stmt("HookRelease", one([]string{claimable(1)})))
	h.is(claimable(1), "ready attempts=0 crashes=0 error=null due=2h0m0s next=null last=null finished=null worker=null")
	later := now.Add(time.Hour)
	unready := int64(-1)
	h.run(counted(h.st.stmt("HookUnready", claimable(1)), &unready), h.st.stmt("HookHasten", later, claimable(1)), h.st.stmt("HookRelease", one([]string{claimable(1)})))
	h.is(claimable(1), "ready attempts=0 crashes=0 error=null due=3h0m0s next=null last=null finished=null worker=null")
	if removed != 1 || unready != 1 || h.count("ready") != "1" {
		t.Errorf("removed %d ends and %d rows of ready, left %s", removed, unready, h.count("ready"))
	}
}
