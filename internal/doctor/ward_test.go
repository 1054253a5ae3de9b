package doctor

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/remote"
	"github.com/perdure/perdure/statechart"
)

// wait is a statechart that waits for an hour in its first state.
const wait = `{"id":"wait","initial":"a","states":{"a":{"after":{"3600000":"b"},"on":{"OUT":"b"}},"b":{"on":{"BACK":"a"}}}}`

// The names of the work that admitAll adds to a patient: for each kind of damage one item.
var (
	wardInstances = []string{"OVERDUE", "STALE", "MACHINELESS", "VERSIONLESS", "STEPLESS", "TYPED", "GARBLED", "FOREIGN", "ENDLESS", "LOCKED"}
	wardActors    = []string{"undelayed", "edited", "unsummed", "rewritten", "resummed", "gapped", "cut", "garbled", "pointed", "endless", "replaced"}
	wardSchedules = []string{"never", "late", "endless"}
	wardRemotes   = []string{"unreadable", "stepless", "unreachable", "secretless", "foreign", "misspelled"}
	wardHooks     = []string{"foreign", "policy", "endless"}
)

// admitAll returns a patient with more work: an item of each kind for each kind of damage.
func admitAll(t *testing.T, db enginetest.Database) *patient {
	t.Helper()
	p := admit(t, db)
	p.moreInstances()
	p.moreActors()
	p.moreHooks()
	return p
}

func (p *patient) moreInstances() {
	p.Helper()
	d := fsm.Define("done", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil))
	for _, name := range wardInstances {
		s, err := fsm.Start(p.Context(), p.eng, d, 0, &fsm.StartOptions{Delay: time.Hour, Deadline: 2 * time.Hour})
		enginetest.NoError(p.T, err)
		p.ids[name] = s.ID
	}
	for _, name := range wardSchedules {
		enginetest.NoError(p.T, fsm.SetSchedule(p.Context(), p.eng, name, "0 0 1 1 *", d, 0, nil))
	}
	registry, err := remote.New(p.eng, nil, nil)
	enginetest.NoError(p.T, err)
	p.Cleanup(registry.Close)
	for _, name := range wardRemotes {
		_, err := registry.Put(p.Context(), remote.Definition{Name: name, Version: 1, Steps: []remote.Step{{Name: "only", URL: "https://example.com/step"}}})
		enginetest.NoError(p.T, err)
	}
}

// moreActors spawns actors of stored statecharts. Each has made three transitions, has a
// checkpoint and waits for its timer.
func (p *patient) moreActors() {
	p.Helper()
	actors, err := actor.New(p.eng, nil)
	enginetest.NoError(p.T, err)
	by := actor.Caller{Kind: actor.Service, ID: "test"}
	types := map[string][]string{"wait": wardActors, "moved": {"left"}, "changed": {"x"}}
	for name, ids := range types {
		_, err := actors.StoreStatechart(p.Context(), name, []byte(strings.Replace(wait, "wait", name, 1)), &actor.StatechartOptions{LogRetention: 100})
		enginetest.NoError(p.T, err)
		for _, id := range ids {
			ref := actor.Ref{Type: name, ID: id}
			_, err := actors.Spawn(p.Context(), ref, by, nil, nil)
			enginetest.NoError(p.T, err)
			for _, event := range []string{"OUT", "BACK"} {
				_, err := actors.Send(p.Context(), ref, by, statechart.Event{Type: event}, nil)
				enginetest.NoError(p.T, err)
			}
		}
	}
	p.options.Replay = actors.Verify
}

func (p *patient) moreHooks() {
	p.Helper()
	hooks, err := hook.New(p.eng, "ward", nil)
	enginetest.NoError(p.T, err)
	alarms, err := alarm.New(p.eng, nil)
	enginetest.NoError(p.T, err)
	for _, name := range wardHooks {
		enginetest.NoError(p.T, p.eng.Update(p.Context(), func(tx *perdure.Tx) error {
			_, err := hooks.TriggerIn(tx, "mail", 1, &hook.TriggerOptions{ID: "ward-" + name, Delay: time.Hour})
			return err
		}))
		enginetest.NoError(p.T, alarms.Schedule(p.Context(), alarm.ID("ward-"+name), "tick", nil, &alarm.ScheduleOptions{Delay: time.Hour}))
	}
}

// foreign is a value that is encrypted with a key that no process has.
const foreign = `'{"$sealed":"v1","key":"gone","data":"AAAA"}'`

// planted is damage that a check must find. found is part of the finding: its id and its detail,
// separated by a space.
type planted struct {
	check, found, sql string
	// only is the database that has the kind of damage, "" for all.
	only string
}

