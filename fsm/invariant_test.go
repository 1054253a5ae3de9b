package fsm_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// Every invariant finds what breaks it, and nothing in a database that has an
// instance in every place.
func TestInvariantsFindWhatIsPlanted(t *testing.T) {
	planted := map[string]string{
		"InvariantPlace: nowhere":       `delete from T.ready where id = 'SCHEDULED'`,
		"InvariantPlace: ready":         `insert into T.ready (queue, priority, due_at, id) select queue, priority, due_at, id from T.instances where id = 'PARKED'`,
		"InvariantPlace: interrupted":   `insert into T.interrupts (id, token) select 'RUNNING', token from T.leases`,
		"InvariantEnded: ready":         `insert into T.ready (queue, priority, due_at, id) select queue, priority, due_at, id from T.instances where id = 'DONE'`,
		"InvariantKept: signal":         `insert into T.signals (target_id, name, payload, created_at) select '00000000-0000-0000-0000-000000000001', 'x', '1', created_at from T.instances where id = 'DONE'`,
		"InvariantEnded: nobody":        `insert into T.waiting (id, names) select 'ffffffff-ffff-ffff-ffff-ffffffffffff', names from T.waiting where id = 'PARKED'`,
		"InvariantKept":                 `delete from T.instances where id = 'DONE'`,
		"InvariantReady":                `update T.instances set priority = 1 where id = 'SCHEDULED'`,
		"InvariantWake":                 `insert into T.signals (target_id, name, payload, created_at) select id, 'go', '1', created_at from T.instances where id = 'PARKED'`,
		"InvariantWaiting":              `update T.instances set awaits = '["other"]' where id = 'PARKED'`,
		"InvariantBarrier: too many":    `update T.barriers set pending = pending + 1`,
		"InvariantBarrier: open":        `update T.barriers set until = pending`,
		"InvariantBarrier: other":       `update T.barriers set fanout = fanout + 1`,
		"InvariantBarrier: uncounted":   `update T.barriers set pending = 1000000000`,
		"InvariantUnique: lost":         `delete from T.uniques where id = 'SCHEDULED'`,
		"InvariantUnique: left":         `insert into T.uniques (name, key, id) values ('leaf', 'old', 'DONE')`,
		"InvariantPartition: lost":      `delete from T.partition_waiting`,
		"InvariantPartition: twice":     `update T.partition_waiting set id = (select head from T.partition_heads)`,
		"InvariantPartition: headless":  `delete from T.partition_heads`,
		"InvariantPartition: past tail": `update T.partition_heads set tail = 0`,
		"InvariantDeadline: lost":       `delete from T.deadlines`,
		"InvariantDeadline: other":      `update T.instances set deadline_at = null where id = 'SCHEDULED'`,
		"InvariantTree: alive":          `insert into T.tree_ends (parent_id, first_fanout, last_fanout, kind, root_id, reason, due_at, created_at) select id, 1, 1, 'end', id, 'x', due_at, due_at from T.instances where id = 'PARKED'`,
		"InvariantTree: stranger":       `update T.finished set ended_by = id where id = 'DONE'`,
		"InvariantInterrupt":            `insert into T.interrupts (id, token) values ('DONE', 'ffffffff-ffff-ffff-ffff-ffffffffffff')`,
	}
	var lost counter
	options := quiet(&lost)
	options.Queues = map[string]int{fsm.DefaultQueue: 1} // the held instance keeps the worker from claiming what is planted
	eachWith(t, *options, func(f *fixture) {
		p := &planting{fixture: f, parked: parker("parked", "go")}
		p.running = machine("running", func(_ context.Context, r run) (fsm.Outcome, error) { p.held.pass(r.ID); return r.Done(nil), nil })
		p.parent = parentOf("parent", func(r run) fsm.Outcome { return r.Spawn(fsm.ChildOf(p.parked, 0, nil)) }, story)
		f.register(p.parked, p.parent, p.running, leaf)
		for rule, corruption := range planted {
			p.plant(rule, corruption)
		}
	})
}

// planting is a fixture whose tables are corrupted.
type planting struct {
	*fixture
	held                    *gate
	running, parked, parent *fsm.Definition[int]
}

// plant makes an instance in every place, corrupts the tables, has that found, and
// removes everything.
func (p *planting) plant(rule, corruption string) {
	t := p.t
	p.held = newGate(t)
	ids := map[string]string{
		"PARKED": start(p.fixture, p.parked, 0, nil), "DONE": start(p.fixture, leaf, 1, nil),
		"SCHEDULED": start(p.fixture, leaf, 1, &fsm.StartOptions{Delay: time.Hour, Unique: "u", Deadline: time.Hour, Partition: "p"}),
	}
	start(p.fixture, leaf, 1, &fsm.StartOptions{Partition: "p"})
	start(p.fixture, p.parent, 0, nil)
	start(p.fixture, machine("unknown", done), 0, nil)
	p.drain()
	ids["RUNNING"] = start(p.fixture, p.running, 0, nil)
	wait := p.begin()
	p.held.await(t)
	if found := violations(t, p.eng); len(found) != 0 {
		t.Errorf("found in a sound database: %v", found)
	}
	p.db.Exec(t, p.statement(corruption, ids))
	var rules []string
	for _, v := range violations(t, p.eng) {
		rules = append(rules, v.Rule)
	}
	if name, _, _ := strings.Cut(rule, ":"); !slices.Contains(rules, name) {
		t.Errorf("%s: found are %v", rule, rules)
	}
	p.held.release()
	wait()
	for _, table := range tables {
		p.db.Exec(t, "delete from "+p.table(table))
	}
}

// statement fills in the names of the tables and the ids.
func (p *planting) statement(text string, ids map[string]string) string {
	for name, id := range ids {
		text = strings.ReplaceAll(text, name, id)
	}
	for _, table := range tables {
		text = strings.ReplaceAll(text, "T."+table, p.table(table))
	}
	if p.db.Name == enginetest.MySQL { // where it is a word of the language
		text = strings.ReplaceAll(text, "(name, key, id)", "(name, `key`, id)")
	}
	if p.db.Name == enginetest.Postgres { // a selected literal has no type of its own
		for _, id := range []string{ids["RUNNING"], "ffffffff-ffff-ffff-ffff-ffffffffffff"} {
			text = strings.ReplaceAll(text, "select '"+id+"'", "select '"+id+"'::uuid")
		}
	}
	return text
}

// tables are those of state machines.
var tables = []string{
	"instances", "ready", "leases", "interrupts", "finished", "waiting", "signals", "signal_keys", "barriers", "partition_heads", "partition_waiting",
	"uniques", "deadlines", "unrouted", "tree_ends",
}
