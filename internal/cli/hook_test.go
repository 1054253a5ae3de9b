package cli

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/retry"
)

// hooked triggers three hooks: one that succeeds, one that fails for good and one
// for tomorrow.
func hooked(t *testing.T, dsn string) {
	t.Helper()
	eng, err := perdure.Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = eng.Close() }()
	hooks, err := hook.New(eng, "shop", &hook.Options{Retry: retry.None()})
	if err != nil {
		t.Fatal(err)
	}
	mail, err := hook.Define(hooks, "mail", func(_ context.Context, to string) error {
		if to == "bad" {
			return errors.New("no such mailbox\nwith a second \x1b[31mline")
		}
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = eng.Update(t.Context(), func(tx *perdure.Tx) error {
		for id, options := range map[string]hook.TriggerOptions{"good": {}, "bad": {}, "tomorrow": {Delay: 24 * time.Hour}} {
			options.ID = id
			if _, err := mail.TriggerIn(tx, id, &options); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hooks.Process(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestHooks(t *testing.T) {
	t.Parallel()
	for name, dsn := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := dsn(t)
			hooked(t, dsn)
			checkHookLists(t, dsn)
			checkHookChanges(t, dsn)
		})
	}
}

func checkHookLists(t *testing.T, dsn string) {
	t.Helper()
	run(t, "hook", "list", "--dsn", dsn).want(t, 0, "shop/mail", "done", "failed", "scheduled", "no such mailbox …")
	page := run(t, "hook", "list", "--dsn", dsn, "--json", "--status", "failed,quarantined").decode(t)
	if data := page["data"].([]any); len(data) != 1 || data[0].(map[string]any)["id"] != "bad" {
		t.Errorf("dead letters: %v", page)
	}
	page = run(t, "hook", "list", "--dsn", dsn, "--json", "--limit", "2").decode(t)
	next, _ := page["next_cursor"].(string)
	page = run(t, "hook", "list", "--dsn", dsn, "--json", "--cursor", next).decode(t)
	if next == "" || len(page["data"].([]any)) != 1 {
		t.Errorf("second page after %q: %v", next, page)
	}
	run(t, "hook", "show", "bad", "--dsn", dsn).want(t, 0, "1 of 1 (none)", `"bad"`, "attempts\n#  OUTCOME", "no such mailbox …", "\ufffd[31mline")
	timeline, _ := run(t, "hook", "show", "bad", "--dsn", dsn, "--json").decode(t)["timeline"].([]any)
	if len(timeline) != 1 || timeline[0].(map[string]any)["outcome"] != "failed" {
		t.Errorf("timeline: %v", timeline)
	}
	run(t, "hook", "show", "nobody", "--dsn", dsn).wantError(t, exitNotFound, "does not exist")
	run(t, "hook", "list", "--dsn", dsn, "--status", "sleepy").wantError(t, exitUsage, "sleepy")
	run(t, "hook", "list", "--dsn", dsn, "--cursor", "?").wantError(t, exitUsage, "cursor")
	run(t, "hook", "list", "--dsn", dsn, "--limit", "-1").wantError(t, exitUsage, "limit")
}

func checkHookChanges(t *testing.T, dsn string) {
	t.Helper()
	run(t, "hook", "retry", "bad", "tomorrow", "--dsn", dsn).want(t, 0, "bad is due now", "tomorrow is due now")
	run(t, "hook", "cancel", "bad", "--dsn", dsn).want(t, 0, "bad is cancelled")
	run(t, "hook", "cancel", "good", "--dsn", dsn).wantError(t, exitConflict, "is done")
	run(t, "hook", "delete", "tomorrow", "--dsn", dsn).want(t, 0, "tomorrow is gone")
	run(t, "hook", "delete", "tomorrow", "--dsn", dsn).wantError(t, exitNotFound, "does not exist")
	run(t, "hook", "purge", "--dsn", dsn).wantError(t, exitUsage, "--older-than")
	removed := run(t, "hook", "purge", "--older-than", "0s", "--dsn", dsn, "--json").decode(t)
	if removed["removed"] != float64(2) {
		t.Errorf("removed %v, want 2", removed["removed"])
	}
}
