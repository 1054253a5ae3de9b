package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/server"
)

// bulk is how things of a kind are made, acted on by one request, and looked at.
type bulk struct {
	kind   string
	make   func(f *fixture) string // returns the id
	action string
	filter object // finds what was made
	status string // afterwards; none: it is gone
}

var bulks = []bulk{
	{"instances", func(f *fixture) string { return f.start(nil) }, "cancel", object{"definition": "order", "status": []string{"live"}}, "cancelled"},
	{"instances", func(f *fixture) string { return f.start(nil) }, "terminate", object{"definition": "order", "status": []string{"live"}}, "cancelled"},
	{"instances", (*fixture).endedInstance, "retry", object{"status": []string{"cancelled", "failed"}}, "ready"},
	{"hooks", (*fixture).hook, "cancel", object{"namespace": "shop", "name": "mail", "status": []string{"scheduled", "ready"}}, "cancelled"},
	{"hooks", (*fixture).deadHook, "retry", object{"status": []string{"cancelled"}}, "ready"},
	{"tasks", (*fixture).task, "cancel", object{"status": []string{"scheduled", "ready", "running"}}, "cancelled"},
	{"tasks", (*fixture).deadTask, "retry", object{"status": []string{"cancelled"}}, "ready"},
	{"alarms", (*fixture).alarmID, "cancel", object{"type": "remind"}, ""},
	{"alarms", (*fixture).alarmID, "skip", object{"status": []string{"scheduled"}}, "scheduled"},
	{"alarms", (*fixture).alarmID, "fire", object{"type": "remind", "status": []string{"scheduled"}}, "ready"},
	{"alarms", (*fixture).deadAlarmID, "retry", object{"status": []string{"failed", "quarantined"}}, "ready"},
	{"actors", (*fixture).doorID, "stop", object{"type": "door", "state": "open", "status": []string{"active"}}, "stopped"},
	{"actors", (*fixture).stuckDoorID, "resume", object{"status": []string{"quarantined"}}, "active"},
}

func (f *fixture) endedInstance() string {
	id := f.start(nil)
	f.done("/v1/instances/"+id, "/cancel")
	return id
}

func (f *fixture) deadHook() string {
	id := f.hook()
	f.done("/v1/hooks/"+id, "/cancel")
	return id
}

func (f *fixture) deadTask() string {
	id := f.task()
	f.done("/v1/tasks/"+id, "/cancel")
	return id
}

func (f *fixture) alarmID() string     { return strings.TrimPrefix(f.alarm(), "/v1/alarms/") }
func (f *fixture) deadAlarmID() string { return strings.TrimPrefix(f.deadAlarm(), "/v1/alarms/") }
func (f *fixture) doorID() string      { return strings.TrimPrefix(f.door(), "/v1/actors/") }
func (f *fixture) stuckDoorID() string { return strings.TrimPrefix(f.stuckDoor(), "/v1/actors/") }

// listed returns how many things the list of a kind has for a filter.
func (f *fixture) listed(b bulk) float64 {
	f.Helper()
	query := url.Values{"limit": {"200"}}
	for name, value := range b.filter {
		if all, ok := value.([]string); ok {
			value = strings.Join(all, ",")
		}
		query.Set(name, fmt.Sprint(value))
	}
	return float64(len(f.want(http.StatusOK, http.MethodGet, "/v1/"+b.kind+"?"+query.Encode(), nil).list()))
}

// What a filter finds, as the list does, is counted first and then acted on.
func (Flows) EveryActionIsDoneToAllThatMatch(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	for _, b := range bulks {
		if b.kind == "tasks" && f.lacksTasks() {
			continue
		}
		ids := []string{b.make(f), b.make(f), b.make(f)}
		path := "/v1/" + b.kind + "/actions"
		body := object{"action": b.action, "filter": b.filter, "dry_run": true}
		before, n := db.Contents(t), f.listed(b)
		if dry := f.want(http.StatusOK, http.MethodPost, path, body); n < 3 || dry["matched"] != n || dry["done"] != 0.0 || dry["capped"] != false {
			t.Errorf("%s of %s, only to count: %v", b.action, b.kind, dry)
		}
		if changed := differing(before, db.Contents(t)); len(changed) > 0 {
			t.Errorf("%s of %s, only to count, has changed %v", b.action, b.kind, changed)
		}
		delete(body, "dry_run")
		if done := f.want(http.StatusOK, http.MethodPost, path, body); done["matched"] != n || done["done"] != n || done["errors"] != nil {
			t.Errorf("%s of %s: %v", b.action, b.kind, done)
		}
		for _, id := range ids {
			f.ends(b, id)
		}
	}
}

