package serving_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/serving"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/task"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// Conformance is what must hold on every database that knows which processes run.
type Conformance struct{}

func TestConformance(t *testing.T) {
	enginetest.Conform(t, Conformance{}, enginetest.SQLite, enginetest.Postgres)
}

// fixture is a database with work of every kind that has been due for an hour.
type fixture struct {
	*testing.T
	db  enginetest.Database
	eng *perdure.Engine
}

var slow = fsm.Define("order", 2, &fsm.DefinitionOptions[int]{Queue: "bulk"}, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil))

func newFixture(t *testing.T, db enginetest.Database) *fixture {
	t.Helper()
	f := &fixture{T: t, db: db, eng: db.Open(t, nil)}
	hooks, err := hook.New(f.eng, "shop", nil)
	enginetest.NoError(t, err)
	alarms, err := alarm.New(f.eng, nil)
	enginetest.NoError(t, err)
	for _, priority := range []perdure.Priority{perdure.Normal, perdure.High} {
		_, err = fsm.Start(t.Context(), f.eng, slow, 0, &fsm.StartOptions{Priority: priority})
		enginetest.NoError(t, err)
	}
	enginetest.NoError(t, f.eng.Update(t.Context(), func(tx *perdure.Tx) error {
		_, err := hooks.TriggerIn(tx, "mail", 1, nil)
		if err == nil {
			_, err = task.EnqueueIn(tx, "email", map[string]int{}, nil)
		}
		return err
	}))
	enginetest.NoError(t, alarms.Schedule(t.Context(), alarm.ID("a"), "tick", nil, &alarm.ScheduleOptions{Delay: time.Hour}))
	enginetest.NoError(t, fsm.SetSchedule(t.Context(), f.eng, "nightly", "30 2 * * *", slow, 0, nil))
	f.exec(`insert into T.timers (actor_type, actor_id, alarm_id, type, due_at, sequence, created_at)
		select 'lamp', '1', 'x', 'after', due_at, 1, created_at from T.alarm_items where alarm_id = 'a'`)
	for _, table := range []string{"T.instances set due_at", "T.ready set due_at", "T.hook_items set due_at", "T.timers set due_at", "Q.task set scheduled_at"} {
		f.exec("update " + table + " = AGO3600")
	}
	f.exec("update T.alarm_items set due_at = (select r.due_at from T.ready r where r.id = T.alarm_items.id) where alarm_id = 'a'")
	return f
}

// exec runs a statement. T. and Q. are the tables' own prefixes, AGOn is n seconds ago.
func (f *fixture) exec(text string) {
	f.Helper()
	prefix, queue := "perdure.", "queues."
	if f.db.Name == enginetest.SQLite {
		prefix, queue = "perdure_", "queues_"
	}
	for _, n := range []int{3600, 31, -3600} {
		ago := fmt.Sprintf("now() - interval '%d seconds'", n)
		if f.db.Name == enginetest.SQLite {
			ago = fmt.Sprint(time.Now().Add(-time.Duration(n) * time.Second).UnixMicro())
		}
		text = strings.ReplaceAll(text, fmt.Sprintf("AGO%d", n), ago)
	}
	f.db.Exec(f.T, strings.NewReplacer("Q.", queue, "T.", prefix).Replace(text))
}

