package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
	"github.com/perdure/perdure/task"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// patient is a database with something in every place.
type patient struct {
	*testing.T
	db      enginetest.Database
	eng     *perdure.Engine
	ids     map[string]string
	options Options
}

func admit(t *testing.T, db enginetest.Database) *patient {
	t.Helper()
	notes := schema.NewTable("notes", schema.String("text"))
	p := &patient{T: t, db: db, ids: map[string]string{}}
	p.eng = db.Open(t, &perdure.Options{Outbox: true, Schemas: []*schema.Schema{schema.New("app", notes)}})
	hooks, err := hook.New(p.eng, "test", nil)
	enginetest.NoError(t, err)
	_, err = p.eng.Outbox().Register(t.Context(), "reader", outbox.Stamp{})
	enginetest.NoError(t, err)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		enginetest.NoError(t, p.eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_, _ = tx.Create(notes, schema.Values{"text": "x"})
			_, err := hooks.TriggerIn(tx, "mail", 1, &hook.TriggerOptions{ID: "hook-" + id, Delay: time.Hour})
			return err
		}))
	}
	p.instances()
	p.fill()
	return p
}

// instances makes instances in every place.
func (p *patient) instances() {
	p.Helper()
	done := fsm.Define("done", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil))
	parked := fsm.Define("parked", 1, nil, fsm.Step("wait", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
		return r.Await("go").Then("wait"), nil
	}, nil))
	parent := fsm.Define("parent", 1, nil, fsm.Step("spawn", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
		return r.Spawn(fsm.ChildOf(parked, 0, nil)).Then("spawn"), nil
	}, nil))
	machines, err := fsm.New(p.eng, nil)
	enginetest.NoError(p.T, err)
	enginetest.NoError(p.T, machines.Register(done, parked, parent))
	later := func(o fsm.StartOptions) *fsm.StartOptions { o.Delay = time.Hour; return &o }
	for name, start := range map[string]struct {
		of *fsm.Definition[int]
		o  *fsm.StartOptions
	}{
		"DONE": {done, nil}, "OVER": {done, nil}, "PARKED": {parked, nil}, "DEAF": {parked, nil}, "PARENT": {parent, nil}, "LATER": {done, later(fsm.StartOptions{})},
		"MOVED": {done, later(fsm.StartOptions{})}, "UNIQUE": {done, later(fsm.StartOptions{Unique: "u"})},
		"DEADLINE": {done, later(fsm.StartOptions{Deadline: time.Hour})}, "HEAD": {done, later(fsm.StartOptions{Partition: "p"})},
	} {
		s, err := fsm.Start(p.Context(), p.eng, start.of, 0, start.o)
		enginetest.NoError(p.T, err)
		p.ids[name] = s.ID
	}
	_, err = fsm.Start(p.Context(), p.eng, done, 0, &fsm.StartOptions{Partition: "p"})
	enginetest.NoError(p.T, err)
	_, err = machines.Process(p.Context())
	enginetest.NoError(p.T, err)
}

// fill makes tasks and alarms.
func (p *patient) fill() {
	p.Helper()
	alarms, err := alarm.New(p.eng, nil)
	enginetest.NoError(p.T, err)
	for range 3 {
		if p.db.Name == enginetest.MySQL { // it has no tasks
			break
		}
		enginetest.NoError(p.T, p.eng.Update(p.Context(), func(tx *perdure.Tx) error {
			_, err := task.EnqueueIn(tx, "email", map[string]int{}, &task.EnqueueOptions{Delay: time.Hour})
			return err
		}))
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		enginetest.NoError(p.T, alarms.Schedule(p.Context(), alarm.ID(id), "tick", nil, &alarm.ScheduleOptions{Delay: time.Hour}))
	}
}

// examine returns the results of all checks by name.
func (p *patient) examine() map[string]Result {
	p.Helper()
	results, err := Run(p.Context(), p.eng, p.options)
	enginetest.NoError(p.T, err)
	all := map[string]Result{}
	for _, r := range results {
		if _, twice := all[r.Name]; twice {
			p.Errorf("%s was checked twice", r.Name)
		}
		all[r.Name] = r
	}
	return all
}

