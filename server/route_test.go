package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
	"github.com/perdure/perdure/server"
)

// A door that is locked again by itself after a while.
const door = `{"id":"door","initial":"closed","context":{"public":{"opened":0},"private":{}},"states":{
	"closed":{"on":{"OPEN":{"target":"open","actions":{"type":"xstate.assign","params":{"assignment":{"public":{"opened":{"$expr":"context.public.opened + 1"}}}}}}}},
	"open":{"after":{"3600000":"closed"},"on":{"CLOSE":"closed","BREAK":"broken"}},
	"broken":{"type":"final"}}}`

// used remembers which routes have succeeded.
type used struct {
	mu     sync.Mutex
	routes map[string]bool
}

func (u *used) observe(route string, status int, _ time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if status < 300 || status == http.StatusSwitchingProtocols {
		u.routes[route] = true
	}
}

func (u *used) has(route string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.routes[route]
}

// tour is a visit of every route, with something there to see.
type tour struct {
	*fixture
	notes *schema.Table
}

func (Flows) EveryRouteWorks(t *testing.T, db enginetest.Database) {
	u := &used{routes: map[string]bool{}}
	notes := schema.NewTable("notes", schema.String("text")) // of this test: a table belongs to one schema
	f := openWith(t, db, &perdure.Options{Outbox: true, Schemas: []*schema.Schema{schema.New("app", notes)}}, func(o *server.Options) { o.Observe = u.observe })
	enginetest.NoError(t, f.srv.Start())
	v := tour{fixture: f, notes: notes}
	v.trims() // the first one: the log of all others is looked at in the end
	v.machines()
	v.schedules()
	v.pauses()
	v.hooks()
	v.get("/v1/verdict")
	if !f.lacksTasks() {
		v.tasks()
	}
	v.alarms()
	v.slashes()
	v.actors()
	v.outbox()
	v.consumers()
	v.purges()
	v.looks()
	v.workers()
	v.access() // the last one: from then on tokens are needed
	for _, r := range api.Routes {
		if f.lacks(r) {
			continue
		}
		enginetest.Eventually(t, r.ID+" is answered", func() bool { return u.has(r.ID) })
	}
	v.acts()
}

func (v tour) get(path string) object { return v.want(http.StatusOK, http.MethodGet, path, nil) }

func (v tour) post(path string, body any) object {
	v.Helper()
	a := v.do(http.MethodPost, path, body)
	if a.status >= 300 {
		v.Fatalf("POST %s: %d %s", path, a.status, a.body)
	}
	var o object
	enginetest.NoError(v, json.Unmarshal(a.body, &o))
	return o
}

func (v tour) machines() {
	v.Helper()
	if d := v.get("/v1/definitions/order"); d.text("source") != "go" || d["latest"] != 1.0 {
		v.Errorf("definition: %v", d)
	}
	v.get("/v1/definitions")
	remote := object{"version": 1, "url": "https://orders.example.com/steps", "steps": []object{{"name": "only"}}}
	v.want(http.StatusOK, http.MethodPut, "/v1/definitions/far", remote)
	v.want(http.StatusNoContent, http.MethodDelete, "/v1/definitions/far?version=1", nil)
	id := v.start(object{"amount": 1})
	v.reaches(id, "waiting")
	v.get("/v1/instances?status=waiting&waits_for=signal&definition=order")
	for _, part := range []string{"", "/children", "/signals", "/history", "/journal", "/wait?timeout=0s"} {
		v.get("/v1/instances/" + id + part)
	}
	v.post("/v1/instances/"+id+"/signals", object{"name": "other"})
	if rows := v.get("/v1/instances/" + id + "/signals").list(); len(rows) != 1 || rows[0].text("name") != "other" {
		v.Errorf("signals: %v", rows)
	}
	waits := v.post("/v1/instances", object{"definition": "order", "state": object{}, "delay": "24h"}).text("id")
	v.post("/v1/instances/"+waits+"/run", nil)
	v.reaches(waits, "waiting")
	v.post("/v1/instances/"+waits+"/cancel", nil)
	v.post("/v1/instances/batch", object{"instances": []object{{"definition": "order", "state": object{"refuse": true}}}})
	v.post("/v1/instances/"+id+"/cancel", nil)
	v.post("/v1/instances/"+id+"/retry", nil)
	v.post("/v1/instances/"+id+"/terminate", nil)
	v.post("/v1/instances/"+id+"/retry", nil)
	v.want(http.StatusConflict, http.MethodDelete, "/v1/instances/"+id, nil)
	v.post("/v1/instances/actions", object{"action": "cancel", "ids": []string{id}})
	v.want(http.StatusNoContent, http.MethodDelete, "/v1/instances/"+id, nil)
	v.want(http.StatusNotFound, http.MethodGet, "/v1/instances/"+id, nil)
	other := v.start(object{"refuse": true})
	v.ended(other)
	v.post("/v1/instances/actions", object{"action": "delete", "ids": []string{other}})
	v.want(http.StatusNotFound, http.MethodGet, "/v1/instances/"+other, nil)
}

