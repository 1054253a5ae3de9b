package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// Rows with times that neither Go nor JSON holds are in the lists, and no list fails
// because of them.
func (Flows) NoRowHidesAList(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	for range 2 {
		f.hook()
		if !f.lacksTasks() {
			f.task()
		}
		f.alarm()
		f.door()
		f.schedule()
		f.start(object{"amount": 1})
	}
	dead := f.hook()
	db.Exec(t, "insert into "+db.Table("perdure", "hook_ends")+" (id, status, created_at, finished_at) select id, 'failed', created_at, created_at from "+
		db.Table("perdure", "hook_items")+" h where coalesce(h.key, concat(h.id, '')) = ?", dead)
	for _, to := range []string{enginetest.Endless, enginetest.Beginningless} {
		for _, column := range []string{
			"perdure.hook_items.due_at", "perdure.hook_items.created_at", "perdure.hook_items.next_attempt_at", "perdure.hook_ends.created_at", "perdure.hook_ends.finished_at", "perdure.ready.due_at", "queues.task.scheduled_at", "queues.task.enqueued_at", "perdure.alarm_items.due_at",
			"perdure.alarm_items.occurs_at", "perdure.alarm_items.created_at", "perdure.timers.due_at", "perdure.timers.occurs_at", "perdure.timers.created_at", "perdure.schedules.next_at", "perdure.schedules.last_at", "perdure.instances.created_at",
			"perdure.actors.created_at", "perdure.actors.updated_at",
		} {
			part := strings.Split(column, ".")
			if part[0] == "queues" && f.lacksTasks() {
				continue
			}
			db.SetTime(t, part[0], part[1], part[2], to, "1 = 1")
			for _, list := range []string{
				"hooks", "tasks", "alarms", "instances", "actors", "schedules", "upcoming", "dead", "overview", "definitions", "nodes", "ticks?spec=@daily", "search?q=order",
			} {
				if a := f.do("GET", "/v1/"+list, nil); a.status >= 500 {
					t.Errorf("%s is %s: GET /v1/%s responds %d: %s", column, to, list, a.status, a.body)
				}
			}
		}
	}
}

// A schedule that cannot be read is listed with the reason and can be set again.
func (Flows) AnUnreadableScheduleIsListedAndRepaired(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	good, bad := f.schedule(), f.schedule()
	db.Exec(t, "update "+db.Table("perdure", "schedules")+` set spec = '{"schedule":{"cron":"61 25 * * *"}}' where name = ?`, strings.TrimPrefix(bad, "/v1/schedules/"))
	errs := map[string]string{}
	for _, s := range f.want(http.StatusOK, http.MethodGet, "/v1/schedules", nil).list() {
		errs["/v1/schedules/"+s.text("name")] = s.text("error")
	}
	if len(errs) != 2 || errs[good] != "" || !strings.Contains(errs[bad], "61") {
		t.Errorf("schedules: %v", errs)
	}
	if s := f.want(http.StatusOK, http.MethodGet, bad, nil); s.text("error") != errs[bad] {
		t.Errorf("the schedule: %v", s)
	}
	f.done(bad, "/pause")
	f.want(http.StatusUnprocessableEntity, http.MethodPost, bad+"/fire", nil)
	if s := f.want(http.StatusOK, http.MethodPut, bad, object{"definition": "order", "spec": "30 2 * * *"}); s["error"] != nil {
		t.Errorf("set again: %v", s)
	}
}
