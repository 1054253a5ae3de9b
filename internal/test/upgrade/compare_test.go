package upgrade_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/task"
)

// same reports values that differ, by their JSON.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	g, w := text(t, got), text(t, want)
	if g != w {
		t.Errorf("%s is\n  %s\nwant\n  %s", what, g, w)
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	enginetest.NoError(t, err)
	if string(b) == "[]" {
		return "null"
	}
	return strings.ReplaceAll(string(b), ":[]", ":null") // empty lists
}

// pair compares the values of two lists that have the same name. Nothing may be missing,
// and nothing be new.
func pair[T any](t *testing.T, kind string, got, want []T, name func(T) string, compare func(what string, got, want T)) {
	t.Helper()
	found := map[string]T{}
	for _, v := range got {
		found[name(v)] = v
	}
	if len(found) != len(got) || len(got) != len(want) {
		t.Errorf("there are %d of kind %s with %d names, want %d", len(got), kind, len(found), len(want))
	}
	for _, v := range want {
		g, ok := found[name(v)]
		if !ok {
			t.Errorf("%s %q is lost", kind, name(v))
			continue
		}
		compare(kind+" "+name(v), g, v)
	}
}

func hookName(h hookItem) string     { return h.Record.ID }
func alarmName(a alarmItem) string   { return a.Record.Key.String() }
func instanceName(i instance) string { return i.Record.ID }
func taskName(i taskItem) string     { return fmt.Sprint(i.Record.ID) }
func actorName(a actorItem) string   { return a.Record.Ref.Type + "/" + a.Record.Ref.ID }

// equal compares all that two values show.
func equal[T any](p *process) func(what string, got, want T) {
	return func(what string, got, want T) {
		p.t.Helper()
		same(p.t, what, got, want)
	}
}

// compareUnrun compares what the new release shows of the database, before it runs
// anything, with what the old one showed.
func (p *process) compareUnrun(before contents) {
	p.t.Helper()
	pair(p.t, "hook", p.hookItems(), before.Hooks, hookName, func(what string, got, want hookItem) {
		if want.Record.Status == hook.Running { // it waits until its lease expires
			want.Record.Status, want.Record.Due = waits(want.Record.Attempts, want.Record.LeaseExpires), want.Record.LeaseExpires
			want.Record.Worker, want.Record.LeaseExpires = "", time.Time{}
		}
		want.Attempts = ended(want.Attempts)
		same(p.t, what, got, want)
	})
	p.compareOutbox(before)
	if !p.whole {
		return
	}
	pair(p.t, "alarm", p.alarmItems(), before.Alarms, alarmName, func(what string, got, want alarmItem) {
		if want.Record.Status == alarm.Running { // it waits until its lease expires
			want.Record.Status, want.Record.Due = waits(want.Record.Attempts, want.Record.LeaseExpires), want.Record.LeaseExpires
			want.Record.Worker, want.Record.LeaseExpires = "", time.Time{}
		}
		want.Attempts = ended(want.Attempts)
		same(p.t, what, got, want)
	})
	pair(p.t, "instance", p.instances(), before.Instances, instanceName, equal[instance](p))
	pair(p.t, "task", p.taskItems(), before.Tasks, taskName, equal[taskItem](p))
	pair(p.t, "actor", p.actorItems(), before.Actors, actorName, equal[actorItem](p))
	schedules, err := p.fsm.Schedules(enginetest.Context(p.t))
	enginetest.NoError(p.t, err)
	same(p.t, "schedules", schedules, before.Schedules)
}

// ended returns the attempts without the one that runs.
func ended(all []retry.Attempt) (some []retry.Attempt) {
	for _, a := range all {
		if !a.Ended.IsZero() {
			some = append(some, a)
		}
	}
	return some
}

