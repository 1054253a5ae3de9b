package alarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A row that Go cannot hold, or whose texts mean nothing, stops neither the alarms
// of its type nor a list.
func (Conformance) NoAlarmStopsOthers(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &alarm.Options{OnError: func(error) {}})
	f.handle(t, "a", func(_ context.Context, payload string) error {
		if payload == "unruly" {
			return errors.New("no")
		}
		return nil
	})
	for column, times := range map[string][]string{
		"due_at":     {enginetest.Beginningless, enginetest.Endless},
		"occurs_at":  {enginetest.Beginningless, enginetest.Endless},
		"created_at": {enginetest.Beginningless, enginetest.Endless},
		"base_at":    {enginetest.Beginningless, enginetest.Endless},
	} {
		for _, to := range times {
			id := column + " " + to
			f.schedule(t, id, "a", nil)
			var item string
			f.run(t, host.Of(f.eng).Store.GetAlarm(store.AlarmKey{ID: id}, func(a store.Alarm) { item = a.Item }))
			db.SetTime(t, "perdure", "alarm_items", column, to, "alarm_id = ?", id)
			if column == "due_at" {
				db.SetTime(t, "perdure", "ready", column, to, "id = ?", item)
			}
		}
	}
	for id, set := range map[string]string{
		"unruly": "policy = '[1]'", "strange": "payload = '[1]'", "cron": "cron = 'no', zone = 'nowhere'", "every": "every_us = -1",
	} {
		f.schedule(t, id, "a", nil)
		db.Exec(t, "update "+db.Table("perdure", "alarm_items")+" set "+set+" where alarm_id = ?", id)
	}
	f.schedule(t, "fine", "a", nil)
	_, err := f.alarms.Process(enginetest.Context(t))
	enginetest.NoError(t, err)
	ran := map[string]bool{}
	for _, r := range f.runs.all() {
		ran[r.Alarm.ID] = true
	}
	for _, id := range []string{"fine", "due_at -infinity", "occurs_at -infinity", "created_at infinity"} {
		if !ran[id] {
			t.Errorf("alarm %q was not fired", id)
		}
	}
	if r := f.is(t, alarm.ID("unruly"), alarm.Failed); !strings.Contains(r.Error, "retry policy") {
		t.Errorf("the alarm with a strange policy has the error %q", r.Error)
	}
	f.is(t, alarm.ID("due_at infinity"), alarm.Scheduled)
	page, _, err := f.alarms.List(enginetest.Context(t), alarm.Filter{}, "", 100)
	enginetest.NoError(t, err)
	for _, r := range page {
		if _, err := json.Marshal([]time.Time{r.Created, r.Due, r.Scheduled, r.Base, r.LastAttempt, r.LeaseExpires}); err != nil {
			t.Errorf("alarm %s: %v", r.ID, err)
		}
	}
	_, err = f.alarms.NextWakeAt(enginetest.Context(t))
	enginetest.NoError(t, err)
}