// ends checks what became of a thing.
func (f *fixture) ends(b bulk, id string) {
	f.Helper()
	path := "/v1/" + b.kind + "/" + id
	if b.status == "" {
		f.want(http.StatusNotFound, http.MethodGet, path, nil)
		return
	}
	if status := f.want(http.StatusOK, http.MethodGet, path, nil).text("status"); status != b.status {
		f.Errorf("after %s of %s it is %s, want %s", b.action, b.kind, status, b.status)
	}
}

// What is gone, has ended or was never there is a line of the answer, and the rest is
// done.
func (Flows) WhatCannotBeActedOnIsALineOfTheAnswer(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	for _, b := range bulks {
		if b.kind == "tasks" && f.lacksTasks() {
			continue
		}
		good := b.make(f)
		ids := []string{"00000000-0000-7000-8000-000000000000", "no/such/thing", "12345678", good, good}
		done := f.want(http.StatusOK, http.MethodPost, "/v1/"+b.kind+"/actions", object{"action": b.action, "ids": ids})
		lines, _ := done["errors"].([]any)
		if done["matched"] != 4.0 || done["done"] != 1.0 || len(lines) != 3 {
			t.Errorf("%s of %s: %v", b.action, b.kind, done)
		}
		f.ends(b, good)
	}
}

func (Flows) ABulkActionSaysWhatItActsOn(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	for _, kind := range []string{"instances", "hooks", "tasks", "alarms", "actors"} {
		action := "cancel"
		if kind == "actors" {
			action = "stop"
		}
		for _, bad := range []object{{}, {"ids": []string{}}, {"filter": object{}}, {"ids": []string{"a"}, "filter": object{"status": []string{"failed"}}}, {"filter": object{"status": []string{"none"}}}, {"filter": object{"color": "red"}}} {
			bad["action"] = action
			f.want(http.StatusUnprocessableEntity, http.MethodPost, "/v1/"+kind+"/actions", bad)
		}
		f.want(http.StatusUnprocessableEntity, http.MethodPost, "/v1/"+kind+"/actions", object{"action": "explode", "ids": []string{"a"}})
	}
}

// Dead letters are found by their error and tried again, actors that stand still among
// them.
func (Flows) DeadLettersAreRetriedByTheirError(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	for kind, die := range map[string]func(*fixture) string{"alarms": (*fixture).deadAlarmID, "actors": (*fixture).stuckDoorID} {
		die(f)
		die(f)
		group := f.want(http.StatusOK, http.MethodGet, "/v1/dead?group_by=error&kind="+kind, nil).list()
		if len(group) != 1 || group[0]["count"] != 2.0 {
			t.Fatalf("%s: %v", kind, group)
		}
		body := object{"kind": kind, "error": group[0]["error"], "name": group[0]["name"]}
		if done := f.want(http.StatusOK, http.MethodPost, "/v1/dead/retry", body); done["matched"] != 2.0 || done["done"] != 2.0 {
			t.Errorf("%s: %v", kind, done)
		}
		if rows := f.want(http.StatusOK, http.MethodGet, "/v1/dead?kind="+kind, nil).list(); len(rows) != 0 {
			t.Errorf("%s that are still dead: %v", kind, rows)
		}
	}
}