// compareTables compares the view of hooks, which people read, with what the package shows.
// No hook has the internal id of an instance.
func (p *process) compareTables(db enginetest.Database) {
	p.t.Helper()
	rows, err := db.SQL(p.t).QueryContext(enginetest.Context(p.t), "select id, status, attempts from "+db.Table("perdure", "hooks"))
	enginetest.NoError(p.t, err)
	defer rows.Close()
	got, want := map[string]string{}, map[string]string{}
	for rows.Next() {
		var id, status string
		var attempts int
		enginetest.NoError(p.t, rows.Scan(&id, &status, &attempts))
		got[id] = fmt.Sprint(status, " ", attempts)
	}
	enginetest.NoError(p.t, rows.Err())
	for _, h := range p.hookItems() {
		status := h.Record.Status
		if status == hook.Scheduled && !h.Record.Due.After(time.Now()) { // the view has the clock of the database
			status = hook.Ready
		}
		want[h.Record.ID] = fmt.Sprint(status, " ", h.Record.Attempts)
	}
	same(p.t, "the view of hooks", got, want)
	if !p.whole {
		return
	}
	if n := db.Int(p.t, "select count(*) from "+db.Table("perdure", "hook_items")+" h join "+db.Table("perdure", "instances")+" i on i.id = h.id"); n > 0 {
		p.t.Errorf("%d hooks have the internal ids of instances", n)
	}
}

// compareOutbox compares the outbox and the table of the user.
func (p *process) compareOutbox(before contents) {
	p.t.Helper()
	entries, err := p.eng.Outbox().List(enginetest.Context(p.t), outbox.Stamp{}, 1000)
	enginetest.NoError(p.t, err)
	same(p.t, "outbox", entries, before.Outbox)
	if got := p.balances(); !maps.Equal(got, map[string]int64{"Ada": 100, "Bea": 7}) {
		p.t.Errorf("balances are %v", got)
	}
}

// finishedAt is when a hook that was live has ended, in time after noon, by the first word
// of its label.
var finishedAt = map[string]time.Duration{
	"pending": 0, "urgent": 0, "suspect": 0, "dead": 0,
	"live": 31 * time.Second, "scheduled": 2 * time.Hour, "retrying": 2 * time.Hour,
}

// compareEnds compares the ends of all work with what the old release showed of it.
func (p *process) compareEnds(before contents) {
	p.t.Helper()
	pair(p.t, "hook", p.hookItems(), before.Hooks, hookName, p.compareHook)
	p.compareOutbox(before)
	if !p.whole {
		return
	}
	var dead []alarmItem // the others have fired, and are gone
	for _, a := range before.Alarms {
		if a.Record.Status == alarm.Failed || a.Record.Status == alarm.Quarantined {
			dead = append(dead, a)
		}
	}
	pair(p.t, "alarm", p.alarmItems(), dead, alarmName, equal[alarmItem](p))
	p.compareInstances(before)
	p.compareTasks(before)
	p.compareActors(before)
}

// compareHook compares a hook. One that had ended is what it was; another one has run
// once more.
func (p *process) compareHook(what string, got, old hookItem) {
	p.t.Helper()
	switch old.Record.Status {
	case hook.Done, hook.Failed, hook.Quarantined, hook.Cancelled:
		same(p.t, what, got, old)
		return
	}
	var payload struct {
		Label string
		Actor struct{ ID string }
	}
	enginetest.NoError(p.t, json.Unmarshal(old.Record.Payload, &payload))
	word, _, _ := strings.Cut(payload.Label+payload.Actor.ID, " ")
	after, known := finishedAt[word]
	if !known {
		p.t.Errorf("%s has the label %q", what, word)
	}
	at, last := noon.Add(after), len(got.Attempts)-1
	want := old.Record
	want.Status, want.Attempts, want.Finished, want.LastAttempt = hook.Done, old.Record.Attempts+1, at, at
	want.LeaseExpires, want.NextAttempt = time.Time{}, time.Time{}
	want.Due, want.Worker = got.Record.Due, got.Record.Worker // of the last claim
	same(p.t, what, got.Record, want)
	if last < 0 {
		p.t.Errorf("%s has no attempts", what)
		return
	}
	same(p.t, what+": attempts", got.Attempts[:last], ended(old.Attempts))
	same(p.t, what+": last attempt", got.Attempts[last], retry.Attempt{
		Number: old.Record.Attempts + old.Record.Crashes + 1, Outcome: retry.Succeeded, Worker: got.Attempts[last].Worker, Began: at, Ended: at,
	})
}

