package inspect_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/task"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// rows is how many rows of each kind the benchmark looks at: PERDURE_SOAK=100 makes it
// a million.
func rows() int { return 10_000 * enginetest.Soak() }

// fill writes many instances, hooks and tasks of all statuses, most of them done, the
// rare ones among the oldest.
func fill(t testing.TB, db enginetest.Database, n int) {
	t.Helper()
	numbers := fmt.Sprintf("with recursive n (i) as (select 1 union all select i + 1 from n where i < %d)", n)
	id, uuid, at, later, yes := "printf('00000000-0000-7000-8000-%012x', i)", "", "i * 1000000", "i * 1000000 + 4000000000000000", "0"
	tasks, identity := "queues_task", ""
	if db.Name == enginetest.Postgres {
		id, uuid = "('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))", "::uuid"
		at, later, yes = "to_timestamp(i)", "to_timestamp(i::bigint + 4000000000)", "false"
		tasks, identity = "queues.task", "overriding system value"
	}
	id += uuid
	insert := func(what string) { db.Exec(t, numbers+" "+what) }
	// SQLite wants the numbers before, PostgreSQL too: a CTE begins the statement.
	table := func(name string) string { return db.Table("perdure", name) }
	insert("insert into " + table("instances") + " (id, fsm, version, step, state, queue, priority, due_at, created_at) select " + id +
		", case when i % 100 = 0 then 'rare' else 'order' end, 1, case when i % 7 = 0 then 'ship' else 'charge' end, '{}', 'default', 0, case when i % 50 = 1 then " + later + " else " + at + " end, " + at + " from n")
	insert("insert into " + table("finished") + " (id, status, finished_at) select " + id + ", case when i < 100 then 'failed' when i < 200 then 'cancelled' else 'done' end, " + at + " from n where i % 10 <> 1")
	insert("insert into " + table("ready") + " (queue, suspect, priority, due_at, id) select 'default', " + yes + ", 0, case when i % 50 = 1 then " + later + " else " + at + " end, " + id + " from n where i % 10 = 1 and i % 20 = 1")
	names := "'[]'"
	if db.Name == enginetest.Postgres {
		names = "'{}'"
	}
	insert("insert into " + table("waiting") + " (id, names) select " + id + ", " + names + " from n where i % 20 = 11")
	fillHooks(t, db, n)
	insert("insert into " + tasks + " (task_id, task_type, payload, status, enqueued_at, scheduled_at, finished_at) " + identity +
		" select i, 'email', '{}', case when i < 100 then 'failed' when i < 200 then 'pending' else 'completed' end, " + at + ", " + later + ", " + at + " from n")
}

// fillHooks writes many hooks: failed, pending and completed ones, the first two among the
// oldest. Every tenth pending hook is a suspect. Every second hook has a key.
func fillHooks(t testing.TB, db enginetest.Database, n int) {
	t.Helper()
	numbers := fmt.Sprintf("with recursive n (i) as (select 1 union all select i + 1 from n where i < %d) ", n)
	id, tab, at, later := "printf('00000000-0000-7000-9000-%012x', i)", "char(9)", "i * 1000000", "i * 1000000 + 4000000000000000"
	if db.Name == enginetest.Postgres {
		id, tab = "('00000000-0000-7000-9000-' || lpad(to_hex(i), 12, '0'))::uuid", "chr(9)"
		at, later = "to_timestamp(i)", "to_timestamp(i::bigint + 4000000000)"
	}
	lane := "'hook' || " + tab + " || 'shop' || " + tab + " || 'mail'"
	insert := func(name, what string) { db.Exec(t, numbers+"insert into "+db.Table("perdure", name)+" "+what) }
	insert("hook_items", "(id, key, namespace, name, queue, payload, priority, policy, max_attempts, batch_limit, unit_id, created_at, due_at) select "+id+
		", case when i % 2 = 0 then 'h' || i end, 'shop', 'mail', "+lane+", '{}', 0, '{}', 5, case when i between 100 and 199 and i % 10 = 0 then 1 end, 'u', "+at+", "+later+" from n")
	insert("hook_ends", "(id, status, created_at, finished_at) select "+id+", case when i < 100 then 'failed' else 'done' end, "+at+", "+at+" from n where i not between 100 and 199")
	db.Exec(t, "insert into "+db.Table("perdure", "ready")+" (queue, suspect, priority, due_at, id) select h.queue, h.batch_limit is not null, h.priority, h.due_at, h.id from "+
		db.Table("perdure", "hook_items")+" h where not exists (select 1 from "+db.Table("perdure", "hook_ends")+" e where e.id = h.id)")
}