// damage is SQL that breaks each rule. T. stands for the tables' own names, and
// names in capitals for ids. A line break follows the semicolon between statements.
var damage = map[string]string{
	"fsm_place":     `delete from T.ready where id = 'LATER'`,
	"fsm_ended":     `insert into T.ready (queue, priority, due_at, id) select queue, priority, due_at, id from T.instances where id = 'OVER'`,
	"fsm_kept":      `delete from T.instances where id = 'DONE'`,
	"fsm_ready":     `update T.instances set priority = 1 where id = 'MOVED'`,
	"fsm_wake":      `insert into T.signals (target_id, name, payload, created_at) select id, 'go', '1', created_at from T.instances where id = 'PARKED'`,
	"fsm_waiting":   `update T.instances set awaits = '["other"]' where id = 'DEAF'`,
	"fsm_barrier":   `update T.barriers set pending = pending + 1`,
	"fsm_unique":    `delete from T.uniques where id = 'UNIQUE'`,
	"fsm_partition": `delete from T.partition_waiting`,
	"fsm_deadline":  `delete from T.deadlines`,
	"fsm_interrupt": `insert into T.interrupts (id, token) values ('OVER', 'ffffffff-ffff-ffff-ffff-ffffffffffff')`,
	"fsm_unrouted":  `insert into T.unrouted (queue, fsm, version, step, id) select queue, fsm, version, 'gone', id from T.instances where id = 'OVER'`,
	"fsm_unserved":  `insert into T.ready (queue, priority, due_at, id) select 'lonely', priority, LONGAGO, id from T.instances where id = 'DONE'`,
	"fsm_unread":    `update T.instances set error = 'decode state: odd' where id = 'HEAD'`,
	"schedule_unserved": `insert into T.schedules (name, fsm, version, spec, next_at, paused, updated_at)
		select 'orphan', 'gone', 1, '{}', created_at, false, created_at from T.instances where id = 'PARKED'`,
	"schedule_unread": `insert into T.schedules (name, fsm, version, spec, next_at, paused, updated_at)
		select 'odd', 'done', 1, '{"schedule":{"cron":"61 25 * * *"}}', created_at, false, created_at from T.instances where id = 'PARKED'`,
	"fsm_tree":      `insert into T.tree_ends (parent_id, first_fanout, last_fanout, kind, root_id, reason, due_at, created_at) select id, 1, 1, 'end', id, 'x', due_at, due_at from T.instances where id = 'UNIQUE'`,
	"hook_place":    `delete from T.ready where id = (select id from T.hook_items where KEY = 'hook-d')`,
	"hook_ready":    `update T.hook_items set priority = 1 where KEY = 'hook-e'`,
	"hook_ended":    `insert into T.hook_ends (id, status, created_at, finished_at) select 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'done', created_at, created_at from T.hook_items where KEY = 'hook-a'`,
	"hook_attempts": `update T.hook_items set attempt = max_attempts + 1 where KEY = 'hook-a'`,
	"hook_stuck": `delete from T.ready where id = (select id from T.hook_items where KEY = 'hook-b');
		insert into T.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
		select 'eeeeeeee-ffff-ffff-ffff-ffffffffffff', 'w', LANE('hook', TAB, 'test'), false, LONGAGO, LONGAGO, LIST(id) from T.hook_items where KEY = 'hook-b'`,
	"hook_unserved":  `update T.ready set due_at = LONGAGO where id = (select id from T.hook_items where KEY = 'hook-c')`,
	"hook_unhandled": `update T.ready set due_at = LONGAGO where id = (select id from T.hook_items where KEY = 'hook-c')`,
	"hook_kept": `insert into T.attempts (kind, id, seq, attempt, outcome, error, ended_at)
		select 'hook', 'ghost', 1, 1, 'failed', 'x', created_at from T.hook_items where KEY = 'hook-a'`,
	"task_ended":     `update Q.task set finished_at = enqueued_at where task_id = 1`,
	"task_stuck":     `update Q.task set status = 'processing', token = TOKEN, lease_expires_at = LONGAGO where task_id = 2`,
	"task_unserved":  `update Q.task set scheduled_at = LONGAGO where task_id = 3`,
	"task_unhandled": `update Q.task set scheduled_at = LONGAGO where task_id = 3`,
	"alarm_place":    `delete from T.ready where id = (select id from T.alarm_items where alarm_id = 'c')`,
	"alarm_ready":    `update T.alarm_items set priority = 1 where alarm_id = 'd'`,
	"alarm_stray":    `insert into T.ready (queue, priority, due_at, id) select queue, 0, due_at, 'cccccccc-ffff-ffff-ffff-ffffffffffff' from T.alarm_items where alarm_id = 'd'`,
	"alarm_orphan": `insert into T.timers (actor_type, actor_id, alarm_id, type, due_at, sequence, created_at)
		select 'lamp', 'ghost', 'y', 'after', due_at, 1, created_at from T.alarm_items where alarm_id = 'b'`,
	"alarm_stuck": `delete from T.ready where id = (select id from T.alarm_items where alarm_id = 'a');
		insert into T.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
		select 'dddddddd-ffff-ffff-ffff-ffffffffffff', 'w', LANE('alarm', TAB), false, LONGAGO, LONGAGO, LIST(id) from T.alarm_items where alarm_id = 'a'`,
	"alarm_unserved": `update T.ready set due_at = LONGAGO where id = (select id from T.alarm_items where alarm_id = 'b');
		update T.alarm_items set due_at = (select r.due_at from T.ready r where r.id = T.alarm_items.id) where alarm_id = 'b'`,
	"alarm_unhandled": `update T.ready set due_at = LONGAGO where id = (select id from T.alarm_items where alarm_id = 'b');
		update T.alarm_items set due_at = (select r.due_at from T.ready r where r.id = T.alarm_items.id) where alarm_id = 'b'`,
	"alarm_ended": `insert into T.timers (actor_type, actor_id, alarm_id, type, due_at, sequence, created_at)
		select 'lamp', 'done', 'x', 'after', due_at, 1, created_at from T.alarm_items where alarm_id = 'b'`,
	"alarm_kept": `insert into T.attempts (kind, id, seq, attempt, outcome, error, ended_at)
		select 'alarm', 'ghost', 1, 1, 'failed', 'x', created_at from T.hook_items where KEY = 'hook-a'`,
	"actor_snapshot": actorWithoutSnapshot,
	"actor_orphan":   `insert into T.checkpoints (actor_type, actor_id, sequence, machine, snapshot, timers, checksum) values ('lamp', 'ghost', 1, 1, '{}', '[]', '')`,
	"actor_ahead":    `insert into T.checkpoints (actor_type, actor_id, sequence, machine, snapshot, timers, checksum) values ('lamp', 'done', 9, 1, '{}', '[]', '')`,
	"actor_postponed": `insert into T.timers (actor_type, actor_id, alarm_id, type, due_at, occurs_at, sequence, created_at)
		select 'lamp', 'sealed', 'z', 'after', due_at, created_at, 1, created_at from T.alarm_items where alarm_id = 'a'`,
	"delay_quarantined": `insert into T.timers (actor_type, actor_id, alarm_id, type, status, error, due_at, sequence, created_at)
		select 'lamp', 'sealed', 'q', 'after', 'quarantined', 'process crashed', due_at, 1, created_at from T.alarm_items where alarm_id = 'a'`,
	"consumers":    `update T.outbox_consumers set updated_at = LONGAGO`,
	"outbox":       `delete from T.outbox where unit_id = (select min(unit_id) from T.outbox)`,
	"audit_log":    `update T.audit_chains set seq = 1 where chain = 1`,
	"dead_letters": `insert into T.finished (id, status, finished_at) select id, 'failed', created_at from T.instances where id = 'PARENT'`,
}

