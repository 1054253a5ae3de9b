package sqlapp_test

import (
	"testing"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// places count the rows that functions write.
const places = `select (select count(*) from perdure.instances) + (select count(*) from perdure.ready) + (select count(*) from perdure.deadlines)
	+ (select count(*) from perdure.uniques) + (select count(*) from perdure.partition_heads) + (select count(*) from perdure.signals)
	+ (select count(*) from perdure.hook_items) + (select count(*) from perdure.alarm_items) + (select count(*) from perdure.actor_inbox)
	+ (select count(*) from perdure.outbox) + (select count(*) from perdure.sql_marks) + (select count(*) from perdure.sql_events)`

// work calls every function in one transaction.
var work = []string{
	`select id from perdure.start('order', '{"id": "1"}')`,
	`select id from perdure.start('order', '{"id": "2"}', '{"unique_key": "u", "partition_key": "p", "deadline": "1h", "priority": "high"}')`,
	`select id from perdure.trigger('shop', 'mail', '{"id": "3"}')`,
	`select id from perdure.trigger('shop', 'mail', '{"id": "4"}', '{"id": "chosen", "retry": {"kind": "fixed", "max_attempts": 3, "initial": "5s"}}')`,
	`select existed from perdure.schedule_alarm('a', 'remind', '{"id": "5"}')`,
	`select id from perdure.send_event('door', 'front', '{"type": "ADD", "n": 6}')`,
	`select perdure.emit('order.placed', 'k', '{"id": "7"}')`,
}

func (f *fixture) callAll(t *testing.T, end string) {
	t.Helper()
	ctx := enginetest.Context(t)
	_, err := f.app.Exec(ctx, "begin")
	enginetest.NoError(t, err)
	for _, s := range work {
		f.call(t, s)
	}
	_, err = f.app.Exec(ctx, end)
	enginetest.NoError(t, err)
}

func TestARollbackLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.spawn(t, "front")
	before := f.db.Int(t, places)
	f.callAll(t, "rollback")
	equal(t, "rows after a rollback", f.db.Int(t, places), before)
	equal(t, "counter", f.db.Int(t, "select counter from perdure.outbox_clock"), 0)
}

func TestACommitRunsEverything(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	front := f.spawn(t, "front")
	f.callAll(t, "commit")
	f.runs(t, "begin 1", "begin 2", "mail 3", "mail 4", "remind 5")
	equal(t, "event", f.seen(t, front, 1)[0], 6)
	equal(t, "entries", f.db.Int(t, `select count(*) from perdure.v1_outbox where payload #>> '{json,events,0,payload,id}' = '7'`), 1)
	equal(t, "waiting", f.db.Int(t, `select count(*) from perdure.v1_instances where status = 'waiting'`), 2)
	equal(t, "policies", f.db.Int(t, `select count(*) from perdure.v1_hooks where namespace = 'shop' and max_attempts in (3, 20)`), 2)
	equal(t, "marks", f.db.Int(t, `select (select count(*) from perdure.sql_marks) + (select count(*) from perdure.sql_events) + (select count(*) from perdure.actor_inbox)`), 0)
}

func TestASavepointThatIsRolledBackLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.spawn(t, "front")
	ctx := enginetest.Context(t)
	_, err := f.app.Exec(ctx, "begin; savepoint a")
	enginetest.NoError(t, err)
	for _, s := range work {
		f.call(t, s)
	}
	_, err = f.app.Exec(ctx, "rollback to a")
	enginetest.NoError(t, err)
	f.call(t, `select id from perdure.trigger('shop', 'mail', '{"id": "kept"}')`)
	_, err = f.app.Exec(ctx, "commit")
	enginetest.NoError(t, err)
	f.runs(t, "mail kept") // the mark of the savepoint was rolled back, and set again
	equal(t, "instances", f.db.Int(t, "select count(*) from perdure.instances"), 0)
	equal(t, "counter", f.db.Int(t, "select counter from perdure.outbox_clock"), 0)
}

func TestASignalWakesAnInstanceOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	id := f.call(t, `select id from perdure.start('order', '{"id": "1"}')`)
	f.runs(t, "begin 1")
	enginetest.Eventually(t, "the instance waits", func() bool { return f.db.Int(t, "select count(*) from perdure.waiting") == 1 })
	equal(t, "duplicate", f.call(t, `select duplicate from perdure.signal($1, 'ignored', null, '{"key": "k"}')`, id), "false")
	equal(t, "duplicate", f.call(t, `select duplicate from perdure.signal($1, 'ignored', null, '{"key": "k"}')`, id), "true")
	equal(t, "duplicate", f.call(t, `select duplicate from perdure.signal($1, 'paid', '{"by": "card"}')`, id), "false")
	f.runs(t, "begin 1", "paid 1")
	enginetest.Eventually(t, "the instance finishes", func() bool {
		i, err := f.machines.Get(enginetest.Context(t), id)
		enginetest.NoError(t, err)
		return i.Status == fsm.Done
	})
	_, err := query(f.app, `select duplicate from perdure.signal($1, 'paid')`, id)
	equal(t, "a signal to a finished instance", state(err), "55000")
}

func TestIdsAndKeysMakeCallsIdempotent(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	const id = "0a000000-0000-4000-8000-000000000001"
	start := func(options string) string {
		return f.call(t, `select id || ' ' || duplicate from perdure.start('order', '{"id": "1"}', $1)`, options)
	}
	equal(t, "start", start(`{"id": "`+id+`", "if_absent": true, "at": "2199-01-01T00:00:00Z"}`), id+" false")
	equal(t, "start again", start(`{"id": "`+id+`", "if_absent": true}`), id+" true")
	_, err := query(f.app, `select id from perdure.start('order', '{}', $1)`, `{"id": "`+id+`"}`)
	equal(t, "a taken id", state(err), "23505")
	owner := start(`{"unique_key": "u", "unique_scope": "always", "delay": 3600}`)
	equal(t, "a taken key", start(`{"unique_key": "u", "id": "0a000000-0000-4000-8000-000000000002"}`), owner[:36]+" true")
	equal(t, "keys across machines differ", start(`{"unique_key": "u", "unique_across": true, "delay": "1 day"}`)[36:], " false")
	trigger := func(options string) string {
		return f.call(t, `select id || ' ' || duplicate from perdure.trigger('shop', 'mail', '{"id": "1"}', $1)`, options)
	}
	equal(t, "trigger", trigger(`{"id": "m", "if_absent": true, "delay": "1h"}`), "m false")
	equal(t, "trigger again", trigger(`{"id": "m", "if_absent": true}`), "m true")
	_, err = query(f.app, `select id from perdure.trigger('shop', 'mail', null, '{"id": "m"}')`)
	equal(t, "a taken id of a hook", state(err), "23505")
	alarm := func(options string) string {
		return f.call(t, `select existed from perdure.schedule_alarm('a', 'remind', '{"id": "1"}', $1)`, options)
	}
	equal(t, "alarm", alarm(`{"every": "1h"}`), "false")
	due := f.call(t, `select now() + interval '1h'`)
	equal(t, "alarm again", alarm(`{"every": "1h", "if_absent": true}`), "true")
	equal(t, "the same ticks", alarm(`{"every": "1h"}`), "true")
	equal(t, "alarms that kept their tick", f.db.Int(t, `select count(*) from perdure.v1_alarms where due_at <= '`+due+`' and status = 'scheduled'`), 1)
	equal(t, "another time", alarm(`{"delay": "3h"}`), "true")
	equal(t, "alarms that moved", f.db.Int(t, `select count(*) from perdure.v1_alarms where due_at > '`+due+`'`), 1)
	equal(t, "ready", f.db.Int(t, "select count(*) from perdure.ready"), 5)
}

func TestADatabaseTriggerStartsWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.exec(t, "create schema store", "create table store.orders (id text primary key)", "grant usage on schema store to "+f.role, "grant insert on store.orders to "+f.role,
		`create function store.placed() returns trigger language plpgsql as $$
		begin
			perform perdure.start('order', jsonb_build_object('id', new.id));
			perform perdure.emit('order.placed', new.id, to_jsonb(new));
			return new;
		end $$`,
		"create trigger placed after insert on store.orders for each row execute function store.placed()")
	ctx := enginetest.Context(t)
	_, err := f.app.Exec(ctx, "insert into store.orders values ('1'), ('2')")
	enginetest.NoError(t, err)
	_, err = f.app.Exec(ctx, "begin; insert into store.orders values ('3'); rollback")
	enginetest.NoError(t, err)
	f.runs(t, "begin 1", "begin 2")
	equal(t, "entries", f.db.Int(t, "select count(*) from perdure.outbox"), 1)
	equal(t, "events", f.db.Int(t, `select json_array_length(payload #> '{json,events}') from perdure.outbox`), 2)
}