// crowd writes many actors, each with a delay, and as many alarms of users, the rare
// ones among the oldest.
func crowd(t testing.TB, db enginetest.Database, n int) {
	t.Helper()
	numbers := fmt.Sprintf("with recursive n (i) as (select 1 union all select i + 1 from n where i < %d)", n)
	at, later := "i * 1000000", "i * 1000000 + 4000000000000000"
	id, lane := "'00000000-0000-7000-8000-' || printf('%012d', i)", "'alarm' || char(9) || 'reminder'"
	if db.Name == enginetest.Postgres {
		at, later = "to_timestamp(i)", "to_timestamp(i::bigint + 4000000000)"
		id, lane = "('00000000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid", "'alarm' || chr(9) || 'reminder'"
	}
	insert := func(what string) { db.Exec(t, numbers+" "+what) }
	table := func(name string) string { return db.Table("perdure", name) }
	insert("insert into " + table("actors") + " (type, id, incarnation, status, machine, sequence, states, origin, caller_kind, caller_id, created_at, updated_at) select " +
		"case when i % 100 = 0 then 'rare' else 'trial' end, 'a' || i, 'i' || i, case when i < 100 then 'error' when i < 200 then 'stopped' else 'active' end, 1, 1, '\nidle\n', 'spawn', 'system', '', " +
		at + ", " + at + " from n")
	insert("insert into " + table("timers") + " (actor_type, actor_id, alarm_id, type, due_at, sequence, path, generation, created_at) select " +
		"case when i % 100 = 0 then 'rare' else 'trial' end, 'a' || i, 'd', 'delay', " + later + ", i, '', 0, " + at + " from n")
	insert("insert into " + table("alarm_items") + " (id, actor_type, actor_id, alarm_id, type, queue, priority, dead, due_at, occurs_at, sequence, payload, policy, max_attempts, generation, created_at) select " +
		id + ", '', '', 'a' || i, 'reminder', " + lane + ", 0, case when i < 100 then 'failed' end, " + later + ", " + later + ", i, '{}', '{}', 5, 1, " + at + " from n")
	db.Exec(t, "insert into "+table("ready")+" (queue, priority, due_at, id) select queue, priority, due_at, id from "+table("alarm_items")+" where dead is null")
}

// failures writes a recent failure of each instance.
func failures(t testing.TB, db enginetest.Database, n int) {
	t.Helper()
	id, ended := "printf('00000000-0000-7000-8000-%012x', i)", "(unixepoch() * 1000000 - i)"
	if db.Name == enginetest.Postgres {
		id, ended = "('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))", "now() - i * interval '1 microsecond'"
	}
	db.Exec(t, fmt.Sprintf("with recursive n (i) as (select 1 union all select i + 1 from n where i < %d) insert into %s (kind, id, seq, step, attempt, outcome, error, worker, ended_at) "+
		"select 'instance', %s, 1, case when i %% 7 = 0 then 'ship' else 'charge' end, 1, 'failed', 'connection refused', 'w', %s from n", n, db.Table("perdure", "attempts"), id, ended))
}

type scene struct {
	*inspect.Inspector
	actors *actor.Actors
	alarms *alarm.Alarms
}

func newScene(t testing.TB, name string) *scene {
	t.Helper()
	db := enginetest.New(t, name)
	eng := db.Open(t, nil)
	fill(t, db, rows())
	crowd(t, db, rows())
	failures(t, db, rows())
	if db.Name == enginetest.Postgres {
		db.Exec(t, "vacuum analyze")
	}
	machines, err := fsm.New(eng, nil)
	enginetest.NoError(t, err)
	actors, err := actor.New(eng, nil)
	enginetest.NoError(t, err)
	alarms, err := alarm.New(eng, nil)
	enginetest.NoError(t, err)
	return &scene{inspect.New(eng, machines), actors, alarms}
}

