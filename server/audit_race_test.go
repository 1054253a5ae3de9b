package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// An act takes a chain that no other transaction holds, and waits only if all are held.
func TestAnActDoesNotWaitForTheChainOfAnother(t *testing.T) {
	t.Parallel()
	f := ready(t, enginetest.New(t, enginetest.Postgres))
	hold, err := f.db.SQL(t).BeginTx(enginetest.Context(t), nil)
	enginetest.NoError(t, err)
	defer func() { _ = hold.Rollback() }()
	lock := func(condition string) {
		t.Helper()
		_, err := hold.ExecContext(enginetest.Context(t), "select 1 from perdure.audit_chains where "+condition+" for update")
		enginetest.NoError(t, err)
	}
	lock("chain <> 7")
	f.start(nil)
	if entries := f.entries(); len(entries) != 1 || entries[0].Chain != 7 {
		t.Fatalf("the audit log is %+v", entries)
	}
	lock("true")
	started := make(chan string)
	go func() { started <- f.start(nil) }()
	f.waiting(1)
	enginetest.NoError(t, hold.Rollback())
	if id := <-started; f.entries()[1].Target != id {
		t.Errorf("the audit log has no entry of %s", id)
	}
	if problems := f.verified(); len(problems) > 0 {
		t.Errorf("the audit log: %v", problems)
	}
}

// Of changes of one thing at the same time each begins where another has ended.
func (Flows) EntriesOfOneThingFollowEachOther(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	path := f.schedule()
	var editors sync.WaitGroup
	for i := range 8 {
		editors.Go(func() {
			for j := range 4 {
				if a := f.do(http.MethodPatch, path, object{"spec": fmt.Sprintf("%d 4 * * *", i*4+j)}); a.status != http.StatusOK {
					t.Errorf("change: %d %s", a.status, a.body)
				}
			}
		})
	}
	editors.Wait()
	first, befores, afters := "", map[string]int{}, map[string]int{}
	for _, e := range f.entries() {
		switch e.Action {
		case "set-schedule":
			first = specOf(t, e.After)
		case "change-schedule":
			befores[specOf(t, e.Before)]++
			afters[specOf(t, e.After)]++
		}
	}
	delete(befores, first)
	for spec, n := range befores {
		if n != 1 || afters[spec] != 1 {
			t.Errorf("%s is before %d changes and after %d", spec, n, afters[spec])
		}
	}
	if len(befores) != 31 || len(afters) != 32 {
		t.Errorf("%d changes begin and %d end", len(befores)+1, len(afters))
	}
}

func specOf(t *testing.T, state string) string {
	t.Helper()
	var s struct {
		Spec struct{ Schedule json.RawMessage }
	}
	enginetest.NoError(t, json.Unmarshal([]byte(state), &s))
	return string(s.Spec.Schedule)
}

// Connections that break while acts are committed leave no act without its entry, and
// no entry without its act.
func TestALostConnectionLeavesNoActWithoutItsEntry(t *testing.T) {
	t.Parallel()
	f := ready(t, enginetest.New(t, enginetest.Postgres))
	var clients sync.WaitGroup
	acknowledged := make(chan string, 1000)
	for range 8 {
		clients.Go(func() {
			for range 25 {
				var started struct{ ID string }
				if a := f.do(http.MethodPost, "/v1/instances", object{"definition": "order"}); a.status == http.StatusCreated && json.Unmarshal(a.body, &started) == nil {
					acknowledged <- started.ID
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		clients.Wait()
		close(done)
	}()
	raw, broken := f.db.SQL(t), 0
	for open := true; open; {
		select {
		case <-done:
			open = false
		default:
			var n int
			enginetest.NoError(t, raw.QueryRowContext(enginetest.Context(t), `select count(pg_terminate_backend(pid)) from (
				select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle' limit 1) a`).Scan(&n))
			broken += n
		}
	}
	close(acknowledged)
	if n := f.db.Int(t, "select count(*) from perdure.instances i where not exists (select 1 from perdure.audit a where a.target = i.id::text)"); n != 0 {
		t.Errorf("%d instances have no entry", n)
	}
	if n := f.db.Int(t, "select count(*) from perdure.audit a where not exists (select 1 from perdure.instances i where i.id::text = a.target)"); n != 0 {
		t.Errorf("%d entries have no instance", n)
	}
	for id := range acknowledged {
		if n := f.db.Int(t, "select count(*) from perdure.audit where target = ?", id); n != 1 {
			t.Errorf("an acknowledged start has %d entries", n)
		}
	}
	if problems := f.verified(); len(problems) > 0 {
		t.Errorf("the audit log, after %d broken connections: %v", broken, problems)
	}
}