// A delay that is quarantined is a dead letter, says so at its actor, and is due again
// after a retry.
func (Flows) AQuarantinedDelayIsADeadLetter(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	actor := f.door()
	id := strings.TrimPrefix(actor, "/v1/actors/door/")
	f.db.Exec(f, "update "+f.db.Table("perdure", "timers")+" set status = 'quarantined', crashes = 5, error = 'process crashed' where actor_id = ?", id)
	dead := f.want(http.StatusOK, http.MethodGet, "/v1/dead?kind=alarms", nil).list()
	if len(dead) != 1 || dead[0].text("error") != "process crashed" {
		t.Fatalf("dead letters: %v", dead)
	}
	if timer := f.want(http.StatusOK, http.MethodGet, actor+"/timers", nil).list()[0]; timer.text("error") != "process crashed" || timer["crashes"] != 5.0 {
		t.Errorf("the timer is %v", timer)
	}
	done := f.want(http.StatusOK, http.MethodPost, "/v1/dead/retry", object{"kind": "alarms", "ids": []string{dead[0].text("id")}})
	if done["done"] != 1.0 {
		t.Errorf("retry: %v", done)
	}
	if left := f.want(http.StatusOK, http.MethodGet, "/v1/dead?kind=alarms", nil).list(); len(left) != 0 {
		t.Errorf("dead letters after the retry: %v", left)
	}
}

// A retry that would take a unique key from another instance is taken back alone.
func (Flows) ARetryThatIsRefusedLeavesTheOthersRetried(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	var ids []string
	for range 2 {
		id := f.want(http.StatusCreated, http.MethodPost, "/v1/instances", object{"definition": "order", "unique_key": "k"}).text("id")
		f.done("/v1/instances/"+id, "/cancel")
		ids = append(ids, id)
	}
	done := f.want(http.StatusOK, http.MethodPost, "/v1/instances/actions", object{"action": "retry", "ids": ids})
	lines, _ := done["errors"].([]any)
	if done["done"] != 1.0 || len(lines) != 1 || !strings.Contains(fmt.Sprint(lines[0]), "unique key") {
		t.Errorf("%v", done)
	}
}

// Requests that act on the same things while workers run them neither deadlock for good
// nor do anything twice.
func (Flows) BulkActionsThatMeetAllSucceed(t *testing.T, db enginetest.Database) {
	f := open(t, db, func(o *server.Options) { o.OnError = func(error) {} }) // steps lose their claims
	enginetest.NoError(t, f.srv.Start())
	const n = 60
	inputs := make([]object, n)
	for i := range inputs {
		inputs[i] = object{"definition": "order"}
	}
	f.want(http.StatusCreated, http.MethodPost, "/v1/instances/batch", object{"instances": inputs})
	results := make([]object, 4)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			results[i] = f.want(http.StatusOK, http.MethodPost, "/v1/instances/actions", object{"action": "cancel", "filter": object{"status": []string{"live"}}})
		})
	}
	all.Wait()
	total := 0.0
	for _, r := range results {
		n, _ := r["done"].(float64)
		total += n
	}
	if total > n {
		t.Errorf("%v of %d are cancelled", total, n)
	}
	last := f.want(http.StatusOK, http.MethodPost, "/v1/instances/actions", object{"action": "cancel", "filter": object{"status": []string{"live"}}})
	if rest, _ := last["done"].(float64); total+rest != n {
		t.Errorf("%v and then %v of %d are cancelled", total, rest, n)
	}
}

// A deadlock with somebody who locks in another order costs time and nothing else: the
// unit of work is run again.
func TestABulkActionSurvivesADeadlock(t *testing.T) {
	t.Parallel()
	f := ready(t, enginetest.New(t, enginetest.Postgres))
	ids := []string{f.hook(), f.hook()}
	slices.Sort(ids)
	other, err := f.db.SQL(t).BeginTx(t.Context(), nil)
	enginetest.NoError(t, err)
	defer func() { _ = other.Rollback() }()
	lock := func(id string) {
		_, err := other.ExecContext(t.Context(), "update perdure.hook_items set priority = priority where coalesce(key, id::text) = $1", id)
		enginetest.NoError(t, err)
	}
	_, err = other.ExecContext(t.Context(), "set local deadlock_timeout = '1h'") // the request is the victim
	enginetest.NoError(t, err)
	lock(ids[1])
	answered := make(chan object)
	go func() {
		answered <- f.want(http.StatusOK, http.MethodPost, "/v1/hooks/actions", object{"action": "cancel", "ids": ids}, "Idempotency-Key", "k")
	}()
	f.waiting(1)
	lock(ids[0])
	enginetest.NoError(t, other.Commit())
	if done := <-answered; done["done"] != 2.0 {
		t.Errorf("%v", done)
	}
}