func (v tour) schedules() {
	v.Helper()
	path := "/v1/schedules/nightly"
	s := v.want(http.StatusOK, http.MethodPut, path, object{"definition": "order", "spec": "30 2 * * *", "zone": "Europe/Berlin"})
	if next, _ := s["next"].([]any); s.text("name") != "nightly" || len(next) != 5 {
		v.Errorf("schedule: %v", s)
	}
	v.get("/v1/schedules")
	if told := v.get("/v1/ticks?spec=30+2+*+*+*&zone=Europe/Berlin"); told["valid"] != true || fmt.Sprint(told["next"]) != fmt.Sprint(s["next"]) {
		v.Errorf("ticks: %v, of the schedule: %v", told, s["next"])
	}
	if told := v.get("/v1/ticks?spec=0+0+30+2+*"); told["valid"] != false || told.text("problem") == "" {
		v.Errorf("ticks of no date: %v", told)
	}
	fired := v.post(path+"/fire", nil)
	v.reaches(fired.text("id"), "waiting")
	v.post(path+"/pause", nil)
	if v.get(path)["paused"] != true {
		v.Error("it is not paused")
	}
	v.post(path+"/resume", nil)
	changed := v.want(http.StatusOK, http.MethodPatch, path, object{"spec": "45 3 * * *", "state": object{"refuse": true}})
	if changed.text("spec") != "45 3 * * *" || changed.text("zone") != "Europe/Berlin" || fmt.Sprint(changed["state"]) != "map[refuse:true]" || changed["paused"] != false {
		v.Errorf("the changed schedule: %v", changed)
	}
	v.want(http.StatusUnprocessableEntity, http.MethodPatch, path, object{"zone": "Mars/Base"})
	v.want(http.StatusNoContent, http.MethodDelete, path, nil)
	v.want(http.StatusNotFound, http.MethodDelete, path, nil)
}

