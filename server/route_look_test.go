package server_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/perdure/perdure/internal/test/enginetest"
)

func (v tour) looks() {
	v.Helper()
	o := v.get("/v1/overview?range=1h")
	if kinds, _ := o["kinds"].([]any); len(kinds) != 6 {
		v.Errorf("overview: %v", o)
	}
	v.post("/v1/instances", object{"definition": "order", "delay": "1h"})
	if acts := v.get("/v1/audit?action=start-instance").list(); len(acts) == 0 {
		v.Error("the audit log has no start")
	}
	if rows, _ := v.get("/v1/upcoming?kind=instance")["data"].([]any); len(rows) != 1 {
		v.Errorf("upcoming: %v", rows)
	}
	v.get("/v1/upcoming")
	if rows := v.get("/v1/search?q=orde").list(); len(rows) == 0 || rows[0].text("kind") != "definition" {
		v.Errorf("search: %v", rows)
	}
	for kind, want := range map[string]string{
		"instances": "charge ship", "hooks": "mail", "tasks": "db_function", "alarms": "alarm timer", "actors": "broken closed open",
	} {
		if kind == "tasks" && v.lacksTasks() {
			want = ""
		}
		field := map[string]string{"instances": "step", "hooks": "name", "tasks": "type", "alarms": "kind", "actors": "state"}[kind]
		if values, _ := v.get("/v1/facets/" + kind)[field].([]any); strings.Trim(fmt.Sprint(values), "[]") != want {
			v.Errorf("the %s of %s can be %v", field, kind, values)
		}
	}
	enginetest.Eventually(v, "the node has shown that it lives", func() bool { return len(v.get("/v1/nodes").list()) == 1 })
	node := v.get("/v1/nodes").list()[0]
	if queues, _ := node["queues"].([]any); node.text("status") != "up" || node["running"] == nil || len(queues) == 0 {
		v.Errorf("node: %v", node)
	}
	s := v.stream("/v1/stream?topics=instances")
	defer func() { _ = s.close() }()
	v.start(object{"amount": 3})
	if c := s.next("change"); !strings.Contains(c.data, `"instances"`) {
		v.Errorf("change: %+v", c)
	}
	v.post("/v1/nodes/"+node.text("id")+"/drain", nil)
	if status := v.get("/v1/nodes").list()[0].text("status"); status != "draining" {
		v.Errorf("the node is %s", status)
	}
}

func (v tour) access() {
	v.Helper()
	if me := v.get("/v1/me"); me.text("role") != "admin" || me.text("auth") != "open" {
		v.Errorf("me: %v", me)
	}
	v.post("/v1/actors/door/back/tokens", object{"caller": object{"type": "client", "id": "ada"}})
	for _, path := range []string{"/v1/actors/door/back/tokens", "/v1/tokens/actors"} {
		if rows := v.get(path).list(); len(rows) != 1 || rows[0]["caller"].(map[string]any)["id"] != "ada" {
			v.Errorf("%s: %v", path, rows)
		}
	}
	made := v.post("/v1/tokens", object{"name": "ci", "role": "admin"})
	v.token = made.text("token")
	if me := v.get("/v1/me"); me.text("name") != "ci" || me.text("auth") != "token" {
		v.Errorf("me: %v", me)
	}
	session := v.do(http.MethodPost, "/v1/session", object{"token": v.token})
	cookie := session.header.Get("Set-Cookie")
	if session.status != http.StatusOK || !strings.Contains(cookie, "HttpOnly") {
		v.Fatalf("session: %d %s", session.status, cookie)
	}
	cookie, _, _ = strings.Cut(cookie, ";")
	token := v.token
	v.token = ""
	if me := v.want(http.StatusOK, http.MethodGet, "/v1/me", nil, "Cookie", cookie); me.text("auth") != "session" {
		v.Errorf("me: %v", me)
	}
	v.want(http.StatusNoContent, http.MethodDelete, "/v1/session", nil, "Cookie", cookie)
	v.want(http.StatusUnauthorized, http.MethodGet, "/v1/me", nil, "Cookie", cookie)
	v.token = token
	if rows := v.get("/v1/tokens").list(); len(rows) != 1 || rows[0].text("role") != "admin" {
		v.Errorf("tokens: %v", rows)
	}
	v.want(http.StatusNoContent, http.MethodDelete, "/v1/tokens/"+made.text("id"), nil)
}
