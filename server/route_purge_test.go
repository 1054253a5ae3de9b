package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/retry"
)

// trims removes the audit log so far.
func (v tour) trims() {
	v.Helper()
	v.start(object{"amount": 1})
	if r := v.post("/v1/audit/trim", object{"older_than": "24h"}); r["removed"] != 0.0 {
		v.Errorf("entries of today were removed: %v", r)
	}
	if r := v.post("/v1/audit/trim", object{"older_than": "0s"}); r["removed"] != 1.0 {
		v.Errorf("trimmed: %v", r)
	}
	v.want(http.StatusUnprocessableEntity, http.MethodPost, "/v1/audit/trim", object{})
}

// consumers moves a consumer of the outbox, removes what it has acknowledged, and then
// the consumer.
func (v tour) consumers() {
	v.Helper()
	v.deadEntries()
	path := "/v1/outbox/consumers/warehouse"
	status := v.get("/v1/outbox/status")
	last := status.text("last")
	if all, _ := status["consumers"].([]any); len(all) != 1 || strings.Trim(status.text("purged_through"), "0") != "" {
		v.Errorf("status: %v", status)
	}
	if rows := v.get("/v1/outbox?payload=true").list(); len(rows) != 1 || rows[0]["payload"] == nil || rows[0]["mutations"] == nil {
		v.Errorf("outbox with payloads: %v", rows)
	}
	tail := v.stream("/v1/outbox/tail?payload=true")
	if e := tail.next("entry"); !strings.Contains(e.data, `"payload"`) {
		v.Errorf("tail with payloads: %+v", e)
	}
	_ = tail.close()
	if r := v.post("/v1/outbox/purge", object{"older_than": "0s"}); r["removed"] != 0.0 {
		v.Errorf("what a consumer has not acknowledged was removed: %v", r)
	}
	if m := v.post(path+"/reset", object{"to": last}); m.text("to") != last || strings.Trim(m.text("from"), "0") != "" {
		v.Errorf("moved: %v", m)
	}
	if c := v.get("/v1/outbox/consumers").list(); c[0].text("lag") != "0" || c[0].text("created_at") == "" {
		v.Errorf("consumers: %v", c)
	}
	v.want(http.StatusUnprocessableEntity, http.MethodPost, path+"/reset", object{"to": "now"})
	v.want(http.StatusNotFound, http.MethodPost, "/v1/outbox/consumers/nobody/reset", object{"to": last})
	if r := v.post("/v1/outbox/purge", object{"older_than": "0s"}); r["removed"] != 1.0 {
		v.Errorf("purged: %v", r)
	}
	v.want(http.StatusGone, http.MethodPost, path+"/reset", object{"to": strings.Repeat("0", 24)})
	if f := v.want(http.StatusOK, http.MethodDelete, path, nil); f.text("position") != last {
		v.Errorf("deleted: %v", f)
	}
	v.want(http.StatusNotFound, http.MethodDelete, path, nil)
}

// deadEntries retries and skips an entry that a consumer cannot handle.
func (v tour) deadEntries() {
	v.Helper()
	c, err := v.eng.Outbox().Register(v.Context(), "depot", outbox.Stamp{})
	enginetest.NoError(v, err)
	p, err := c.Handle(func(context.Context, outbox.Entry) error { return retry.Stop(errors.New("no shelf")) }, nil)
	enginetest.NoError(v, err)
	path := "/v1/outbox/consumers/depot"
	fails := func() string {
		_, err := p.Process(v.Context())
		enginetest.NoError(v, err)
		rows := v.get(path + "/dead").list()
		if len(rows) != 1 || rows[0].text("error") != "no shelf" || rows[0].text("status") != "failed" || rows[0]["mutations"] == nil {
			v.Fatalf("dead letters: %v", rows)
		}
		return rows[0].text("stamp")
	}
	stamp := fails()
	if all := v.get("/v1/outbox/consumers").list(); all[0].text("name") != "depot" || all[0]["stopped"] != true || all[0]["dead"] != 1.0 {
		v.Errorf("consumers: %v", all)
	}
	if all := v.get("/v1/dead?kind=consumers").list(); len(all) != 1 || all[0].text("id") != "depot/"+stamp || all[0].text("name") != "depot" {
		v.Errorf("dead letters: %v", all)
	}
	if r := v.post("/v1/dead/retry", object{"kind": "consumers", "ids": []string{"depot/" + stamp, "depot/x", "nobody/" + stamp}}); r["done"] != 1.0 {
		v.Errorf("retried: %v", r)
	}
	fails()
	v.post(path+"/retry", object{"stamp": stamp})
	fails()
	if s := v.post(path+"/skip", object{"stamp": stamp}); s.text("stamp") != stamp {
		v.Errorf("skipped: %v", s)
	}
	v.want(http.StatusNotFound, http.MethodPost, path+"/skip", object{"stamp": stamp})
	v.want(http.StatusNotFound, http.MethodGet, "/v1/outbox/consumers/nobody/dead", nil)
	v.want(http.StatusUnprocessableEntity, http.MethodPost, path+"/retry", object{"stamp": "now"})
	if all := v.get("/v1/outbox/consumers").list(); all[0]["stopped"] != nil || all[0].text("lag") != "0" {
		v.Errorf("consumers: %v", all)
	}
	v.want(http.StatusOK, http.MethodDelete, path, nil)
}