// compareInstances compares the instances. Those that had ended are what they were.
func (p *process) compareInstances(before contents) {
	p.t.Helper()
	results := map[string]string{
		"dead": `"dead"`, "live": `"live"`, "scheduled": `"scheduled"`, "ready": `"ready"`, "ready secret": `"ready secret"`, "retrying": `"retrying"`,
		"ready second": `"ready second"`, "awaiting first": `"\"awaiting first\""`, "awaiting signal": `"\"awaiting signal\""`,
		"awaiting timeout": `"timed out"`, "waiting child": `"waiting child"`, "parent": `"\"done child\",\"waiting child\""`,
	}
	var old []instance
	ticks := 0
	for _, i := range p.instances() {
		if labelOf(i.Record) != "tick" {
			old = append(old, i)
			continue
		}
		ticks++
		if i.Record.Status != fsm.Done {
			p.t.Errorf("an instance of the schedule is %s", i.Record.Status)
		}
	}
	if ticks != 2 {
		p.t.Errorf("the schedule has started %d instances, want 2", ticks)
	}
	pair(p.t, "instance", old, before.Instances, instanceName, func(what string, got, want instance) {
		label := labelOf(want.Record)
		switch {
		case want.Record.Status.Finished():
			same(p.t, what, got, want)
		case label == "awaiting deadline":
			if got.Record.Status != fsm.Failed || !got.Record.Finished.Equal(noon.Add(4*time.Hour)) {
				p.t.Errorf("%s is %s at %v, want failed at its deadline", what, got.Record.Status, got.Record.Finished)
			}
		default:
			if got.Record.Status != fsm.Done || string(got.Record.Result) != results[label] {
				p.t.Errorf("%s (%s) is %s with %s, want done with %s", what, label, got.Record.Status, got.Record.Result, results[label])
			}
			if n := len(want.History); want.Record.Definition == "order" && len(got.History) != n+1 {
				p.t.Errorf("%s (%s) has taken %d steps, want %d", what, label, len(got.History), n+1)
			}
			same(p.t, what+": state", got.Record.State, want.Record.State)
		}
	})
}

// compareTasks compares the tasks. Those that had ended are what they were.
func (p *process) compareTasks(before contents) {
	p.t.Helper()
	pair(p.t, "task", p.taskItems(), before.Tasks, taskName, func(what string, got, want taskItem) {
		if !want.Record.Finished.IsZero() {
			same(p.t, what, got, want)
			return
		}
		if got.Record.Status != task.Done || got.Record.Attempts != want.Record.Attempts+1 {
			p.t.Errorf("%s is %s after %d attempts", what, got.Record.Status, got.Record.Attempts)
		}
		same(p.t, what+": payload", got.Record.Payload, want.Record.Payload)
	})
	email := slices.IndexFunc(before.Tasks, func(i taskItem) bool { return i.Record.Type == "email" })
	facts, err := must[*task.Admin](p.t)(task.NewAdmin(p.eng)).Facts(enginetest.Context(p.t), before.Tasks[email].Record.ID)
	enginetest.NoError(p.t, err)
	var kinds []string
	for _, f := range facts {
		kinds = append(kinds, f.Kind)
	}
	if got := strings.Join(kinds, " "); got != "scheduled succeeded" {
		p.t.Errorf("facts of the email are %q", got)
	}
}

// compareActors compares the actors. Those for which nothing was to be done are what they
// were.
func (p *process) compareActors(before contents) {
	p.t.Helper()
	done := map[string]bool{"waiting": true, "pending paid": true, "pending secret": true, "live paid": true, "dead paid": true, "retrying paid": true}
	pair(p.t, "actor", p.actorItems(), before.Actors, actorName, func(what string, got, want actorItem) {
		if !done[want.Record.Ref.ID] {
			same(p.t, what, got, want)
			return
		}
		if got.Record.Status != "done" || string(got.Record.Value) != `"end"` || got.Record.Version != want.Record.Version+1 {
			p.t.Errorf("%s is %s in %s after %d steps", what, got.Record.Status, got.Record.Value, got.Record.Version)
		}
		if len(got.Timers)+len(got.Pending) > 0 {
			p.t.Errorf("%s still waits for %v and %v", what, got.Timers, got.Pending)
		}
	})
}

// stopTicks ends what would recur.
func (p *process) stopTicks() {
	p.t.Helper()
	if !p.whole {
		return
	}
	ctx := enginetest.Context(p.t)
	_, err := p.alarms.Cancel(ctx, alarm.ID("recurring"))
	enginetest.NoError(p.t, err)
	enginetest.NoError(p.t, p.eng.Update(ctx, func(tx *perdure.Tx) error { return p.fsm.PauseScheduleIn(tx, "hourly", true) }))
}
