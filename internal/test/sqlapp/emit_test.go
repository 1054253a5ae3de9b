package sqlapp_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

const (
	writers = 4
	// rounds is the number of transactions of a writer.
	rounds = 150
)

// ledger are the tables of an application, and its role may write to them.
func (f *fixture) ledger(t *testing.T) {
	t.Helper()
	f.exec(t, "create schema app", "create table app.ledger (writer int, n int, primary key (writer, n))", "grant usage on schema app to "+f.role, "grant insert on app.ledger to "+f.role)
}

// script returns the transactions of a writer. Every fifth is rolled back.
func script(writer int) string {
	var b strings.Builder
	for n := range rounds {
		end := "commit"
		if n%5 == 4 {
			end = "rollback"
		}
		fmt.Fprintf(&b, "begin;\ninsert into app.ledger values (%d, %d);\nselect perdure.emit('ledger', '%d', '{\"n\": %d}');\nselect perdure.start('order', '{\"id\": \"%d/%d\"}', '{\"delay\": \"1 day\"}');\n%s;\n",
			writer, n, writer, n, writer, n, end)
	}
	return b.String()
}

// Clients of functions are killed at any time, next to units of work of a process: no entry is
// lost, invented or out of order.
func TestEventsAreInTheOrderOfCommitsIfClientsAreKilled(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.ledger(t)
	psql, dsn := tool(t, "psql"), f.dsn(t)
	ctx := enginetest.Context(t)
	var running sync.WaitGroup
	for w := range writers {
		cmd := exec.CommandContext(ctx, psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", dsn)
		cmd.Stdin = strings.NewReader(script(w))
		enginetest.NoError(t, cmd.Start())
		running.Go(func() { _ = cmd.Wait() })
		if w%2 == 0 { // after its first commits, at a random time
			enginetest.Eventually(t, "the client writes", func() bool {
				return f.db.Int(t, fmt.Sprintf("select count(*) from app.ledger where writer = %d", w)) > 3
			})
			enginetest.NoError(t, cmd.Process.Kill())
		}
		for i := range 10 {
			enginetest.NoError(t, f.eng.Update(ctx, func(tx *perdure.Tx) error {
				_, err := tx.Create(invoices, schema.Values{"order": fmt.Sprintf("%d/%d", w, i)})
				return err
			}))
		}
	}
	running.Wait()
	enginetest.Eventually(t, "killed sessions have ended", func() bool {
		return f.db.Int(t, "select count(*) from pg_stat_activity where usename = '"+f.role+"' and state <> 'idle'") == 0
	})
	f.audit(t)
}

// audit compares the outbox with the tables of the application.
func (f *fixture) audit(t *testing.T) {
	t.Helper()
	counter := f.db.Int(t, "select counter from perdure.outbox_clock")
	equal(t, "entries", f.db.Int(t, "select count(*) from perdure.outbox"), counter)
	equal(t, "last entry", f.db.Int(t, "select ('x' || substr(max(versionstamp), 5, 16))::bit(64)::bigint from perdure.v1_outbox"), counter)
	const events = `with events as (
		select o.versionstamp, (e ->> 'key')::int as writer, (e #>> '{payload,n}')::int as n, e ->> 'versionstamp' as stamp
		from perdure.v1_outbox o, json_array_elements(o.payload #> '{json,events}') e) `
	equal(t, "events without a row, and rows without an event", f.db.Int(t, events+`select count(*) from events e full join app.ledger l using (writer, n) where e.versionstamp is null or l.writer is null`), 0)
	equal(t, "events", f.db.Int(t, events+"select count(*) from events"), f.db.Int(t, "select count(*) from app.ledger"))
	equal(t, "events before an earlier one of the writer", f.db.Int(t, events+`select count(*) from (select n, lag(n) over (partition by writer order by versionstamp) as before from events) e where n <= before`), 0)
	equal(t, "events with another stamp", f.db.Int(t, events+"select count(*) from events where stamp <> versionstamp"), 0)
	equal(t, "instances", f.db.Int(t, "select count(*) from perdure.instances"), f.db.Int(t, "select count(*) from app.ledger"))
	if f.db.Int(t, "select count(*) from app.ledger") < rounds {
		t.Error("too few transactions were committed")
	}
	report, err := f.eng.Outbox().Verify(enginetest.Context(t), nil)
	enginetest.NoError(t, err)
	if len(report.Problems) > 0 || int64(report.Entries) != counter || int64(report.Events) != f.db.Int(t, "select count(*) from app.ledger") {
		t.Errorf("%d entries: %+v", counter, report)
	}
}

// With a snapshot that is older than the last entry, the number cannot be reserved in order.
func TestAnEventOfAnOldSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	ctx := enginetest.Context(t)
	_, err := f.app.Exec(ctx, "begin isolation level repeatable read; select perdure.emit('old', '', '1')")
	enginetest.NoError(t, err)
	_, err = query(connect(t, f.dsn(t)), "select perdure.emit('new', '', '2')")
	enginetest.NoError(t, err)
	_, err = f.app.Exec(ctx, "commit")
	equal(t, "commit", state(err), "40001")
	equal(t, "counter", f.db.Int(t, "select counter from perdure.outbox_clock"), 1)
	equal(t, "events", f.db.Int(t, "select count(*) from perdure.sql_events"), 0)
}

// The counter is locked when the transaction commits, not when it emits: a client that is slow
// after an event holds up no other one.
func TestAnOpenTransactionWithAnEventHoldsNoLock(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	ctx := enginetest.Context(t)
	_, err := f.app.Exec(ctx, "begin; select perdure.emit('slow', '', '1')")
	enginetest.NoError(t, err)
	enginetest.NoError(t, f.eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := tx.Create(invoices, schema.Values{"order": "1"})
		return err
	}))
	other := connect(t, f.dsn(t))
	_, err = query(other, "select perdure.emit('quick', '', '2')")
	enginetest.NoError(t, err)
	_, err = f.app.Exec(context.Background(), "commit")
	enginetest.NoError(t, err)
	equal(t, "the last event", f.list(t, `select payload #>> '{json,events,0,topic}' from perdure.v1_outbox order by versionstamp desc limit 1`)[0], "slow")
	equal(t, "counter", f.db.Int(t, "select counter from perdure.outbox_clock"), 3)
}
