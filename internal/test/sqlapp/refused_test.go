package sqlapp_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/test/enginetest"
)

const (
	invalid       = "22023" // invalid_parameter_value
	malformed     = "22P02"
	malformedTime = "22007"
	missing       = "P0002" // no_data_found
	unique        = "23505"
	noFunction    = "42883"
	denied        = "42501"
)

// wrong are calls that are refused, and the SQLSTATE of each.
var wrong = map[string][]string{
	missing: {
		`perdure.start('unknown', '{}')`, `perdure.start(null, '{}')`, `perdure.start('order', '{}', '{"version": 2}')`,
		`perdure.signal('0a000000-0000-4000-8000-000000000001', 'paid')`, `perdure.signal(null, 'paid')`,
		`perdure.send_event('door', 'none', '{"type": "ADD"}')`, `perdure.send_event('none', 'front', '{"type": "ADD"}')`,
	},
	invalid: {
		`perdure.start('order', '{}', '{"unknown": 1}')`, `perdure.start('order', '{}', '[]')`, `perdure.start('order', '{}', '{"version": 0}')`,
		`perdure.start('order', '{}', '{"version": 1.5}')`, `perdure.start('order', '{}', '{"version": "1"}')`, `perdure.start('order', '{}', '{"id": "x"}')`,
		`perdure.start('order', '{}', '{"id": "0A000000-0000-4000-8000-000000000001"}')`, `perdure.start('order', '{}', '{"id": 1}')`,
		`perdure.start('order', '{}', '{"if_absent": true}')`, `perdure.start('order', '{}', '{"if_absent": "yes"}')`,
		`perdure.start('order', '{}', '{"id": "0a000000-0000-4000-8000-000000000001", "if_absent": true, "unique_key": "u"}')`,
		`perdure.start('order', '{}', '{"queue": " x"}')`, `perdure.start('order', '{}', '{"queue": "a\u200bb"}')`, `perdure.start('order', '{}', '{"priority": "urgent"}')`,
		`perdure.start('order', '{}', '{"priority": 1}')`, `perdure.start('order', '{}', '{"at": "infinity"}')`, `perdure.start('order', '{}', '{"at": "-infinity"}')`,
		`perdure.start('order', '{}', '{"at": "9999-01-01T00:00:00Z"}')`, `perdure.start('order', '{}', '{"at": "2030-01-01", "delay": 1}')`,
		`perdure.start('order', '{}', '{"delay": -1}')`, `perdure.start('order', '{}', '{"delay": "101 years"}')`, `perdure.start('order', '{}', '{"delay": []}')`,
		`perdure.start('order', '{}', '{"deadline": "-1s"}')`, `perdure.start('order', '{}', '{"unique_scope": "forever"}')`, `perdure.start('order', '{}', '{"step": "none"}')`,
		`perdure.start('order', '{}', jsonb_build_object('unique_key', repeat('k', 513)))`, `perdure.start('order', '{}', jsonb_build_object('partition_key', repeat('é', 257)))`,
		`perdure.start('order', '[1e400]')`, `perdure.start('order', '{"a": 1e-400}')`, `perdure.start('order', (repeat('[', 32) || repeat(']', 32))::jsonb)`,
		`perdure.start('order', to_jsonb(repeat('x', 1048575)))`,
		`perdure.signal('0a000000-0000-4000-8000-000000000001', '')`, `perdure.signal('0a000000-0000-4000-8000-000000000001', 'paid', null, '{"keys": "x"}')`,
		`perdure.trigger('', 'mail')`, `perdure.trigger(null, 'mail')`, `perdure.trigger('shop', null)`, `perdure.trigger('shop', 'mail ')`, `perdure.trigger('shop', E'a\tb')`,
		`perdure.trigger('shop', repeat('é', 65))`, `perdure.trigger('actor', 'event/door')`, `perdure.trigger('shop', 'mail', null, '{"if_absent": true}')`,
		`perdure.trigger('shop', 'mail', null, jsonb_build_object('id', repeat('k', 129)))`, `perdure.trigger('shop', 'mail', null, '{"retry": 3}')`,
		`perdure.trigger('shop', 'mail', null, '{"retry": {"kind": "sometimes", "max_attempts": 1}}')`, `perdure.trigger('shop', 'mail', null, '{"retry": {"kind": "fixed"}}')`,
		`perdure.trigger('shop', 'mail', null, '{"retry": {"kind": "none", "max_attempts": 2}}')`, `perdure.trigger('shop', 'mail', null, '{"retry": {"kind": "fixed", "max_attempts": 10001}}')`,
		`perdure.trigger('shop', 'mail', null, '{"retry": {"kind": "exponential", "max_attempts": 2}}')`, `perdure.trigger('shop', 'mail', null, '{"retry": {"kind": "fixed", "max_attempts": 2, "jitter": 2}}')`,
		`perdure.schedule_alarm('', 'remind')`, `perdure.schedule_alarm(repeat('a', 257), 'remind')`, `perdure.schedule_alarm('a', 'webhook')`, `perdure.schedule_alarm('a', 'perdure.x')`,
		`perdure.schedule_alarm('a', 'remind', null, '{"actor_id": "x"}')`, `perdure.schedule_alarm('a', 'remind', null, '{"every": 0}')`, `perdure.schedule_alarm('a', 'remind', null, '{"cron": "@daily"}')`,
		`perdure.schedule_alarm('a', 'remind', null, '{"missed": "all"}')`, `perdure.schedule_alarm('a', 'remind', null, '{"every": 1, "max_missed": 5}')`,
		`perdure.schedule_alarm('a', 'remind', null, '{"every": 1, "missed": "never"}')`, `perdure.schedule_alarm('a', 'remind', null, '{"webhook": "http://127.0.0.1"}')`,
		`perdure.send_event('door', 'front', '[]')`, `perdure.send_event('door', 'front', null)`, `perdure.send_event('door', 'front', '{"type": ""}')`, `perdure.send_event('door', 'front', '{"type": 1}')`,
		`perdure.send_event('door', 'front', '{"type": "*"}')`, `perdure.send_event('door', 'front', '{"type": "xstate.init"}')`, `perdure.send_event('door', 'front', '{"type": "RESUME"}')`,
		`perdure.send_event('door', 'front', '{"type": "A"}', '{"caller": {"type": "system", "id": "x"}}')`, `perdure.send_event('door', 'front', '{"type": "A"}', '{"caller": {"type": "client"}}')`,
		`perdure.send_event('door', 'front', jsonb_build_object('type', repeat('x', 513)))`, `perdure.send_event('door', '', '{"type": "A"}')`,
		`perdure.emit('', 'k', '{}')`, `perdure.emit(null, 'k', '{}')`, `perdure.emit('t ', 'k', '{}')`, `perdure.emit('t', repeat('k', 513), '{}')`, `perdure.emit('t', 'k', '[1e400]')`,
	},
	malformed:     {`perdure.start('order', '{"a": NaN}')`, `perdure.start('order', '{')`, `perdure.signal('x', 'paid')`},
	malformedTime: {`perdure.start('order', '{}', '{"at": "tomorrow at noon, perhaps"}')`, `perdure.start('order', '{}', '{"delay": "soon"}')`},
	"22P05":       {`perdure.start('order', '{"a": "\u0000"}')`},
	noFunction:    {`perdure.start('order')`, `perdure.start('order', '{}'::json)`},
}

