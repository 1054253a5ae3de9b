package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// busyServer returns the flags that lead to a server with the samples on it, and
// to its database, when there is something of everything.
func busyServer(t *testing.T) (server, database []string) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "dev.db")
	r := launch(t, "dev", "--data", data, "--every", "20ms")
	t.Cleanup(func() { r.end() })
	server, database = []string{"--server", r.url}, []string{"--dsn", "sqlite:" + data}
	enginetest.Eventually(t, "work of all kinds", func() bool {
		for _, list := range []string{"hook", "fsm", "task", "actor", "alarm"} {
			if v := run(t, append([]string{list, "list", "--json"}, server...)...).decode(t); len(v["data"].([]any)) < 3 {
				return false
			}
		}
		return true
	})
	return server, database
}

func with(flags []string, args ...string) []string { return append(args, flags...) }

func TestCommandsWorkThroughAServer(t *testing.T) {
	t.Parallel()
	server, _ := busyServer(t)
	run(t, with(server, "hook", "list", "--namespace", "shop", "--limit", "2")...).want(t, 0, "HOOK", "shop/", "next page: --cursor")
	run(t, with(server, "fsm", "list", "--definition", "order")...).want(t, 0, "STATUS", "order")
	run(t, with(server, "hook", "delete", "no-such-hook")...).wantError(t, exitNotFound)
	run(t, with(server, "task", "list")...).want(t, 0, "TYPE")
	run(t, with(server, "alarm", "list")...).want(t, 0, "remind")
	run(t, with(server, "actor", "list", "--type", "bike")...).want(t, 0, "bike")
	run(t, with(server, "actor", "send", "bike/1", "RENT")...).want(t, 0, "bike/1 is active at version")
	run(t, with(server, "actor", "show", "bike/1")...).want(t, 0, "bike")
	id := strings.TrimSpace(run(t, with(server, "fsm", "start", "order", "--state", `{"number":"X-1"}`, "--delay", "1h")...).stdout)
	run(t, with(server, "fsm", "show", id)...).want(t, 0, id, "X-1", "scheduled")
	run(t, with(server, "fsm", "signal", id, "paid", "--payload", `{"by":"cash"}`)...).want(t, 0, "delivered")
	run(t, with(server, "fsm", "signal", id, "paid", "--payload", `nonsense`)...).wantError(t, exitUsage, "must be JSON")
	run(t, with(server, "fsm", "cancel", id)...).want(t, 0, id+" is cancelled")
	run(t, with(server, "fsm", "retry", id)...).want(t, 0, id+" is due now")
	run(t, with(server, "fsm", "terminate", id, "--reason", "over")...).want(t, 0, id+" is terminated")
	run(t, with(server, "fsm", "show", id)...).want(t, 0, "cancelled", "over")
	run(t, with(server, "fsm", "show", "01900000-0000-7000-8000-000000000000")...).wantError(t, exitNotFound)
	run(t, with(server, "fsm", "start", "nobody")...).wantError(t, exitNotFound)
	run(t, with(server, "outbox", "verify")...).wantError(t, exitUsage, "does not support --server")
	dsn := sqliteDSN(t)
	runWith(t, []string{"PERDURE_SERVER=" + server[1]}, "migrate", "--dsn", dsn).want(t, 0, "up to date")
	runWith(t, []string{"PERDURE_SERVER=" + server[1]}, "hook", "list").want(t, 0, "shop")
	if o := runWith(t, []string{"PERDURE_SERVER=" + server[1]}, "hook", "list", "--dsn", dsn); strings.Contains(o.stdout, "shop") {
		t.Errorf("it asked the server: %s", o.stdout)
	}
}

func TestStatusNodesAndDeadWorkOnBoth(t *testing.T) {
	t.Parallel()
	server, database := busyServer(t)
	anvil := "no box is strong enough for an anvil"
	run(t, with(server, "fsm", "start", "parcel", "--state", `{"item":"anvil"}`)...).want(t, 0)
	for _, flags := range [][]string{server, database} {
		run(t, with(flags, "status")...).want(t, 0, "KIND", "instances", "hooks", "tasks", "alarms", "actors")
		run(t, with(flags, "nodes")...).want(t, 0, "HOST", "up")
		enginetest.Eventually(t, "something has failed for good", func() bool {
			return strings.Contains(run(t, with(flags, "dead")...).stdout, anvil)
		})
		run(t, with(flags, "dead", "--each", "--kind", "instances")...).want(t, 0, "ID", "failed")
		run(t, with(flags, "dead", "retry", "--kind", "instances", "--error", anvil, "--dry-run")...).want(t, 0, "found")
		run(t, with(flags, "dead", "retry", "--kind", "instances", "--error", anvil)...).want(t, 0, "retried")
		run(t, with(flags, "dead", "retry")...).wantError(t, exitUsage, "--kind is required")
		run(t, with(flags, "dead", "--kind", "cooks")...).wantError(t, exitUsage)
		run(t, with(flags, "nodes", "drain", "nobody")...).want(t, exitNotFound)
	}
}

func TestShellsCompleteValues(t *testing.T) {
	t.Parallel()
	_, database := busyServer(t)
	env := []string{"PERDURE_DATABASE_URL=" + database[1]}
	for _, c := range []struct{ args, want string }{
		{"fsm list --definition ", "order"},
		{"fsm list --finished ", "quarantined"},
		{"hook list --namespace ", "shop"},
		{"hook list --status ", "scheduled"},
		{"hook list --status ru", "running"},
		{"dead --kind ", "alarms"},
		{"serve --roles ", "worker"},
		{"fsm start ", "parcel"},
		{"fsm show ", "-"},
	} {
		runWith(t, env, append([]string{"__complete"}, strings.Split(c.args, " ")...)...).want(t, 0, c.want)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		run(t, "completion", shell).want(t, 0, "perdure")
	}
	// What cannot be asked completes nothing, and says nothing.
	if o := runWith(t, []string{"PERDURE_DATABASE_URL=sqlite:/nowhere/x.db"}, "__complete", "fsm", "show", ""); o.code != 0 || strings.Contains(o.stdout, "-") {
		t.Errorf("got %+v", o)
	}
}