// rowDamage changes rows. T. stands for the tables' own names, and names in capitals for ids.
var rowDamage = []planted{
	{"fsm_unhandled", "OVERDUE done@1", `update T.ready set due_at = LONGAGO where id = 'OVERDUE'`, ""},
	{"fsm_stuck", "STALE done@1, claimed by w", `delete from T.ready where id = 'STALE';
		insert into T.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
		select 'eeeeeeee-aaaa-ffff-ffff-ffffffffffff', 'w', queue, false, LONGAGO, LONGAGO, LIST(id) from T.instances where id = 'STALE'`, ""},
	{"fsm_unknown", "MACHINELESS gone@1 was never served", `update T.instances set fsm = 'gone' where id = 'MACHINELESS'`, ""},
	{"fsm_unknown", "VERSIONLESS done@99 was never served", `update T.instances set version = 99 where id = 'VERSIONLESS'`, ""},
	{"fsm_unknown", "STEPLESS done@1 has no step nowhere", `update T.instances set step = 'nowhere' where id = 'STEPLESS'`, ""},
	{"fsm_state", "TYPED the state of 1 instances of done@1 is string", `update T.instances set state = '"text"' where id = 'TYPED'`, ""},
	{"fsm_state", "GARBLED the state of 1 instances of done@1 is no JSON", `update T.instances set state = 'oops' where id = 'GARBLED'`, enginetest.SQLite},
	{"fsm_state", "GARBLED the state of 1 instances of done@1 is no JSON", `update T.instances set state = 'oops' where id = 'GARBLED'`, enginetest.MySQL},
	{"keys", `instances.state/FOREIGN cannot be decrypted: this process does not have key "gone"`, `update T.instances set state = ` + foreign + ` where id = 'FOREIGN'`, ""},
	{"keys", `hooks.payload`, `update T.hook_items set payload = ` + foreign + ` where KEY = 'ward-foreign'`, ""},
	{"keys", `alarms.payload`, `update T.alarm_items set payload = ` + foreign + ` where alarm_id = 'ward-foreign'`, ""},
	{"keys", `signals.payload`, `insert into T.signals (target_id, name, payload, created_at) select id, 'never', ` + foreign + `, created_at from T.instances where id = 'LOCKED'`, ""},
	{"hook_policy", "ward-policy has the retry policy 7", `update T.hook_items set policy = '7' where KEY = 'ward-policy'`, ""},
	{"alarm_policy", "ward-policy has the retry policy 7", `update T.alarm_items set policy = '7' where alarm_id = 'ward-policy'`, ""},

	{"actor_replay", "wait/undelayed timer", `delete from T.timers where actor_id = 'undelayed'`, ""},
	{"actor_checksum", "wait/edited transition 3: the snapshot does not match its checksum", `update T.actors set snapshot = '{}' where id = 'edited'`, ""},
	{"actor_checksum", "wait/unsummed transition 3: the snapshot does not match its checksum", `update T.actors set checksum = 'x' where id = 'unsummed'`, ""},
	{"actor_replay", "wait/rewritten log is broken", `update T.actor_log set event = '{"type":"NONE"}' where actor_id = 'rewritten' and sequence = 2`, ""},
	{"actor_checksum", "wait/resummed transition 3: the snapshot and the log have different checksums", `update T.actor_log set checksum = 'x' where actor_id = 'resummed' and sequence = 3`, ""},
	{"actor_log", "wait/gapped has gaps in its log", `delete from T.actor_log where actor_id = 'gapped' and sequence = 2`, ""},
	{"actor_log", "wait/cut has no log of its last transition", `delete from T.actor_log where actor_id = 'cut' and sequence = 3`, ""},
	{"actor_log", "wait/pointed has a log from transition 3, and no checkpoint", `delete from T.actor_log where actor_id = 'pointed' and sequence < 3`, ""},
	{"actor_checksum", "wait/replaced checkpoint 3: the snapshot does not match its checksum", `insert into T.checkpoints (actor_type, actor_id, sequence, machine, snapshot, timers, checksum) values ('wait', 'replaced', 3, 1, '{}', '[]', 'x')`, ""},
	{"actor_replay", "wait/garbled timer", `update T.timers set payload = '{}' where actor_id = 'garbled'`, ""},
	{"actor_machine", "moved/left has version 7 of its statechart", `update T.actors set machine = 7 where type = 'moved'`, ""},
	{"actor_replay", "changed version 1 of the statechart does not match its checksum", `update T.machines set document = '{"id":"changed","initial":"b","states":{"b":{}}}' where name = 'changed'`, ""},
	{"actor_unserved", "dimmer 1 active actors", strings.Replace(actorWithoutSnapshot, "'lamp', 'done', 'i', 'done'", "'dimmer', 'd', 'i', 'active'", 1), ""},
	{"actor_unserved", "dimmer", `insert into T.nodes (id, host, pid, version, roles, work, running, started_at, seen_at)
		values ('n', 'h', 1, 'v', '[]', '{}', '[{"kind":"actor","queue":"delays","running":0,"serves":[]}]', NOW, NOW)`, ""},
	{"actor_snapshot", "lamp/done has no snapshot", actorWithoutSnapshot, ""},

	{"schedule_late", "never has no next time", `update T.schedules set next_at = null where name = 'never'`, ""},
	{"schedule_late", "late was due at", `update T.schedules set next_at = LONGAGO where name = 'late'`, ""},
	{"remote_definition", "unreadable@1 read definition", `update T.remote_definitions set spec = '[]' where fsm = 'unreadable'`, ""},
	{"remote_definition", "stepless@1 the definition has no steps", `update T.remote_definitions set spec = '{"queue":"q","steps":[]}' where fsm = 'stepless'`, ""},
	{"remote_definition", `unreachable@1 step "only" has no URL`, `update T.remote_definitions set spec = '{"queue":"q","steps":[{"name":"only","url":"nowhere"}]}' where fsm = 'unreachable'`, ""},
	{"remote_definition", "secretless@1 there are 0 secrets", `update T.remote_definitions set secrets = '[]' where fsm = 'secretless'`, ""},
	{"remote_definition", "foreign@1 remote_definitions.secrets", `update T.remote_definitions set secrets = ` + foreign + ` where fsm = 'foreign'`, ""},
	{"remote_definition", "misspelled@1 a secret does not have the form", `update T.remote_definitions set secrets = '["oops"]' where fsm = 'misspelled'`, ""},
	{"fsm_policy", "done@1 since", `update T.policies set retry = '{"retry":{"kind":"odd","max_attempts":-5}}' where fsm = 'done'`, ""},
	{"fsm_policy", "parent@1 since", `update T.policies set retry = '[]' where fsm = 'parent'`, ""},

	{"consumers_ahead", "reader is at", `update T.outbox_consumers set position = BYTES('ffff00000000000000000000')`, ""},
	{"consumers_ahead", "outbox.pruned_through is", `update T.settings set value = '7fff00000000000000000000' where name = 'outbox.pruned_through'`, ""},
	{"floors", "ENDLESS is due in", `insert into T.floors (source, queue, priority, empty, at, id, seen_to, open, pin_at, pin_id)
		select 'ready', queue, priority, false, due_at + interval '1 hour', id, pg_current_xact_id(), '{}', '{}', '{}' from T.instances where id = 'ENDLESS'`, enginetest.Postgres},
}

