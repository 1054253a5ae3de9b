package cli

import (
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

// A line has mutations and events in the order in which they were recorded.
func TestOutboxTailShowsEvents(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.SQLite)
	users := schema.NewTable("users", schema.String("name"))
	eng := db.Open(t, &perdure.Options{Schemas: []*schema.Schema{schema.New("app", users)}, Outbox: true})
	enginetest.NoError(t, eng.Update(t.Context(), func(tx *perdure.Tx) error {
		_ = tx.Emit("asked", "", nil)
		_, _ = tx.Create(users, schema.Values{"id": "ann", "name": "Ann"})
		return tx.Emit("welcomed", "ann\x1b", map[string]int{"mails": 1})
	}))
	run(t, "outbox", "tail", "--dsn", db.DSN, "--limit", "1").want(t, 0, "event asked, create app.users ann, event welcomed", `ann\x1b`)
	entry := run(t, "outbox", "tail", "--dsn", db.DSN, "--limit", "1", "--json").decode(t)
	events, _ := entry["events"].([]any)
	if len(events) != 2 || events[1].(map[string]any)["payload"].(map[string]any)["mails"] != 1.0 || events[1].(map[string]any)["stamp"] != "000000000000000000010002" {
		t.Errorf("the entry is %v", entry)
	}
	run(t, "outbox", "verify", "--dsn", db.DSN).want(t, 0, "1 entry, 1 mutation, 2 events", "ok")
}