// find returns what is not served, one line for each.
func (f *fixture) find() []string {
	f.Helper()
	all, err := serving.Find(f.Context(), host.Of(f.eng))
	enginetest.NoError(f.T, err)
	var found []string
	for _, u := range all {
		if age := time.Since(u.Oldest); u.Schedule == "" && (age < 50*time.Minute || age > 24*time.Hour) {
			f.Errorf("%+v is due since %v", u, age)
		}
		found = append(found, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %d %s %s: %d", u.Kind, u.Queue, u.Name, u.Version, u.Step, u.Schedule, u.Count)), " "))
	}
	return found
}

func (f *fixture) want(when string, want ...string) {
	f.Helper()
	if diff := cmp.Diff(want, f.find()); diff != "" {
		f.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

// beat stores the sign of life of a process.
func (f *fixture) beat(queues ...store.NodeQueue) {
	f.Helper()
	rt, drain := host.Of(f.eng), false
	tx, err := rt.DB.Begin(f.Context(), sqldb.Write)
	enginetest.NoError(f.T, err)
	defer tx.Rollback()
	node := store.Node{ID: "n", Host: "h", Roles: "[]", Work: "[]", Running: queues}
	enginetest.NoError(f.T, tx.Run(f.Context(), rt.Store.BeatNode(node, rt.Now(), &drain)...))
	enginetest.NoError(f.T, tx.Commit(f.Context()))
}

var (
	instances = "instances bulk 0 : 2"
	hooks     = "hooks shop mail 0 : 1"
	tasks     = "tasks email 0 : 1"
	alarms    = "alarms tick 0 : 1"
	delays    = "actors lamp 0 : 1"
	schedule  = "schedules order 2 nightly: 1"
	nothing   = []string{instances, hooks, tasks, alarms, delays, schedule}
)

// everything is what a process takes that serves all of the work.
func everything() []store.NodeQueue {
	return []store.NodeQueue{
		{Kind: "instance", Queue: "bulk", Serves: []string{"order@2"}}, {Kind: "hook", Queue: "shop", Serves: []string{"mail"}}, {Kind: "task", Queue: "tasks", Serves: []string{"email"}},
		{Kind: "alarm", Serves: []string{"tick"}}, {Kind: "actor", Queue: "delays", Serves: []string{"lamp"}},
	}
}

// record makes the definition one that some process has served.
func (f *fixture) record() {
	f.Helper()
	machines, err := fsm.New(f.eng, nil)
	enginetest.NoError(f.T, err)
	enginetest.NoError(f.T, machines.Register(slow))
	enginetest.NoError(f.T, machines.Announce(f.Context()))
}

func (Conformance) WorkIsServedByLiveProcessesOnly(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	f.want("without a process", nothing...)
	f.record()
	f.want("with a definition that was served once", slices.DeleteFunc(slices.Clone(nothing), func(s string) bool { return s == schedule })...)
	f.beat(everything()...)
	f.want("with a live process")
	f.exec("update T.nodes set seen_at = AGO31")
	f.want("with a process that is gone", instances, hooks, tasks, alarms, delays)
	f.beat(everything()...)
	f.exec("update T.nodes set draining = true")
	f.want("with a process that drains", instances, hooks, tasks, alarms, delays)
}

func (Conformance) WorkIsServedByProcessesThatTakeIt(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	f.record()
	idle := everything()
	for i := range idle {
		idle[i].Idle = true
	}
	f.beat(idle...)
	f.want("with a process that claims nothing", instances, hooks, tasks, alarms, delays)
	other := everything()
	for i := range other {
		other[i].Serves = []string{"other"}
	}
	f.beat(other...)
	// Instances of other definitions are found as soon as the process sets them aside.
	f.want("with a process that knows other names", hooks, tasks, alarms, delays, schedule)
	for i := range other {
		other[i].Serves = nil
	}
	f.beat(other...)
	f.want("with a process that takes all names")
	f.exec(`insert into T.unrouted (queue, fsm, version, step, id) select queue, fsm, version, 'gone', id from T.instances where priority = (select min(priority) from T.instances)`)
	f.want("with an instance that was set aside", "instances bulk order 2 gone : 1")
}

// Processes without a server give no signs of life, but claim work.
func (Conformance) WorkIsServedIfSomeOfItIsClaimed(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	f.record()
	token, ids, held, tab := "'x'", `'["x"]'`, "json_array(id)", "char(9)"
	if db.Name == enginetest.Postgres {
		token, ids, held, tab = "gen_random_uuid()", "array[gen_random_uuid()]", "array[id]", "chr(9)"
	}
	f.exec("insert into T.leases (token, worker, queue, alone, expires_at, ids) values (" + token + ", 'w', 'bulk', false, AGO-3600, " + ids + ")")
	// Another alarm of that type, which is in a lease and in no other place.
	f.exec(`insert into T.alarm_items (id, actor_type, actor_id, alarm_id, type, queue, priority, due_at, occurs_at, sequence, generation, payload, policy, max_attempts, created_at)
		select '00000000-0000-7000-8000-000000000001', '', '', 'b', type, queue, priority, due_at, occurs_at, 1, 1, payload, policy, max_attempts, created_at from T.alarm_items where alarm_id = 'a'`)
	f.exec("insert into T.leases (token, worker, queue, alone, expires_at, ids) select " + strings.Replace(token, "x", "z", 1) + ", 'w', 'alarm' || " + tab + ", false, AGO-3600, " + held +
		" from T.alarm_items where id = '00000000-0000-7000-8000-000000000001'")
	f.want("with claimed instances and alarms", hooks, tasks, delays)
	// Another hook of that name, which is in a lease and in no other place.
	f.exec(`insert into T.hook_items (id, namespace, name, queue, payload, priority, policy, max_attempts, unit_id, created_at, due_at)
		select '00000000-0000-7000-8000-000000000000', namespace, name, queue, payload, priority, policy, max_attempts, unit_id, created_at, due_at from T.hook_items`)
	f.exec("insert into T.leases (token, worker, queue, alone, expires_at, ids) select " + strings.Replace(token, "x", "y", 1) + ", 'w', 'hook' || " + tab + " || 'shop', false, AGO-3600, " + held +
		" from T.hook_items where id = '00000000-0000-7000-8000-000000000000'")
	f.want("with a claimed hook", tasks, delays)
	f.exec("update T.leases set expires_at = AGO31")
	f.want("with claims that have expired", instances, hooks, tasks, alarms, delays)
}

// Work that has just become due is on its way.
func (Conformance) WorkThatIsDueSinceASecondIsNotUnserved(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	f.record()
	for _, table := range []string{"T.ready set due_at", "T.hook_items set due_at", "T.timers set due_at", "Q.task set scheduled_at"} {
		f.exec("update " + table + " = AGO31")
	}
	f.exec("update T.alarm_items set due_at = (select r.due_at from T.ready r where r.id = T.alarm_items.id) where alarm_id = 'a'")
	f.want("after 31 seconds")
}