// slashes acts on alarms whose names have slashes: those of an actor whose id has one, and
// those without an actor.
func (v tour) slashes() {
	v.Helper()
	owned, unowned := "/v1/alarms/x?actor=order/4/2", "/v1/alarms/"+url.PathEscape("a/b/c")
	if a := v.want(http.StatusOK, http.MethodPut, owned, object{"type": "slash", "delay": "1h"}); fmt.Sprint(a["actor"]) != "map[id:4/2 type:order]" {
		v.Errorf("alarm: %v", a)
	}
	if a := v.want(http.StatusOK, http.MethodPut, unowned+"?actor=none", object{"type": "slash", "delay": "1h"}); a["actor"] != nil {
		v.Errorf("alarm: %v", a)
	}
	v.get(owned)
	v.get(unowned + "?actor=none")
	v.want(http.StatusNotFound, http.MethodGet, unowned, nil)
	v.want(http.StatusUnprocessableEntity, http.MethodGet, unowned+"?actor=order", nil)
	if acts := v.get("/v1/audit?kind=alarms&target=order/4/2/x").list(); len(acts) != 1 || acts[0]["after"] == nil {
		v.Errorf("acts on the alarm: %v", acts)
	}
	done := v.post("/v1/alarms/actions", object{"action": "fire", "filter": object{"type": "slash", "status": []string{"scheduled"}}})
	if done["done"] != 2.0 {
		v.Errorf("fired: %v", done)
	}
	if n := v.want(http.StatusOK, http.MethodDelete, "/v1/alarms?type=slash", nil); n["done"] != 2.0 {
		v.Errorf("cancelled: %v", n)
	}
}

// purges removes finished work and dead letters.
func (v tour) purges() {
	v.Helper()
	failed := v.start(object{"refuse": true})
	v.ended(failed)
	done := v.start(object{"amount": 1})
	v.post("/v1/instances/"+done+"/cancel", nil)
	v.post("/v1/instances/purge", object{"older_than": "0s"})
	v.want(http.StatusNotFound, http.MethodGet, "/v1/instances/"+done, nil)
	v.get("/v1/instances/" + failed)
	v.post("/v1/instances/purge", object{"older_than": "0s", "dead": true})
	v.want(http.StatusNotFound, http.MethodGet, "/v1/instances/"+failed, nil)
	cancelled := v.post("/v1/hooks", object{"namespace": "shop", "name": "mail", "delay": "1h"}).text("id")
	v.post("/v1/hooks/"+cancelled+"/cancel", nil)
	v.post("/v1/hooks/purge", object{"older_than": "24h"})
	v.get("/v1/hooks/" + cancelled)
	v.post("/v1/hooks/purge", object{"older_than": "0s"})
	v.want(http.StatusNotFound, http.MethodGet, "/v1/hooks/"+cancelled, nil)
	v.want(http.StatusUnprocessableEntity, http.MethodPost, "/v1/hooks/purge", object{"older_than": "-1s"})
	if v.lacksTasks() {
		return
	}
	task := v.post("/v1/tasks", object{"type": "db_function", "payload": object{"db_function": "no.such"}, "delay": "1h"}).text("id")
	if t := v.get("/v1/tasks/" + task); t.text("type") != "db_function" || t.text("status") != "scheduled" || t.text("scheduled_at") <= t.text("enqueued_at") {
		v.Errorf("the task: %v", t)
	}
	now := map[string]string{enginetest.Postgres: "now()", enginetest.SQLite: "1"}[v.db.Name]
	v.db.Exec(v, "insert into "+v.db.Table("queues", "error")+" (task_id, error_message, created_at) values ("+task+", 'no such mailbox', "+now+")")
	if rows := v.get("/v1/tasks/errors?task=" + task).list(); len(rows) != 1 || rows[0].text("task") != task {
		v.Errorf("the errors of the task: %v", rows)
	}
	if r := v.post("/v1/tasks/purge", object{"older_than": "0s"}); r["errors"] != 1.0 {
		v.Errorf("purged: %v", r)
	}
	v.post("/v1/tasks/"+task+"/cancel", nil)
}