func (v tour) hooks() {
	v.Helper()
	once := object{"kind": "exponential", "max_attempts": 1, "initial": "1s", "factor": 2, "max": "1m"}
	id := v.post("/v1/hooks", object{"namespace": "shop", "name": "mail", "payload": object{"to": "ada"}, "retry": once}).text("id")
	enginetest.Eventually(v, "the hook is dead", func() bool { return v.get("/v1/hooks/"+id).text("status") == "failed" })
	if rows := v.get("/v1/hooks?namespace=shop&name=mail&status=failed").list(); len(rows) != 1 || rows[0].text("error") != errMail.Error() {
		v.Errorf("hooks: %v", rows)
	}
	group := v.get("/v1/dead?group_by=error&kind=hooks").list()
	if len(group) != 1 || group[0].text("error") != errMail.Error() || group[0]["count"] != 1.0 {
		v.Errorf("groups: %v", group)
	}
	if rows := v.get("/v1/dead?kind=hooks").list(); len(rows) != 1 || rows[0].text("id") != id {
		v.Errorf("dead: %v", rows)
	}
	retried := v.post("/v1/dead/retry", object{"kind": "hooks", "error": errMail.Error()})
	if retried["matched"] != 1.0 || retried["done"] != 1.0 {
		v.Errorf("retry of a group: %v", retried)
	}
	later := v.post("/v1/hooks", object{"namespace": "shop", "name": "mail", "delay": "1h"}).text("id")
	v.post("/v1/hooks/"+later+"/cancel", nil)
	v.post("/v1/hooks/"+later+"/retry", nil)
	v.post("/v1/hooks/actions", object{"action": "cancel", "ids": []string{later}})
	soon := v.post("/v1/hooks", object{"namespace": "shop", "name": "mail", "delay": "1h"}).text("id")
	v.post("/v1/hooks/"+soon+"/run", nil)
	again := v.post("/v1/hooks/"+later+"/replay", object{"payload": object{"to": "bea"}}).text("id")
	if payload := fmt.Sprint(v.get("/v1/hooks/" + again)["payload"]); payload != "map[to:bea]" {
		v.Errorf("the payload of the replay is %s", payload)
	}
	v.want(http.StatusNoContent, http.MethodDelete, "/v1/hooks/"+later, nil)
	v.want(http.StatusNotFound, http.MethodGet, "/v1/hooks/"+later, nil)
	v.want(http.StatusNotFound, http.MethodDelete, "/v1/hooks/"+later, nil)
}

func (v tour) tasks() {
	v.Helper()
	mail := object{"from": "shop@example.com", "to": "ada@example.com", "subject": "Hi", "text": "Hello"}
	v.post("/v1/processes/email", object{"payload": mail, "at": "2100-01-01T00:00:00Z"})
	rows := v.get("/v1/tasks?status=scheduled&status=ready").list()
	if len(rows) == 0 {
		v.Fatal("no task waits")
	}
	id := rows[0].text("id")
	v.get("/v1/tasks/" + id)
	v.get("/v1/tasks/errors")
	v.post("/v1/tasks/"+id+"/cancel", nil)
	v.post("/v1/tasks/"+id+"/retry", nil)
	v.post("/v1/tasks/"+id+"/run", nil)
	v.post("/v1/tasks/actions", object{"action": "cancel", "ids": []string{id}})
	v.want(http.StatusNotFound, http.MethodGet, "/v1/tasks/999999", nil)
	later := func() string {
		return v.post("/v1/tasks", object{"type": "email", "payload": object{}, "at": "2100-01-01T00:00:00Z"}).text("id")
	}
	gone := later()
	v.want(http.StatusNoContent, http.MethodDelete, "/v1/tasks/"+gone, nil)
	v.want(http.StatusNotFound, http.MethodDelete, "/v1/tasks/"+gone, nil)
	gone = later()
	v.post("/v1/tasks/actions", object{"action": "delete", "ids": []string{gone}})
	v.want(http.StatusNotFound, http.MethodGet, "/v1/tasks/"+gone, nil)
}

