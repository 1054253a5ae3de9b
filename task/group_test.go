package task

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/work"
)

// grouping is a worker on PostgreSQL with a function that notes the transaction that it
// runs in, fails for some tasks, and locks a row for others.
type grouping struct {
	db     enginetest.Database
	eng    *perdure.Engine
	worker *Worker
	errors atomic.Int64 // that were reported
}

func newGrouping(t *testing.T) *grouping {
	t.Helper()
	g := &grouping{db: enginetest.Empty(t, enginetest.Postgres)}
	g.eng = g.db.Open(t, nil)
	g.db.Exec(t, `create schema biz authorization perdure_owner; set role perdure_owner;
		create table biz.note (n bigint, xid text); create table biz.door (n bigint); insert into biz.door values (1);
		create function biz.note(payload jsonb) returns jsonb language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
		begin
			perform queues.require_task('biz.note', payload);
			if payload ->> 'locks' is not null then perform from biz.door for update; end if;
			insert into biz.note values ((payload ->> 'n')::bigint, pg_current_xact_id()::text);
			if payload ->> 'fails' is not null then raise exception 'no' using errcode = payload ->> 'fails'; end if;
			return internal.ok();
		end $$;
		select internal.allow_function('biz.note')`)
	worker, err := NewWorker(g.eng, &Options{OnError: func(err error) { g.errors.Add(1); t.Log("reported:", err) }})
	enginetest.NoError(t, err)
	t.Cleanup(func() { enginetest.NoError(t, worker.Drain(enginetest.Context(t))) })
	g.worker = worker
	g.worker.pace.took("biz.note", time.Microsecond) // it is quick
	return g
}

// enqueue enqueues a task with more keys in its payload, and returns its number.
func (g *grouping) enqueue(t *testing.T, n int, more string) int64 {
	t.Helper()
	return g.db.Int(t, fmt.Sprintf(`select queues.enqueue('db_function', '{"db_function": "biz.note", "n": %d %s}')`, n, more))
}

func (g *grouping) status(t *testing.T, id int64) string {
	t.Helper()
	return g.db.Text(t, "select status || ' ' || attempts from queues.task where task_id = ?", id)
}

// claimed claims all tasks and returns the decisions to run their functions.
func (g *grouping) claimed(t *testing.T) (group []*work.Decided) {
	t.Helper()
	claims, err := g.worker.runner.Queues()[0].Take(enginetest.Context(t), 100, time.Minute)
	enginetest.NoError(t, err)
	for _, c := range claims {
		item := c.Work.(*work.Item)
		last, err := (&attempt{Item: item, w: g.worker, task: taskOf(item)}).execute(t.Context())
		enginetest.NoError(t, err)
		group = append(group, &work.Decided{Item: item, Outcome: last, Alone: true})
	}
	return group
}

// The functions of a group run in one transaction. A task that is not held any more is left
// out.
func TestAGroupOfFunctionsIsOneTransaction(t *testing.T) {
	t.Parallel()
	g := newGrouping(t)
	var ids []int64
	for n := range 5 {
		ids = append(ids, g.enqueue(t, n, ""))
	}
	group := g.claimed(t)
	g.db.Exec(t, "select queues.cancel(?)", ids[2])
	enginetest.NoError(t, g.worker.runner.CommitGroup(group, &work.Wakeups{}, 0))
	for i, id := range ids {
		want := "completed 1"
		if i == 2 {
			want = "cancelled 0"
		}
		if got := g.status(t, id); got != want || group[i].Stale != (i == 2) {
			t.Errorf("task %d is %s, stale %v; want %s", i, got, group[i].Stale, want)
		}
	}
	if got := g.db.Text(t, "select count(*) || ' in ' || count(distinct xid) from biz.note"); got != "4 in 1" {
		t.Errorf("functions ran: %s transactions, want 4 in 1", got)
	}
}

