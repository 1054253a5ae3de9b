package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/server"
)

// charges is a machine whose step fails, and is tried again after an hour.
func charges() *fsm.Definition[int] {
	return fsm.Define("charge", 1, &fsm.DefinitionOptions[int]{Retry: retry.Fixed(20, time.Hour)},
		fsm.Step("call", func(context.Context, *fsm.Run[int]) (fsm.Outcome, error) {
			return fsm.Outcome{}, errors.New("dial tcp 127.0.0.1:7580: connection refused")
		}, nil))
}

// failingCharge is a started server with a machine that fails, and its instance.
func failingCharge(t *testing.T, db enginetest.Database) (f *fixture, id string) {
	t.Helper()
	f = open(t, db, func(o *server.Options) { o.Definitions = append(o.Definitions, charges()) })
	enginetest.NoError(t, f.srv.Start())
	id = f.want(http.StatusCreated, http.MethodPost, "/v1/instances", object{"definition": "charge", "state": 1}).text("id")
	f.failed(id, 1)
	return f, id
}

// failed waits until an instance waits for another attempt after some failures.
func (f *fixture) failed(id string, failures float64) object {
	f.Helper()
	var i object
	enginetest.Eventually(f, "the step has failed", func() bool {
		i = f.get("/v1/instances/" + id)
		return i.text("status") == "retrying" && i["failures"] == failures
	})
	return i
}

// Work that failed is retrying, with the number of attempts that its policy allows, its
// error and its next time. An operator runs it now, alone or all that match.
func (Flows) FailingWorkIsRetryingUntilItIsRunNow(t *testing.T, db enginetest.Database) {
	f, id := failingCharge(t, db)
	i := f.failed(id, 1)
	if due, err := time.Parse(time.RFC3339, i.text("due_at")); err != nil || i["max_attempts"] != 20.0 || i.text("error") != "dial tcp 127.0.0.1:7580: connection refused" || time.Until(due) < time.Minute {
		t.Errorf("instance: %v", i)
	}
	if rows := f.get("/v1/instances?status=retrying").list(); len(rows) != 1 || rows[0]["max_attempts"] != 20.0 {
		t.Errorf("retrying: %v", rows)
	}
	f.want(http.StatusOK, http.MethodPost, "/v1/instances/"+id+"/run", nil)
	f.failed(id, 2)
	all := f.want(http.StatusOK, http.MethodPost, "/v1/instances/actions", object{"action": "run", "filter": object{"status": []string{"retrying"}}})
	if all["matched"] != 1.0 || all["done"] != 1.0 {
		t.Errorf("run of all that match: %v", all)
	}
	f.failed(id, 3)
	hook := f.want(http.StatusCreated, http.MethodPost, "/v1/hooks", object{"namespace": "shop", "name": "mail", "payload": object{}, "delay": "24h"}).text("id")
	f.want(http.StatusOK, http.MethodPost, "/v1/hooks/"+hook+"/run", nil)
	enginetest.Eventually(t, "the hook has run", func() bool { return f.get("/v1/hooks/" + hook)["attempts"] == 1.0 })
	order := f.start(object{"amount": 1})
	f.reaches(order, "waiting")
	f.want(http.StatusConflict, http.MethodPost, "/v1/instances/"+order+"/run", nil)
	actions := map[string]bool{}
	for _, entry := range f.get("/v1/audit").list() {
		actions[entry.text("action")] = true
	}
	if !actions["run-instance"] || !actions["act-on-instances"] || !actions["run-hook"] {
		t.Errorf("audited: %v", actions)
	}
}

// problems returns what the verdict says about work of a definition.
func (f *fixture) problems(name string) (verdict object, found []object) {
	f.Helper()
	verdict = f.get("/v1/verdict")
	all, _ := verdict["problems"].([]any)
	for _, p := range all {
		if p := object(p.(map[string]any)); p.text("name") == name {
			found = append(found, p)
		}
	}
	return verdict, found
}

// The verdict names failing work with its error and the target that pauses it, then its dead
// letters.
func (Flows) TheVerdictNamesFailingWork(t *testing.T, db enginetest.Database) {
	f, id := failingCharge(t, db)
	var verdict object
	var found []object
	enginetest.Eventually(t, "the verdict is read again", func() bool {
		verdict, found = f.problems("charge")
		return len(found) == 1
	})
	p := found[0]
	if verdict["ok"] != false || verdict["failing"] != 1.0 || p.text("what") != "failing" || p.text("kind") != "instances" || p["count"] != 1.0 || p.text("error") != "dial tcp 127.0.0.1:7580: connection refused" ||
		p.text("pause") != "fsm:charge" || p.text("since") == "" || fmt.Sprint(p["ids"]) != "["+id+"]" {
		t.Errorf("verdict: %v", verdict)
	}
	f.want(http.StatusOK, http.MethodPut, "/v1/pauses/"+p.text("pause"), object{"reason": "outage"})
	f.want(http.StatusOK, http.MethodPost, "/v1/instances/"+id+"/cancel", nil)
	enginetest.Eventually(t, "only the pause is left", func() bool {
		verdict, found = f.problems("charge")
		_, paused := f.problems("fsm:charge")
		return len(found) == 0 && verdict["failing"] == 0.0 && len(paused) == 1 && paused[0].text("detail") == "outage"
	})
	f.want(http.StatusNoContent, http.MethodDelete, "/v1/pauses/fsm:charge", nil)
	dead := f.start(object{"refuse": true})
	f.ended(dead)
	enginetest.Eventually(t, "new dead letters are a problem", func() bool {
		verdict, found = f.problems("order")
		return len(found) == 1 && found[0].text("what") == "dead" && found[0].text("error") == "card refused" && verdict["dead"] == 1.0
	})
}
