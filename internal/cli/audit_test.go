package cli

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// What the command line changes in the database is in the audit log: who, what, why.
// What only reads is not.
func TestCommandsAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		dsn := enginetest.New(t, name).DSN
		run(t, "migrate", "--dsn", dsn).want(t, 0)
		run(t, "token", "create", "ci", "--reason", "for the build", "--dsn", dsn).want(t, 0)
		run(t, "alarm", "schedule", "tea", "--type", "remind", "--delay", "1h", "--dsn", dsn).want(t, 0)
		run(t, "alarm", "schedule", "cake", "--type", "remind", "--delay", "1h", "--dsn", dsn).want(t, 0)
		run(t, "alarm", "cancel", "cake", "tea", "--reason", "too hot", "--dsn", dsn).want(t, 0)
		run(t, "alarm", "list", "--dsn", dsn).want(t, 0)
		run(t, "outbox", "restart", "--reason", "restored", "--yes", "--dsn", dsn).want(t, 0)
		run(t, "hook", "purge", "--older-than", "1d", "--dsn", dsn).want(t, 0) // nothing is there
		list := run(t, "audit", "list", "--dsn", dsn)
		list.want(t, 0, "token create", "for the build", "alarm schedule", "alarm cancel", "alarms tea", "alarms cake", "too hot", "cli", "outbox restart", "restored")
		if n := strings.Count(list.stdout, "\n"); n != 7 {
			t.Errorf("%d lines:\n%s", n, list.stdout)
		}
		one := run(t, "audit", "list", "--action", "alarm cancel", "--json", "--dsn", dsn).decode(t)["data"].([]any)
		if len(one) != 2 || one[0].(map[string]any)["target"] != "tea" || one[1].(map[string]any)["target"] != "cake" || one[0].(map[string]any)["principal"] == "" || one[0].(map[string]any)["reason"] != "too hot" || one[0].(map[string]any)["before"] == nil {
			t.Errorf("one action: %v", one)
		}
		run(t, "audit", "verify", "--dsn", dsn).want(t, 0, "6 entries in ", "ok")
		run(t, "audit", "trim", "--older-than", "30d", "--dsn", dsn).want(t, 0, "removed 0 entries")
	}
}

// A reason with bytes that are no text, or a very long one, is kept as far as it can be
// stored, and does not look like a changed entry.
func TestAnyReasonCanBeVerified(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		dsn := enginetest.New(t, name).DSN
		run(t, "migrate", "--dsn", dsn).want(t, 0)
		for reason, kept := range map[string]string{"a\xff\xfeb": "a\uFFFDb", "a\x00b": "ab", strings.Repeat("é", 600): strings.Repeat("é", 500)} {
			run(t, "alarm", "schedule", "tea", "--type", "remind", "--delay", "1h", "--reason", reason, "--dsn", dsn).want(t, 0)
			entry := run(t, "audit", "list", "--limit", "1", "--json", "--dsn", dsn).decode(t)["data"].([]any)[0].(map[string]any)
			if entry["reason"] != kept {
				t.Errorf("%s: reason %q, want %q", name, entry["reason"], kept)
			}
		}
		run(t, "audit", "trim", "--older-than", "1us", "--reason", "a\xff", "--dsn", dsn).want(t, 0)
		run(t, "audit", "verify", "--dsn", dsn).want(t, 0, "ok")
	}
}
