package server_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// unserved returns what the overview says that no live process serves.
func (f *fixture) unserved() []object {
	f.Helper()
	o := f.want(http.StatusOK, http.MethodGet, "/v1/overview", nil)
	o["data"] = o["unserved"]
	return o.list()
}

// overdue makes all that is ready due since an hour.
func (f *fixture) overdue() {
	f.Helper()
	ago := "now() - interval '1 hour'"
	switch f.db.Name {
	case enginetest.MySQL:
		ago = "utc_timestamp() - interval 1 hour"
	case enginetest.SQLite:
		ago = fmt.Sprint(time.Now().Add(-time.Hour).UnixMicro())
	}
	f.db.Exec(f, "update "+f.db.Table("perdure", "ready")+" set due_at = "+ago)
	f.db.Exec(f, "update "+f.db.Table("perdure", "instances")+" set due_at = "+ago)
}

// The overview names due work that no live process serves, until a process does. A
// server that does not work, or works no longer, is no such process.
func (Flows) TheOverviewNamesWorkThatNoLiveProcessServes(t *testing.T, db enginetest.Database) {
	f := open(t, db, nil)
	enginetest.NoError(t, f.srv.Start())
	enginetest.Eventually(t, "the process takes instances", func() bool {
		for _, n := range f.want(http.StatusOK, http.MethodGet, "/v1/nodes", nil).list() {
			queues, _ := n["queues"].([]any)
			for _, q := range queues {
				if q := object(q.(map[string]any)); q.text("kind") == "instance" && q["idle"] == nil && fmt.Sprint(q["serves"]) == "[order@1]" {
					return true
				}
			}
		}
		return false
	})
	f.want(http.StatusCreated, http.MethodPost, "/v1/instances", object{"definition": "order", "queue": "lonely", "state": object{}})
	f.overdue()
	if all := f.unserved(); len(all) != 1 || all[0].text("kind") != "instances" || all[0].text("why") != "queue" || all[0].text("queue") != "lonely" || all[0]["count"] != 1.0 {
		t.Errorf("unserved: %v", all)
	}
	enginetest.NoError(t, f.srv.Stop(enginetest.Context(t)))
	f.start(nil)
	f.overdue()
	if all := f.unserved(); len(all) != 2 || all[0].text("queue") != "default" || all[1].text("queue") != "lonely" {
		t.Errorf("unserved after the process has ended: %v", all)
	}
}