func TestWrongCallsAreRefusedAndLeaveNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.spawn(t, "front")
	before := f.db.Int(t, places)
	for want, calls := range wrong {
		for _, c := range calls {
			_, err := f.app.Exec(enginetest.Context(t), "select "+c)
			if got := state(err); got != want {
				t.Errorf("%.150s: %v, want %s", c, err, want)
			}
		}
	}
	equal(t, "rows", f.db.Int(t, places), before)
}

// Names and documents that Go accepts are accepted, and the reverse.
func TestTheChecksAreThoseOfGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	names := []string{
		"a", "send mail", "Überweisung", "x.y/z:1", "日本", "😀", strings.Repeat("a", 128), "", " a", "a ", " ", "a\n", "a\tb", "\x7f", strings.Repeat("a", 129),
		"a\u00a0b", "a\u200bb", "\u202eabc", "\ufeffa", "\u0085", "a\u00adb", "\u2028", "\ue000", "\u3000", "\U000f0000", strings.Repeat("é", 64), strings.Repeat("é", 65),
	}
	for _, name := range names {
		_, err := query(f.app, "select id from perdure.trigger($1, 'x', null, '{\"delay\": 3600}')", name)
		if (err == nil) != (edge.Name("namespace", name) == nil) {
			t.Errorf("%q: SQL %v, Go %v", name, err, edge.Name("namespace", name))
		}
	}
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	documents := []string{
		"null", "1", `"x"`, "[]", "{}", deep(31), deep(32), `{"a": ` + deep(30) + `}`, `{"a": ` + deep(31) + `}`, "[" + strings.Repeat("[],", 60) + "1]",
		"1e308", "1e309", "-1e309", "1e-300", "1e-400", "9" + strings.Repeat("0", 300), `"` + strings.Repeat("1", 400) + `"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\u0000"`,
	}
	for _, d := range documents {
		_, err := query(f.app, "select id from perdure.trigger('other', 'x', $1::text::jsonb, '{\"delay\": 3600}')", d)
		if (err == nil) != (edge.JSON("payload", []byte(d), 0) == nil) {
			t.Errorf("%.60s: SQL %v, Go %v", d, err, edge.JSON("payload", []byte(d), 0))
		}
	}
}

// What SQL stores is what Go would have stored.
func TestRowsAreThoseOfGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	_, err := f.machines.StartNamed(enginetest.Context(t), "order", 0, []byte(`{"id": "1"}`), &fsm.StartOptions{Delay: never, Deadline: 2 * never, Partition: "go", Unique: "go", Priority: -1})
	enginetest.NoError(t, err)
	f.call(t, `select id from perdure.start('order', '{"id": "1"}', '{"delay": "24h", "deadline": "48 hours", "partition_key": "sql", "unique_key": "sql", "priority": "high"}')`)
	const shape = `select count(distinct (to_jsonb(i) - array['id', 'state', 'due_at', 'deadline_at', 'created_at', 'partition_key', 'unique_key'])
		|| jsonb_build_object('delay', due_at - created_at, 'deadline', deadline_at - created_at, 'state', state::jsonb,
			'ready', (select count(*) from perdure.ready r where r.id = i.id and r.due_at = i.due_at and r.queue = i.queue and r.priority = i.priority),
			'dead', (select count(*) from perdure.deadlines d where d.id = i.id and d.at = i.deadline_at),
			'head', (select count(*) from perdure.partition_heads h where h.key = i.partition_key and h.head = i.id),
			'unique', (select count(*) from perdure.uniques u where u.id = i.id and u.key = i.unique_key and u.name = i.fsm))) from perdure.instances i`
	equal(t, "instances", f.db.Int(t, "select count(*) from perdure.instances"), 2)
	equal(t, "kinds of instances", f.db.Int(t, shape), 1)
}
