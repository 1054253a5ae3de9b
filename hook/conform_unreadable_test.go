package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A row that Go cannot hold, or whose texts mean nothing, stops neither the hooks
// of its namespace nor a list.
func (Conformance) NoHookStopsOthers(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "a", func(_ context.Context, payload string) error {
		if payload == "fails" {
			return errors.New("no")
		}
		return nil
	})
	table := db.Table("perdure", "hook_items")
	set := func(column, to string) string {
		id := f.trigger(t, "a", nil)
		db.SetTime(t, "perdure", "hook_items", column, to, "id = ?", id)
		if column == "due_at" {
			db.SetTime(t, "perdure", "ready", column, to, "id = ?", id)
		}
		return id
	}
	early := set("due_at", enginetest.Beginningless)
	never := set("due_at", enginetest.Endless)
	set("created_at", enginetest.Beginningless)
	set("created_at", enginetest.Endless)
	strange := f.trigger(t, "a", nil)
	db.Exec(t, "update "+table+" set payload = '[1]' where id = ?", strange)
	unruly := f.trigger(t, "a", nil)
	db.Exec(t, "update "+table+" set payload = '\"fails\"', policy = '[1]' where id = ?", unruly)
	fine := f.trigger(t, "a", nil)

	f.process(t, 6)
	for _, id := range []string{early, fine} {
		equal(t, "status", f.get(t, id).Status, hook.Done)
	}
	equal(t, "status", f.get(t, never).Status, hook.Scheduled)
	if r := f.get(t, strange); !strings.Contains(r.Error, "payload") {
		t.Errorf("the hook with a strange payload is %s: %q", r.Status, r.Error)
	}
	if r := f.get(t, unruly); r.Status != hook.Failed || !strings.Contains(r.Error, "retry policy") {
		t.Errorf("the hook with a strange policy is %s: %q", r.Status, r.Error)
	}
	page, _, err := f.admin.List(enginetest.Context(t), hook.Filter{}, "", 100)
	enginetest.NoError(t, err)
	equal(t, "hooks", len(page), 7)
	for _, r := range page {
		if _, err := json.Marshal([]any{r.Created, r.Due, r.NextAttempt, r.LastAttempt, r.Finished}); err != nil {
			t.Errorf("hook %s: %v", r.ID, err)
		}
	}
	_, err = f.hooks.NextWakeAt(enginetest.Context(t))
	enginetest.NoError(t, err)
}