// postgresDamage is damage of what only PostgreSQL has.
var postgresDamage = map[string]string{
	"task_rights": `grant select on Q.task to perdure_worker`,
}

// actorWithoutSnapshot is an actor without a snapshot.
const actorWithoutSnapshot = `insert into T.actors (type, id, incarnation, status, machine, sequence, states, origin, caller_kind, caller_id, created_at, updated_at)
	select 'lamp', 'done', 'i', 'done', 1, 1, '', 'spawn', 'system', 's', created_at, created_at from T.instances where id = 'PARKED'`

func (p *patient) statement(text string) string {
	for name, id := range p.ids {
		text = strings.ReplaceAll(text, "'"+name+"'", "'"+id+"'")
	}
	words := []string{"LONGAGO", "now() - interval '30 days'", "NOW", "now()", "KEY", "key", "BYTES('", "('\\x", "TOKEN", "gen_random_uuid()", "LIST(id)", "array[id]", "LANE(", "concat(", "TAB", "chr(9)", "Q.", "queues.", "T.", "perdure."}
	if p.db.Name == enginetest.SQLite {
		longAgo := fmt.Sprint(time.Now().Add(-30 * 24 * time.Hour).UnixMicro())
		words = []string{"LONGAGO", longAgo, "NOW", fmt.Sprint(time.Now().UnixMicro()), "KEY", "key", "BYTES(", "unhex(", "TOKEN", "'x'", "LIST(id)", "json_array(id)", "LANE(", "concat(", "TAB", "char(9)", "Q.", "queues_", "T.", "perdure_"}
	}
	if p.db.Name == enginetest.MySQL {
		words = []string{"LONGAGO", "utc_timestamp(6) - interval 30 day", "NOW", "utc_timestamp(6)", "KEY", "`key`", "BYTES(", "unhex(", "LIST(id)", "json_array(id)", "LANE(", "concat(", "TAB", "char(9 using utf8mb4)", "T.", "perdure_"}
	}
	return strings.NewReplacer(words...).Replace(text)
}

