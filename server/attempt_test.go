package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/task"
)

// get reads one thing.
func (f *fixture) get(path string) object {
	f.Helper()
	return f.want(http.StatusOK, http.MethodGet, path, nil)
}

// wantTimeline fails the test unless one thing has one attempt, which failed so, and
// its list tells nothing of it.
func (f *fixture) wantTimeline(of, id, failure string) object {
	f.Helper()
	all, _ := f.get(of + "/" + id)["timeline"].([]any)
	if len(all) != 1 {
		f.Fatalf("timeline of %s/%s: %v", of, id, all)
	}
	attempt := object(all[0].(map[string]any))
	if attempt.text("outcome") != "failed" || attempt.text("error") != failure || attempt.text("ended_at") == "" {
		f.Errorf("attempt of %s/%s: %v", of, id, attempt)
	}
	for _, row := range f.get(of).list() {
		if row["timeline"] != nil || row["facts"] != nil {
			f.Errorf("list of %s: %v", of, row)
		}
	}
	return attempt
}

func (Flows) TheAttemptsOfAnInstanceAreShown(t *testing.T, db enginetest.Database) {
	f := started(t, db)
	id := f.start(object{"refuse": true})
	f.ended(id)
	attempt := f.wantTimeline("/v1/instances", id, "card refused")
	if attempt["number"] != 1.0 || attempt.text("step") != "charge" || attempt.text("worker") == "" || attempt["duration_ms"] == nil {
		t.Errorf("attempt: %v", attempt)
	}
	history := f.get("/v1/instances/" + id + "/history").list()
	if len(history) != 3 || history[1].text("outcome") != "error" || history[1].text("worker") == "" || history[2].text("outcome") != "failed" {
		t.Errorf("history: %v", history)
	}
}

func (Flows) TheAttemptsOfAHookAreShown(t *testing.T, db enginetest.Database) {
	f := started(t, db)
	id := f.want(http.StatusCreated, http.MethodPost, "/v1/hooks", object{"namespace": "shop", "name": "mail", "payload": object{}, "retry": object{"kind": "none", "max_attempts": 1}}).text("id")
	enginetest.Eventually(f, "the hook is dead", func() bool { return f.get("/v1/hooks/"+id).text("status") == "failed" })
	attempt := f.wantTimeline("/v1/hooks", id, errMail.Error())
	if attempt["number"] != 1.0 || attempt.text("worker") == "" || attempt.text("began_at") == "" {
		t.Errorf("attempt: %v", attempt)
	}
}

func (Flows) TheAttemptsOfAnAlarmAreShown(t *testing.T, db enginetest.Database) {
	f := open(t, db, nil)
	alarms, err := alarm.New(f.eng, nil)
	enginetest.NoError(t, err)
	_, err = alarm.Handle(alarms, "remind", func(context.Context, any) error { return errMail }, nil)
	enginetest.NoError(t, err)
	enginetest.NoError(t, alarms.Schedule(t.Context(), alarm.ID("x"), "remind", nil, &alarm.ScheduleOptions{Retry: retry.None()}))
	_, err = alarms.Process(t.Context())
	enginetest.NoError(t, err)
	if attempt := f.wantTimeline("/v1/alarms", "x", errMail.Error()); attempt.text("began_at") == "" {
		t.Errorf("attempt: %v", attempt)
	}
}

func (Flows) TheFactsAndAttemptsOfATaskAreShown(t *testing.T, db enginetest.Database) {
	f := open(t, db, nil)
	if f.lacksTasks() {
		f.want(http.StatusUnprocessableEntity, http.MethodGet, "/v1/tasks?type=email", nil)
		return
	}
	send := func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("mailbox is full") }
	worker, err := task.NewWorker(f.eng, &task.Options{Senders: map[string]task.Sender{"email": send}})
	enginetest.NoError(t, err)
	enginetest.NoError(t, f.eng.Update(t.Context(), func(tx *perdure.Tx) error {
		_, err := task.SendEmailIn(tx, task.Email{From: "shop@example.com", To: "ada@example.com", Subject: "Hello", Text: "Hello"}, nil)
		return err
	}))
	_, err = worker.Process(t.Context())
	enginetest.NoError(t, err)
	sends := f.get("/v1/tasks?type=email").list()
	if len(sends) != 1 {
		t.Fatalf("tasks: %v", sends)
	}
	f.wantTimeline("/v1/tasks", sends[0].text("id"), "mailbox is full")
	facts, _ := f.get("/v1/tasks/" + sends[0].text("id"))["facts"].([]any)
	if len(facts) != 2 {
		t.Fatalf("facts: %v", facts)
	}
	failed := object(facts[1].(map[string]any))
	if failed.text("kind") != "failed" || failed["attempt"] != 1.0 || failed.text("error") != "mailbox is full" || failed.text("at") == "" {
		t.Errorf("fact: %v", failed)
	}
}