// timeDamage are the columns that get an infinite time: schema, table, column, condition, and the
// id in the finding.
var timeDamage = [][5]string{
	{"perdure", "instances", "due_at", "id = 'ENDLESS'", "ENDLESS"},
	{"perdure", "instances", "deadline_at", "id = 'LOCKED'", "LOCKED"},
	{"perdure", "ready", "due_at", "id = 'STALE'", "STALE"},
	{"perdure", "deadlines", "at", "id = 'TYPED'", "TYPED"},
	{"perdure", "waiting", "deadline_at", "id = 'PARKED'", "PARKED"},
	{"perdure", "schedules", "next_at", "name = 'endless'", "endless"},
	{"perdure", "hook_items", "due_at", "KEY = 'ward-endless'", ""},
	{"perdure", "alarm_items", "due_at", "alarm_id = 'ward-endless'", ""},
	{"perdure", "timers", "due_at", "actor_id = 'endless'", "endless"},
	{"perdure", "outbox_consumers", "retry_at", "name = 'reader'", "reader"},
	{"perdure", "policies", "since", "fsm = 'done'", "done"},
	{"queues", "task", "scheduled_at", "task_id = 1", "1"},
}

// timed returns the check for an infinite time, "" if the database does not have the table.
func (p *patient) timed(schema string) string {
	switch {
	case schema == "perdure":
		return "times"
	case p.db.Name == enginetest.MySQL:
		return ""
	}
	return "task_times"
}

