package server_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/server"
)

// trips is a machine with a cancel step that waits, so that its instances stay in it.
func trips() *fsm.Definition[order] {
	wait := func(signal string) func(context.Context, *fsm.Run[order]) (fsm.Outcome, error) {
		return func(_ context.Context, r *fsm.Run[order]) (fsm.Outcome, error) {
			return r.Await(signal).Then("end"), nil
		}
	}
	return fsm.Define("trip", 1, &fsm.DefinitionOptions[order]{OnCancel: "refund"},
		fsm.Step("book", wait("booked"), nil),
		fsm.Step("refund", wait("refunded"), nil),
		fsm.Step("end", func(_ context.Context, r *fsm.Run[order]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil),
	)
}

// trip starts an instance of trips and returns its path when it waits.
func (f *fixture) trip() string {
	f.Helper()
	id := f.want(http.StatusCreated, http.MethodPost, "/v1/instances", object{"definition": "trip"}).text("id")
	f.reaches(id, "waiting")
	return "/v1/instances/" + id
}

// awaits waits until an instance waits for a signal, and returns it.
func (f *fixture) awaits(path, signal string) object {
	f.Helper()
	var i object
	enginetest.Eventually(f, "instance waits for "+signal, func() bool {
		i = f.want(http.StatusOK, http.MethodGet, path, nil)
		return fmt.Sprint(i["awaits"]) == "["+signal+"]"
	})
	return i
}

// A cancelled instance continues with its cancel step, shows why, and is not changed
// by a second cancel. Terminate ends it.
func (Flows) TerminateEndsAnInstanceWithoutItsCancelStep(t *testing.T, db enginetest.Database) {
	f := open(t, db, func(o *server.Options) { o.Definitions = append(o.Definitions, trips()) })
	enginetest.NoError(t, f.srv.Start())
	d := f.want(http.StatusOK, http.MethodGet, "/v1/definitions/trip", nil)
	if versions, _ := d["versions"].([]any); len(versions) != 1 || versions[0].(map[string]any)["on_cancel"] != "refund" {
		t.Errorf("definition: %v", d)
	}
	one, two := f.trip(), f.trip()
	if i := f.want(http.StatusOK, http.MethodGet, one, nil); i.text("on_cancel") != "refund" || i["cancel_reason"] != nil {
		t.Errorf("before the cancel: %v", i)
	}
	f.want(http.StatusOK, http.MethodPost, one+"/cancel", object{"reason": "no trip"})
	f.want(http.StatusOK, http.MethodPost, one+"/cancel", object{"reason": "again"})
	if i := f.awaits(one, "refunded"); i.text("cancel_reason") != "no trip" {
		t.Errorf("in its cancel step: %v", i)
	}
	f.want(http.StatusOK, http.MethodPost, one+"/terminate", object{"reason": "no refund"})
	f.terminated(one, "no refund", "no trip")
	f.want(http.StatusOK, http.MethodPost, two+"/terminate", nil)
	f.terminated(two, "terminated by local", "")
	for path, status := range map[string]int{one: http.StatusConflict, "/v1/instances/x": http.StatusNotFound, "/v1/instances/0198c5d2-0000-7000-8000-000000000000": http.StatusNotFound} {
		f.want(status, http.MethodPost, path+"/terminate", nil)
	}
}

// terminated checks how an instance ended, and that it shows that in lists too.
func (f *fixture) terminated(path, reason, cancelled string) {
	f.Helper()
	end := f.want(http.StatusOK, http.MethodGet, path, nil)
	if end.text("status") != "cancelled" || end.text("error") != reason || end.text("cancel_reason") != cancelled {
		f.Errorf("instance: %v", end)
	}
	rows := f.want(http.StatusOK, http.MethodGet, "/v1/instances?definition=trip&status=cancelled&limit=1", nil).list()
	if len(rows) != 1 || rows[0].text("cancel_reason") != cancelled || rows[0].text("on_cancel") != "refund" {
		f.Errorf("the list: %v", rows)
	}
}

// One request terminates many, with one reason for all.
func (Flows) ManyInstancesAreTerminated(t *testing.T, db enginetest.Database) {
	f := open(t, db, func(o *server.Options) { o.Definitions = append(o.Definitions, trips()) })
	enginetest.NoError(t, f.srv.Start())
	paths := []string{f.trip(), f.trip()}
	body := object{"action": "terminate", "reason": "season is over", "filter": object{"definition": "trip", "status": []string{"live"}}}
	if done := f.want(http.StatusOK, http.MethodPost, "/v1/instances/actions", body); fmt.Sprint(done["matched"], done["done"]) != "2 2" {
		t.Errorf("terminated: %v", done)
	}
	for _, path := range paths {
		if i := f.want(http.StatusOK, http.MethodGet, path, nil); i.text("status") != "cancelled" || i.text("error") != "season is over" || i["cancel_reason"] != nil {
			t.Errorf("instance: %v", i)
		}
	}
}