func (v tour) alarms() {
	v.Helper()
	path := "/v1/alarms/" + url.PathEscape("order/42/reminder")
	a := v.want(http.StatusOK, http.MethodPut, path, object{"type": "remind", "every": "24h", "payload": object{"x": 1}})
	if a.text("id") != "order/42/reminder" || a.text("every") != "24h0m0s" || fmt.Sprint(a["actor"]) != "map[id:42 type:order]" {
		v.Errorf("alarm: %v", a)
	}
	v.get(path)
	if rows := v.get("/v1/alarms?actor=order/42").list(); len(rows) != 1 {
		v.Errorf("alarms: %v", rows)
	}
	v.post(path+"/skip", nil)
	v.post(path+"/move", object{"at": "2100-01-01T00:00:00Z"})
	v.post(path+"/fire", nil)
	v.want(http.StatusConflict, http.MethodPost, path+"/retry", nil)
	if c := v.want(http.StatusOK, http.MethodDelete, path, nil); c["result"] != "prevented" {
		v.Errorf("cancelled: %v", c)
	}
	v.want(http.StatusNotFound, http.MethodDelete, path, nil)
	for _, bad := range []object{{"every": "0s"}, {"every": "-1s"}, {"cron": "0 0 30 2 *"}, {"webhook": "ftp://example.org"}} {
		bad["type"] = "remind"
		v.want(http.StatusUnprocessableEntity, http.MethodPut, "/v1/alarms/bad", bad)
	}
	v.want(http.StatusOK, http.MethodPut, "/v1/alarms/dying", object{"type": "remind", "delay": "1h"})
	v.kill("dying")
	if c := v.want(http.StatusOK, http.MethodDelete, "/v1/alarms/dying", nil); c["result"] != "too_late" {
		v.Errorf("cancelled: %v", c)
	}
	v.want(http.StatusOK, http.MethodPut, "/v1/alarms/dying", object{"type": "remind", "delay": "1h"})
	v.kill("dying")
	v.post("/v1/alarms/dying/retry", nil)
	v.post("/v1/alarms/actions", object{"action": "fire", "ids": []string{"dying"}, "dry_run": true})
	v.want(http.StatusOK, http.MethodPut, "/v1/alarms/other", object{"type": "other", "delay": "1h"})
	v.post("/v1/alarms/actions", object{"action": "cancel", "ids": []string{"other"}})
	if n := v.want(http.StatusOK, http.MethodDelete, "/v1/alarms?type=remind", nil); n["done"] != 1.0 {
		v.Errorf("cancelled: %v", n)
	}
}

// kill makes an alarm a dead letter.
func (v tour) kill(id string) {
	items := v.db.Table("perdure", "alarm_items")
	v.db.Exec(v, "delete from "+v.db.Table("perdure", "ready")+" where id in (select id from "+items+" where alarm_id = ?)", id)
	v.db.Exec(v, "update "+items+" set dead = 'failed', error = 'it rang in vain' where alarm_id = ?", id)
}

func (v tour) actors() {
	v.Helper()
	if c := v.post("/v1/statecharts/check", object{"definition": json.RawMessage(`{"initial":"nowhere","states":{"a":{}}}`)}); c["valid"] != false {
		v.Errorf("check: %v", c)
	}
	m := v.want(http.StatusOK, http.MethodPut, "/v1/statecharts/door", object{"definition": json.RawMessage(door)})
	if m["version"] != 1.0 {
		v.Errorf("machine: %v", m)
	}
	v.get("/v1/statecharts")
	v.get("/v1/statecharts/door")
	if a := v.do(http.MethodGet, "/v1/statecharts/door/drawing.svg?active=door.open", nil); a.header.Get("Content-Type") != "image/svg+xml" || !strings.Contains(string(a.body), "<svg") {
		v.Errorf("drawing: %d %s", a.status, a.header.Get("Content-Type"))
	}
	ada := object{"type": "client", "id": "ada"}
	v.post("/v1/actors", object{"type": "door", "id": "front", "caller": ada})
	path := "/v1/actors/door/front"
	r := v.post(path+"/events?caller=client:ada", object{"type": "OPEN"})
	if s, _ := r["snapshot"].(map[string]any); s["value"] != "open" || fmt.Sprint(s["public"]) != "map[opened:1]" {
		v.Errorf("receipt: %v", r)
	}
	shown := v.get(path)
	if shown.text("state") != "open" || shown.text("next_timer_at") == "" {
		v.Errorf("actor: %v", shown)
	}
	v.get("/v1/actors?type=door&status=active&state=open")
	v.get(path + "/snapshot?wait_for_state=open&timeout=5m")
	if log, _ := v.get(path + "/log")["data"].([]any); len(log) != 2 {
		v.Errorf("log: %v", log)
	}
	v.timers(path)
	v.watches(path)
	v.post(path+"/reset", object{"step": 1})
	if a := v.get(path); a.text("state") == "open" {
		v.Errorf("actor after a reset: %v", a)
	}
	v.post(path+"/stop", nil)
	v.want(http.StatusNoContent, http.MethodDelete, path, nil)
	v.quarantined()
}