// questions are what a dashboard asks first.
func (s *scene) questions() map[string]func(context.Context) (int, error) {
	all := map[string]func(context.Context) (int, error){
		"overview": func(ctx context.Context) (int, error) {
			o, err := s.Overview(ctx)
			return len(o.Kinds), err
		},
		"upcoming": func(ctx context.Context) (int, error) {
			found, _, err := s.Upcoming(ctx, "", time.Time{}, 50)
			return len(found), err
		},
		"dead": func(ctx context.Context) (int, error) {
			found, _, err := s.DeadLetters(ctx, inspect.Dead{}, "", 50)
			return len(found), err
		},
		"dead-groups": func(ctx context.Context) (int, error) {
			found, err := s.DeadGroups(ctx, inspect.Dead{})
			return len(found), err
		},
		"failing": func(ctx context.Context) (int, error) {
			found, err := s.Failing(ctx)
			return len(found), err
		},
		"marks": func(ctx context.Context) (int, error) {
			found, err := s.Marks(ctx)
			return len(found), err
		},
		"search": func(ctx context.Context) (int, error) {
			found, err := s.Search(ctx, "00000000-0000-7000")
			return len(found), err
		},
		"facets": func(ctx context.Context) (int, error) {
			found, err := s.Facets(ctx, "instances")
			return len(found), err
		},
	}
	for name, f := range map[string]hook.Filter{
		"all": {}, "waiting": {Statuses: hook.Waiting}, "failed": {Statuses: []hook.Status{hook.Failed}},
		"cancelled": {Statuses: []hook.Status{hook.Cancelled}}, "running": {Statuses: []hook.Status{hook.Running}},
	} {
		all["hooks-"+name] = func(ctx context.Context) (int, error) {
			found, _, err := s.Hooks(ctx, f, "", 50)
			return len(found), err
		}
	}
	for name, f := range map[string]task.Filter{
		"all": {}, "waiting": {Statuses: task.Waiting}, "failed": {Statuses: []task.Status{task.Failed}}, "type": {Type: "none"},
	} {
		all["tasks-"+name] = func(ctx context.Context) (int, error) {
			found, _, err := s.Tasks(ctx, f, "", 50)
			return len(found), err
		}
	}
	for name, f := range map[string]actor.Filter{
		"all": {}, "active": {Statuses: []actor.Status{actor.Active}}, "done": {Statuses: []actor.Status{actor.Done}}, "error": {Statuses: []actor.Status{actor.Failed}}, "type": {Type: "rare"}, "nobody": {Type: "none"}, "state": {State: "idle"}, "nowhere": {State: "nowhere"},
	} {
		all["actors-"+name] = func(ctx context.Context) (int, error) {
			found, _, err := s.actors.List(ctx, f, "", 50)
			return len(found), err
		}
	}
	for name, f := range map[string]alarm.Filter{
		"all": {}, "waiting": {Statuses: alarm.Waiting}, "failed": {Statuses: []alarm.Status{alarm.Failed}}, "running": {Statuses: []alarm.Status{alarm.Running}}, "type": {Type: "none"}, "of-type": {ActorType: "trial"}, "of-actor": {ActorType: "trial", ActorID: "a7"}, "unowned": {Unowned: true},
	} {
		all["alarms-"+name] = func(ctx context.Context) (int, error) {
			found, _, err := s.alarms.List(ctx, f, "", 50)
			return len(found), err
		}
	}
	for name, f := range map[string]inspect.Timers{
		"all": {}, "of-actor": {Actor: store.ActorRef{Type: "trial"}}, "type": {Type: "none"}, "quarantined": {Statuses: []perdure.Status{perdure.StatusQuarantined}},
	} {
		all["delays-"+name] = func(ctx context.Context) (int, error) {
			found, _, err := s.Timers(ctx, f, "", 50)
			return len(found), err
		}
	}
	for name, f := range map[string]inspect.Instances{
		"all": {}, "of-machine": {FSM: "rare"}, "done": {Statuses: only(fsm.Done)}, "failed": {Statuses: only(fsm.Failed)}, "cancelled": {Statuses: only(fsm.Cancelled)},
		"ready": {Statuses: only(fsm.Ready)}, "scheduled": {Statuses: only(fsm.Scheduled)}, "waiting": {Statuses: only(fsm.Waiting)}, "executing": {Statuses: only(fsm.Running)}, "live": {Statuses: only(inspect.Live)}, "ended": {Statuses: only(inspect.Finished)},
		"waiting-of-machine": {Statuses: only(fsm.Waiting), FSM: "rare"}, "step": {Step: "ship"}, "nowhere": {Step: "nowhere"}, "queue": {Queue: "none"},
	} {
		all["instances-"+name] = func(ctx context.Context) (int, error) {
			found, _, err := s.Instances(ctx, f, "", 50)
			return len(found), err
		}
	}
	return all
}

// The first page of everything, over many rows.
func BenchmarkFirstPage(b *testing.B) {
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		b.Run(name, func(b *testing.B) {
			s := newScene(b, name)
			all := s.questions()
			var names []string
			for name := range all {
				names = append(names, name)
			}
			slices.Sort(names)
			for _, name := range names {
				b.Run(name, func(b *testing.B) {
					n := 0
					for b.Loop() {
						found, err := all[name](b.Context())
						enginetest.NoError(b, err)
						n = found
					}
					b.ReportMetric(float64(n), "rows")
				})
			}
		})
	}
}