// A function that fails, whatever its code is, fails its own task only, and nothing of it
// is left. Those of its group run once each, as far as their facts tell.
func TestAFunctionThatFailsDoesNotHurtItsGroup(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"P0001", "53400", "57014", "22012"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			g := newGrouping(t)
			bad := g.enqueue(t, 0, fmt.Sprintf(`, "fails": "%s"`, code))
			for n := 1; n <= 5; n++ {
				g.enqueue(t, n, "")
			}
			group := g.claimed(t)
			var raised *store.TaskFunctionError
			if err := g.worker.runner.CommitGroup(group, &work.Wakeups{}, 0); !errors.As(err, &raised) || raised.Code != code {
				t.Fatalf("the group was committed, or the error is another: %v", err)
			}
			if n := g.db.Int(t, "select count(*) from biz.note"); n != 0 {
				t.Fatalf("a group that failed has left %d notes", n)
			}
			g.db.Exec(t, "select queues.release(array_agg(task_id), array_agg(token)) from queues.task")
			n, err := g.worker.Process(enginetest.Context(t))
			enginetest.NoError(t, err)
			failed := n - 5 // on a slow machine, the next attempt is due before the others are done
			if failed < 1 || g.errors.Load() > 0 {
				t.Errorf("%d tasks were run, %d errors were reported", n, g.errors.Load())
			}
			if got := g.status(t, bad); got != fmt.Sprint("pending ", failed) {
				t.Errorf("the task whose function fails is %s, want pending %d", got, failed)
			}
			if n := g.db.Int(t, "select count(*) from queues.task where status = 'completed' and attempts = 1"); n != 5 {
				t.Errorf("%d tasks are done, want 5", n)
			}
			if got := g.db.Text(t, "select string_agg(n::text, ' ' order by n) from biz.note"); got != "1 2 3 4 5" {
				t.Errorf("notes are %s, want 1 to 5 once each", got)
			}
			if got := g.db.Text(t, "select string_agg(task_id || ' ' || (error_message like '%no%'), ' ') from queues.error"); got != strings.TrimSpace(strings.Repeat(fmt.Sprint(bad, " true "), failed)) {
				t.Errorf("errors are %s, want %d of the task", got, failed)
			}
			if g.worker.pace.quick("biz.note") {
				t.Error("a function that fails shares transactions")
			}
		})
	}
}

// A function that waits for a lock holds up no task of its group.
func TestAFunctionThatWaitsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	g := newGrouping(t)
	raw := g.db.SQL(t)
	tx, err := raw.BeginTx(enginetest.Context(t), nil)
	enginetest.NoError(t, err)
	defer tx.Rollback()
	_, err = tx.ExecContext(enginetest.Context(t), "select from biz.door for update")
	enginetest.NoError(t, err)
	waits, free := g.enqueue(t, 1, `, "locks": true`), g.enqueue(t, 2, "")
	_, err = g.worker.Start(enginetest.Context(t))
	enginetest.NoError(t, err)
	enginetest.Eventually(t, "the other task is done", func() bool { return g.status(t, free) == "completed 1" })
	if got := g.status(t, waits); got != "processing 0" {
		t.Errorf("the task that waits is %s", got)
	}
	enginetest.NoError(t, tx.Rollback())
	enginetest.Eventually(t, "the task that waited is done", func() bool { return g.status(t, waits) == "completed 1" })
	if n := g.errors.Load(); n > 0 {
		t.Errorf("%d errors were reported", n)
	}
}

// Functions that take long, or fail, do not share transactions until they are quick again.
func TestOnlyQuickFunctionsShareTransactions(t *testing.T) {
	t.Parallel()
	var p pace
	expect := func(when string, want bool) {
		t.Helper()
		if got := p.quick("a"); got != want {
			t.Errorf("%s: quick is %v", when, got)
		}
	}
	expect("unknown", false)
	p.failed("a")
	expect("unknown and failed", false)
	p.took("a", time.Millisecond)
	expect("quick", true)
	p.took("b", time.Hour)
	expect("another is slow", true)
	p.took("a", time.Second)
	expect("slow", false)
	for range 50 {
		p.took("a", time.Millisecond)
	}
	expect("quick again", true)
	p.failed("a")
	expect("failed", false)
	for range 10 {
		p.took("a", time.Millisecond)
	}
	expect("quick after a failure", true)
}
