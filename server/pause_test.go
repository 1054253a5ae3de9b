package server_test

import (
	"net/http"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// pauses pauses a definition, and shows it where operators look.
func (v tour) pauses() {
	v.Helper()
	path := "/v1/pauses/fsm:order"
	v.want(http.StatusOK, http.MethodPut, path, object{"reason": "migration"})
	id := v.start(object{"amount": 1})
	for _, rows := range [][]object{v.get("/v1/pauses").list(), v.paused()} {
		if len(rows) != 1 || rows[0].text("target") != "fsm:order" || rows[0].text("reason") != "migration" || rows[0].text("actor") == "" {
			v.Errorf("pauses: %v", rows)
		}
	}
	v.want(http.StatusNoContent, http.MethodDelete, path, nil)
	v.reaches(id, "waiting")
	if rows := v.paused(); len(rows) != 0 {
		v.Errorf("after it was resumed: %v", rows)
	}
	v.want(http.StatusUnprocessableEntity, http.MethodPut, "/v1/pauses/mail", object{})
	v.post("/v1/instances/"+id+"/terminate", nil)
}

func (f *fixture) paused() []object {
	f.Helper()
	o := f.want(http.StatusOK, http.MethodGet, "/v1/overview", nil)
	o["data"] = o["paused"]
	return o.list()
}

// A paused instance waits as if it were ready: it needs no other process, and no operator.
func (Flows) APausedInstanceIsReadyAndServed(t *testing.T, db enginetest.Database) {
	f := started(t, db)
	f.want(http.StatusOK, http.MethodPut, "/v1/pauses/fsm:order", object{"reason": "migration"})
	id := f.start(object{"amount": 1})
	enginetest.Eventually(t, "the instance is parked", func() bool { return f.db.Rows(f, "perdure", "unrouted") == 1 })
	if i := f.want(http.StatusOK, http.MethodGet, "/v1/instances/"+id, nil); i.text("status") != "ready" {
		t.Errorf("status: %v", i)
	}
	if all := f.unserved(); len(all) != 0 {
		t.Errorf("unserved: %v", all)
	}
	f.want(http.StatusNoContent, http.MethodDelete, "/v1/pauses/fsm:order", nil)
	f.reaches(id, "waiting")
}
