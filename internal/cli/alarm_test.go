package cli

import (
	"context"
	"errors"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/retry"
)

// rung fires what is due in the database once; alarms of the type "mail" fail.
func rung(t *testing.T, dsn string) {
	t.Helper()
	eng, err := perdure.Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = eng.Close() }()
	alarms, err := alarm.New(eng, &alarm.Options{Retry: retry.None()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = alarm.Handle(alarms, "mail", func(context.Context, string) error { return errors.New("no such mailbox\n\x1b[31mred") }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alarms.Process(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAlarms(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(testing.TB) string{
		"sqlite":   sqliteDSN,
		"postgres": databases()["postgres"],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := dsn(t)
			rung(t, dsn) // creates the tables
			checkAlarmChanges(t, dsn)
			checkDeadAlarms(t, dsn)
			checkBadAlarms(t, dsn)
		})
	}
}

func checkAlarmChanges(t *testing.T, dsn string) {
	t.Helper()
	in := func(args ...string) []string { return append(append([]string{"alarm"}, args...), "--dsn", dsn) }
	run(t, in("schedule", "expiry", "--actor", "order/42", "--type", "mail", "--at", "2199-01-01T00:00:00Z", "--payload", `"ann"`)...).
		want(t, 0, "order/42/expiry is due at 2199-01-01T00:00:00.000Z")
	run(t, in("schedule", "nightly", "--type", "report", "--cron", "30 2 * * *", "--zone", "Europe/Berlin")...).want(t, 0, "nightly is due at")
	run(t, in("list")...).want(t, 0, "order/42/expiry", "mail", "scheduled", "02:30 every day, Europe/Berlin", "0/20")
	page := run(t, in("list", "--actor", "order/42", "--json")...).decode(t)
	if data := page["data"].([]any); len(data) != 1 || data[0].(map[string]any)["id"] != "order/42/expiry" {
		t.Errorf("alarms of the order: %v", page)
	}
	run(t, in("list", "--due")...).want(t, 0, "ALARM")
	before := run(t, in("show", "nightly", "--json")...).decode(t)["due_at"]
	run(t, in("skip", "nightly")...).want(t, 0, "scheduled for a later tick")
	if after := run(t, in("show", "nightly", "--json")...).decode(t)["due_at"]; after == before {
		t.Errorf("nightly is due at %v before and after", before)
	}
	run(t, in("move", "nightly", "--to", "2198-01-01T00:00:00Z")...).want(t, 0, "nightly is moved")
	run(t, in("show", "nightly")...).want(t, 0, "2198-01-01", "scheduled for", "missed ticks")
	// Slashes are part of ids.
	run(t, in("schedule", "x/y", "--actor", "order/4/2", "--type", "slash", "--delay", "24h")...).want(t, 0, "order/4/2/x/y is due at")
	run(t, in("schedule", "a/b/c", "--actor", "none", "--type", "slash", "--delay", "24h")...).want(t, 0, "a/b/c is due at")
	run(t, in("show", "x/y", "--actor", "order/4/2")...).want(t, 0, "actor     order/4/2")
	run(t, in("show", "a/b/c")...).wantError(t, exitNotFound, "a/b/c") // that of the actor a/b
	run(t, in("move", "a/b/c", "--actor", "none", "--to", "2198-01-01T00:00:00Z")...).want(t, 0, "a/b/c is moved")
	run(t, in("show", "a/b/c", "--actor", "none")...).want(t, 0, "2198-01-01")
	run(t, in("cancel", "--type", "slash")...).want(t, 0, "cancelled 2 alarms")
	run(t, in("show", "order/42/expiry")...).want(t, 0, "mail")
	run(t, in("cancel", "nightly", "nobody")...).want(t, 0, "cancelled 1 alarm")
}

func checkDeadAlarms(t *testing.T, dsn string) {
	t.Helper()
	in := func(args ...string) []string { return append(append([]string{"alarm"}, args...), "--dsn", dsn) }
	run(t, in("schedule", "bad", "--type", "mail", "--attempts", "1", "--payload", `"x"`, "--delay", "24h", "--priority", "high")...).want(t, 0, "bad is due at")
	run(t, in("fire", "bad")...).want(t, 0, "bad is due now")
	rung(t, dsn)
	run(t, in("show", "bad")...).want(t, 0, "failed", "1 of 1 (none)", "attempts\n#", "no such mailbox", "\ufffd[31mred")
	run(t, in("list", "--status", "failed,quarantined")...).want(t, 0, "bad", "no such mailbox …")
	run(t, in("fire", "bad")...).wantError(t, exitConflict, "is failed")
	run(t, in("retry", "bad")...).want(t, 0, "bad is due now")
	run(t, in("retry", "bad")...).wantError(t, exitConflict, "is ready")
	rung(t, dsn)
	if retried := run(t, in("retry", "--all", "--type", "mail", "--json")...).decode(t)["retried"]; retried != float64(1) {
		t.Errorf("retried %v, want 1", retried)
	}
	run(t, in("cancel", "--type", "mail")...).want(t, 0, "cancelled 2 alarms")
}

func checkBadAlarms(t *testing.T, dsn string) {
	t.Helper()
	in := func(args ...string) []string { return append(append([]string{"alarm"}, args...), "--dsn", dsn) }
	for _, args := range [][]string{
		{"schedule", "x", "--every", "-1s", "--type", "a"},
		{"schedule", "x", "--every", "0s", "--type", "a"},
		{"schedule", "x", "--cron", "0 0 30 2 *", "--type", "a"},
		{"schedule", "x"},
		{"schedule", "x", "--payload", "{"},
		{"schedule", "x", "--priority", "top"},
		{"schedule", "x", "--at", "soon"},
		{"schedule", "x", "--actor", "order"},
		{"cancel"},
		{"cancel", "x", "--type", "a"},
		{"retry"},
		{"retry", "x", "--all"},
		{"move", "x"},
		{"list", "--status", "sleepy"},
		{"list", "--cursor", "?"},
	} {
		run(t, in(args...)...).wantError(t, exitUsage)
	}
	run(t, in("show", "x")...).wantError(t, exitNotFound, "does not exist")
	run(t, in("skip", "x", "--actor", "order/1")...).wantError(t, exitNotFound, "order/1/x")
	run(t, in("cancel", "x")...).want(t, 0, "cancelled 0 alarms")
	run(t, in("list", "--json")...).want(t, 0, `"data": []`)
}