// schemaDamage changes what the migrations have created.
var schemaDamage = []planted{
	{"schema", "instances_parent_idx is missing", `drop index T.instances_parent_idx`, enginetest.Postgres},
	{"schema", "perdure_actors_type_idx of perdure_actors is missing", `drop index perdure_actors_type_idx`, enginetest.SQLite},
	{"schema", "perdure_actors.actors_type_idx is missing", `drop index actors_type_idx on perdure_actors`, enginetest.MySQL},
	{"schema", "perdure.finished.finished_status_check is missing", `alter table T.finished drop constraint finished_status_check`, enginetest.Postgres},
	{"schema", "perdure.audit.audit_chain_seq_key is missing", `alter table T.audit drop constraint audit_chain_seq_key`, enginetest.Postgres},
	{"schema", `perdure.instances.state is "json" instead of "json not null"`, `alter table T.instances alter state drop not null`, enginetest.Postgres},
	{"schema", `perdure_instances.step is "varchar" instead of "varchar not null"`, `alter table T.instances modify step varchar(128)`, enginetest.MySQL},
	{"schema", "perdure.arrive() is missing", `drop function T.arrive() cascade`, enginetest.Postgres},
	{"schema", "perdure.ready.ready_moved is missing", ``, enginetest.Postgres},
	{"schema", `queues.run_tasks`, `do $$ begin execute (select replace(pg_get_functiondef(p.oid), 'begin', 'begin -- changed') from pg_proc p where p.proname = 'run_tasks'); end $$`, enginetest.Postgres},
	{"schema", `perdure.leases.leases_moved`, `alter table T.leases disable trigger all`, enginetest.Postgres},
	{"schema", "view perdure.hooks", `drop view T.hooks cascade`, enginetest.Postgres},
	{"schema", "view perdure_hooks", `drop view T.hooks`, enginetest.SQLite},
	{"schema", "view perdure_hooks is missing", `drop view T.hooks`, enginetest.MySQL},
	{"schema", "perdure.samples.due is missing", `alter table T.samples drop column due`, enginetest.Postgres},
	{"schema", "perdure_samples.due is missing", `alter table T.samples drop column due`, enginetest.SQLite},
	{"schema", "perdure_samples.due is missing", `alter table T.samples drop column due`, enginetest.MySQL},
}

var capitals = regexp.MustCompile(`[A-Z]+`)

// text replaces the names of work by their ids.
func (p *patient) text(s string) string {
	return capitals.ReplaceAllStringFunc(s, func(word string) string { return cmp.Or(p.ids[word], word) })
}

// expect asserts that a check has a finding with the text, with what it means and what to do.
func (p *patient) expect(found map[string]Result, check, text string) {
	p.Helper()
	r := found[check]
	var lines []string
	for _, f := range r.Findings {
		lines = append(lines, f.ID+" "+f.Detail)
	}
	if r.Severity != find(check).Severity || r.Means == "" || r.Do == "" || !strings.Contains(strings.Join(lines, "\n"), p.text(text)) {
		p.Errorf("%s does not find %q: %+v", check, p.text(text), r)
	}
}

// The doctor finds every kind of planted damage, on every database that has the kind, and nothing
// in a sound database with live work of every kind.
func TestTheDoctorFindsPlantedDamage(t *testing.T) {
	t.Parallel()
	for _, name := range enginetest.Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := admitAll(t, enginetest.New(t, name))
			p.sound()
			kinds := 0
			for _, d := range rowDamage {
				if d.only == "" || d.only == name {
					p.harm(d.sql)
					kinds++
				}
			}
			found := p.examine()
			for _, d := range rowDamage {
				if d.only == "" || d.only == name {
					p.expect(found, d.check, d.found)
				}
			}
			if kinds < 38 {
				t.Errorf("%d kinds of damage were planted", kinds)
			}
		})
	}
}

// Infinite times may make other checks fail. These are reported, and the checks go on.
func TestTheDoctorFindsInfiniteTimes(t *testing.T) {
	t.Parallel()
	for _, name := range enginetest.Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := admitAll(t, enginetest.New(t, name))
			for _, d := range timeDamage {
				if p.timed(d[0]) != "" {
					p.db.SetTime(t, d[0], d[1], d[2], enginetest.Endless, p.statement(d[3]))
				}
			}
			found := p.examine()
			for _, d := range timeDamage {
				if check := p.timed(d[0]); check != "" {
					p.expect(found, check, fmt.Sprintf("%s.%s", d[1], d[2]))
					p.expect(found, check, d[4])
				}
			}
		})
	}
}

func TestTheDoctorFindsMissingObjects(t *testing.T) {
	t.Parallel()
	for _, name := range enginetest.Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &patient{T: t, db: enginetest.New(t, name)}
			p.eng = p.db.Open(t, nil)
			for _, d := range schemaDamage {
				if d.only == name && d.sql != "" {
					p.harm(d.sql)
				}
			}
			found := p.examine()
			for _, d := range schemaDamage {
				if d.only == name {
					p.expect(found, "schema", d.found)
				}
			}
		})
	}
}