func (v tour) timers(path string) {
	v.Helper()
	timers := v.get(path + "/timers").list()
	if len(timers) != 1 {
		v.Fatalf("timers: %v", timers)
	}
	timer := path + "/timers/" + url.PathEscape(timers[0].text("key"))
	for _, filter := range []string{"", "&actor=door/front", "&status=scheduled&type=" + url.QueryEscape(timers[0].text("type"))} {
		delays := v.get("/v1/alarms?kind=timer" + filter).list()
		if len(delays) != 1 || delays[0].text("id") != "door/front/"+timers[0].text("key") || delays[0].text("due_at") != timers[0].text("due_at") || delays[0].text("kind") != "timer" {
			v.Errorf("delays as alarms%s: %v", filter, delays)
		}
	}
	v.post(timer+"/move", object{"at": "2100-01-01T00:00:00Z"})
	if due := v.get(path + "/timers").list()[0].text("due_at"); due != "2100-01-01T00:00:00.000Z" {
		v.Errorf("the timer was moved to %s", due)
	}
	v.post(timer+"/fire", nil)
	if state := v.get(path).text("state"); state != "closed" {
		v.Errorf("after the timer it is %s", state)
	}
	v.post(path+"/events", object{"type": "OPEN"})
	v.post(path+"/timers/"+url.PathEscape(v.get(path + "/timers").list()[0].text("key"))+"/skip", nil)
}

// quarantined lets an actor go on that was set aside.
func (v tour) quarantined() {
	v.Helper()
	v.post("/v1/actors", object{"type": "door", "id": "back"})
	v.db.Exec(v, "update "+v.db.Table("perdure", "actors")+" set status = 'quarantined', reason = 'by hand' where id = ?", "back")
	v.post("/v1/actors/door/back/resume", nil)
	v.post("/v1/actors/actions", object{"action": "resume", "ids": []string{"door/back"}})
	v.post("/v1/actors", object{"type": "door", "id": "side"})
	v.post("/v1/actors/actions", object{"action": "stop", "ids": []string{"door/side"}})
	if status := v.get("/v1/actors/door/back").text("status"); status != "active" {
		v.Errorf("after the resume it is %s", status)
	}
}

// newest checks that the newest entries are found without reading all before them.
func (v tour) newest(stamp string) {
	v.Helper()
	for _, limit := range []string{"1", "200"} {
		if rows := v.get("/v1/outbox?newest=true&limit=" + limit).list(); len(rows) != 1 || rows[0].text("stamp") != stamp {
			v.Errorf("the newest %s: %v", limit, rows)
		}
	}
}

func (v tour) outbox() {
	v.Helper()
	err := v.eng.Update(v.Context(), func(tx *perdure.Tx) error {
		_, err := tx.Create(v.notes, schema.Values{"text": "hello"})
		return err
	})
	enginetest.NoError(v, err)
	_, err = v.eng.Outbox().Register(v.Context(), "warehouse", [12]byte{})
	enginetest.NoError(v, err)
	rows := v.get("/v1/outbox").list()
	if len(rows) != 1 || rows[0].text("stamp") == "" {
		v.Fatalf("outbox: %v", rows)
	}
	v.newest(rows[0].text("stamp"))
	if c := v.get("/v1/outbox/consumers").list(); len(c) != 1 || c[0].text("lag") != "1" {
		v.Errorf("consumers: %v", c)
	}
	tail := v.stream("/v1/outbox/tail")
	defer func() { _ = tail.close() }()
	e := tail.next("entry")
	if e.id != rows[0].text("stamp") || !strings.Contains(e.data, "hello") {
		v.Errorf("tail: %+v", e)
	}
}
