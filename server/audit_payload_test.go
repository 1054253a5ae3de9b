package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// The audit log has the sizes of payloads, also of those in lists, and of events their
// types.
func (Flows) NoPayloadIsInTheAuditLog(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	secret := object{"customer": "s3cr3t"}
	event := object{"type": "CLOSE", "card": "s3cr3t"}
	door, hook, schedule := f.door(), f.hook(), f.schedule()
	before := len(f.entries())
	requests := []struct {
		method, path string
		body         object
	}{
		{http.MethodPost, "/v1/instances", object{"definition": "order", "state": secret}},
		{http.MethodPost, "/v1/instances/batch", object{"instances": []object{{"definition": "order", "state": secret}}}},
		{http.MethodPost, "/v1/instances/" + f.start(nil) + "/signals", object{"name": "approved", "payload": secret}},
		{http.MethodPut, schedule, object{"definition": "order", "spec": "30 2 * * *", "state": secret}},
		{http.MethodPatch, schedule, object{"state": secret}},
		{http.MethodPost, "/v1/hooks", object{"namespace": "shop", "name": "mail", "delay": "1h", "payload": secret}},
		{http.MethodPost, "/v1/hooks/" + hook + "/replay", object{"payload": secret}},
		{http.MethodPut, "/v1/alarms/" + f.new(), object{"type": "remind", "every": "24h", "payload": secret}},
		{http.MethodPost, "/v1/processes/email", object{"payload": object{"from": "shop@example.com", "to": "ada@example.com", "subject": "s3cr3t", "text": "s3cr3t"}}},
		{http.MethodPost, "/v1/actors", object{"type": "door", "id": f.new(), "input": secret}},
		{http.MethodPost, door + "/events", event},
	}
	if f.lacksTasks() {
		requests = slices.DeleteFunc(requests, func(r struct {
			method, path string
			body         object
		}) bool {
			return strings.HasPrefix(r.path, "/v1/processes")
		})
	}
	for _, r := range requests {
		if a := f.do(r.method, r.path, r.body); a.status >= 300 {
			t.Errorf("%s %s: %d: %s", r.method, r.path, a.status, a.body)
		}
	}
	f.overSocket(door, event)
	made := f.entries()[before:]
	if want := len(requests) + 2; len(made) != want { // one instance was started to be signaled
		t.Errorf("there are %d entries, want %d", len(made), want)
	}
	events := 0
	for _, e := range made {
		if strings.Contains(e.Input+e.Before+e.After, "s3cr3t") {
			t.Errorf("%s has a payload: %s %s %s", e.Action, e.Input, e.Before, e.After)
		}
		if e.Action == "send-event" && strings.Contains(e.Input, `"type":"CLOSE"`) && strings.Contains(e.Input, `"bytes":`) {
			events++
		}
	}
	if events != 2 {
		t.Errorf("%d events have their type and size, want 2", events)
	}
}

// A request that finds what it would make has changed nothing and has no entry.
func (Flows) WhatWasThereAlreadyHasNoEntry(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	unique := object{"definition": "order", "unique_key": "k", "delay": "1h"}
	id := f.want(http.StatusCreated, http.MethodPost, "/v1/instances", unique).text("id")
	signal := object{"name": "approved", "key": "k"}
	f.want(http.StatusCreated, http.MethodPost, "/v1/instances/"+id+"/signals", signal)
	door := f.door()
	before := len(f.entries())
	f.want(http.StatusOK, http.MethodPost, "/v1/instances", unique)
	f.want(http.StatusOK, http.MethodPost, "/v1/instances", unique, "Idempotency-Key", f.new())
	f.want(http.StatusCreated, http.MethodPost, "/v1/instances/"+id+"/signals", signal)
	f.want(http.StatusCreated, http.MethodPost, "/v1/actors", object{"type": "door", "id": door[strings.LastIndex(door, "/")+1:], "if_absent": true})
	if made := f.entries()[before:]; len(made) > 0 {
		t.Errorf("entries of requests that changed nothing: %+v", made)
	}
	started := f.want(http.StatusCreated, http.MethodPost, "/v1/instances/batch", object{"instances": []object{unique, {"definition": "order"}}}).list()
	if made := f.entries()[before:]; len(made) != 1 || made[0].Target != started[1].text("id") {
		t.Errorf("entries of a batch with a duplicate: %+v", made)
	}
}

// overSocket sends an event to an actor over a WebSocket and waits for its receipt.
func (f *fixture) overSocket(path string, event object) {
	f.Helper()
	ctx := enginetest.Context(f)
	conn, res, err := websocket.Dial(ctx, strings.Replace(f.url, "http", "ws", 1)+path+"/socket", nil)
	enginetest.NoError(f, err)
	defer func() { _ = conn.CloseNow() }()
	if res.Body != nil {
		defer res.Body.Close()
	}
	enginetest.NoError(f, wsjson.Write(ctx, conn, object{"id": "1", "event": event}))
	for {
		var m object
		enginetest.NoError(f, wsjson.Read(ctx, conn, &m))
		if m.text("kind") == "receipt" {
			return
		}
	}
}