// sound asserts that no check finds anything. The durability of a test's server may be relaxed.
func (p *patient) sound() {
	p.Helper()
	for name, r := range p.examine() {
		if r.Severity != OK && name != "durability" && name != "task_rights" && name != "pool_size" {
			p.Errorf("in a sound database: %s: %+v", name, r)
		}
	}
}

// harm runs the statements of a damage.
func (p *patient) harm(text string) {
	p.Helper()
	for _, statement := range strings.Split(text, ";\n") {
		p.db.Exec(p.T, p.statement(statement))
	}
}

// Every check finds the damage that it is for, and nothing in a sound database.
func TestEveryCheckFindsItsDamage(t *testing.T) {
	t.Parallel()
	for _, name := range enginetest.Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := admit(t, enginetest.Empty(t, name)) // a copy of a database has not the rights on it
			for check, r := range p.examine() {
				if r.Severity != OK && (check != "durability" || name != enginetest.MySQL) { // that of a test's server is relaxed
					t.Errorf("in a sound database: %s: %+v", check, r)
				}
			}
			damage := maps.Clone(damage)
			if name == enginetest.MySQL {
				maps.DeleteFunc(damage, func(check, _ string) bool { return strings.HasPrefix(check, "task_") })
			}
			order := []string{"actor_snapshot"} // others need the actor
			for check := range damage {
				if check != "actor_snapshot" && check != "fsm_kept" {
					order = append(order, check)
				}
			}
			for _, check := range append(order, "fsm_kept") {
				p.harm(damage[check])
			}
			done := slices.Collect(maps.Keys(damage))
			if name == enginetest.Postgres {
				for check, text := range postgresDamage {
					p.harm(text)
					done = append(done, check)
				}
			}
			found := p.examine()
			for _, check := range done {
				r := found[check]
				if r.Severity != find(check).Severity || r.Total == 0 || r.Means == "" || r.Do == "" {
					t.Errorf("%s: %+v", check, r)
				}
			}
		})
	}
}

func TestASoundMySQLIsSound(t *testing.T) {
	t.Parallel()
	p := admit(t, enginetest.New(t, enginetest.MySQL))
	for name, r := range p.examine() {
		if r.Severity == Broken && name != "durability" { // that of a test's server is relaxed
			t.Errorf("%s: %+v", name, r)
		}
	}
	p.db.Exec(t, "update perdure_hook_items set attempt = max_attempts + 1")
	if r := p.examine()["hook_attempts"]; r.Severity != Broken || r.Total != 5 {
		t.Errorf("got %+v", r)
	}
	p.db.Exec(t, "delete from perdure_ready where id = '"+p.ids["LATER"]+"'")
	if r := p.examine()["fsm_place"]; r.Severity != Broken || r.Total != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestEveryRuleIsChecked(t *testing.T) {
	t.Parallel()
	harmed := map[string]bool{}
	for _, r := range store.Rules {
		if !slices.ContainsFunc(Checks, func(c Check) bool { return c.rule == r.Name }) {
			t.Errorf("%s is checked by nobody", r.Name)
		}
	}
	for _, d := range slices.Concat(rowDamage, schemaDamage, []planted{{check: "times"}, {check: "task_times"}}) {
		harmed[d.check] = true
	}
	settings := []string{"migrations", "version", "clock_skew", "durability", "pool_size", "pooler", "wal_mode", "integrity", "cluster", "horizon"}
	for _, c := range Checks {
		if damage[c.Name] == "" && postgresDamage[c.Name] == "" && !harmed[c.Name] && !slices.Contains(settings, c.Name) {
			t.Errorf("no test damages what %s checks", c.Name)
		}
		if c.Holds == "" || c.Means == "" || c.Do == "" {
			t.Errorf("%s does not say what it means", c.Name)
		}
	}
}

func TestMissingMigrationsAreAResult(t *testing.T) {
	t.Parallel()
	db := enginetest.Empty(t, enginetest.SQLite)
	_, err := perdure.Open(t.Context(), db.DSN, &perdure.Options{NoMigrate: true})
	results, ok := NotMigrated(err)
	if !ok || Worst(results) != Broken || results[0].Name != "migrations" {
		t.Errorf("got %+v for %v", results, err)
	}
	if _, ok := NotMigrated(errors.Join(fault.ErrClosed)); ok {
		t.Error("another error is not a lack of migrations")
	}
}
