package cli

import (
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
)

// trialChart is a subscription that expires.
const trialChart = `{
	"id": "subscription", "initial": "trial", "context": {"public": {"plan": "free"}, "private": {"ann": {"card": "1234"}}},
	"states": {
		"trial": {"after": {"1209600000": "expired"}, "on": {"PAY": {"target": "active", "actions": {"type": "receipt", "params": {"to": "ann"}}}}},
		"active": {"entry": {"type": "xstate.emit", "params": {"event": {"type": "PAID"}}}, "on": {"END": "ended"}},
		"expired": {"on": {"PAY": "active"}},
		"ended": {"type": "final"}
	}
}`

func TestActors(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(testing.TB) string{
		"sqlite":   sqliteDSN,
		"postgres": databases()["postgres"],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := dsn(t)
			eng, err := perdure.Open(t.Context(), dsn, nil) // creates the tables
			if err != nil {
				t.Fatal(err)
			}
			if err := eng.Close(); err != nil {
				t.Fatal(err)
			}
			in := func(args ...string) outcome {
				return run(t, append(append([]string{"actor"}, args...), "--dsn", dsn)...)
			}
			checkActors(t, in)
			checkTimers(t, in)
			checkBadActors(t, in)
		})
	}
}

func checkActors(t *testing.T, in func(...string) outcome) {
	t.Helper()
	file := chartFile(t, trialChart)
	in("spawn", "subscription/1", "--machine", file, "--as", "client/ann").want(t, 0, "subscription/1 is active at version", "in state trial")
	in("spawn", "subscription/1", "--machine", file).wantError(t, exitConflict)
	in("spawn", "subscription/1", "--machine", file, "--if-absent").want(t, 0, "subscription/1")
	in("show", "subscription/1", "--machine", file).want(t, 0, "client/ann", `"plan":"free"`, "xstate.after.1209600000.subscription.trial", "subscription.expired")
	in("show", "subscription/1").want(t, 0, "trial", "snapshot") // without its machine
	in("show", "subscription/1", "--machine", file, "--as", "client/ann").want(t, 0, `{"card":"1234"}`)
	view := in("show", "subscription/1", "--machine", file, "--as", "client/bob", "--json")
	if view.want(t, 0); strings.Contains(view.stdout, "1234") {
		t.Errorf("bob sees what is ann's:\n%s", view.stdout)
	}
	in("send", "subscription/1", "PAY", "--key", "k", "--machine", file).want(t, 0, "in state active", `emits {"type":"PAID"}`)
	in("send", "subscription/1", "PAY", "--key", "k", "--machine", file).want(t, 0, "duplicate")
	in("log", "subscription/1").want(t, 0, "start", "event", "service/perdure", "trial", "active")
	in("list", "--type", "subscription", "--state", "active").want(t, 0, "subscription/1")
	if page := in("list", "--state", "expired", "--json").decode(t); len(page["data"].([]any)) != 0 {
		t.Errorf("expired: %v", page)
	}
	in("send", "subscription/1", "END", "--machine", file).want(t, 0, "is done")
	in("send", "subscription/1", "PAY", "--machine", file).wantError(t, exitConflict, "done")
}

func checkTimers(t *testing.T, in func(...string) outcome) {
	t.Helper()
	file := chartFile(t, strings.Replace(trialChart, `, "actions": {"type": "receipt", "params": {"to": "ann"}}`, "", 1))
	in("register", "trial", file).want(t, 0, "trial is stored as version 1")
	in("register", "trial", file).want(t, 0, "trial is stored as version 1")
	in("types").want(t, 0, "trial")
	spawned := in("spawn", "trial", "--json").decode(t)
	id := spawned["id"].(string)
	ref := "trial/" + id
	page := in("timers", ref, "--json").decode(t)
	timer := page["data"].([]any)[0].(map[string]any)["key"].(string)
	in("timers", ref).want(t, 0, timer, "subscription.trial", "subscription.expired")
	in("timers", "move", ref, timer, "--to", "2199-01-01T00:00:00Z").want(t, 0, "moved", "in state trial")
	in("timers", ref).want(t, 0, "2199-01-01")
	in("timers", "fire", ref, timer).want(t, 0, "fired", "in state expired")
	in("timers", "fire", ref, timer).wantError(t, exitNotFound)
	in("spawn", "trial/2").want(t, 0, "in state trial")
	in("timers", "skip", "trial/2", timer).want(t, 0, "skipped", "in state trial")
	in("reset", "trial/2", "--step", "1").want(t, 0, "trial/2 is reset")
	in("reset", "trial/2", "--step", "99").wantError(t, exitUsage, "step must be at most")
	in("stop", "trial/2").want(t, 0, "trial/2 is stopped")
	in("stop", "trial/2").wantError(t, exitConflict, string(actor.Stopped))
}

func checkBadActors(t *testing.T, in func(...string) outcome) {
	t.Helper()
	in("spawn", "nothing/1").wantError(t, exitNotFound, "nothing")
	in("send", "trial/2", "xstate.stop").wantError(t, exitUsage, "xstate")
	in("send", "nobody", "PAY").wantError(t, exitUsage, "nobody")
	in("send", "trial/nobody", "PAY").wantError(t, exitNotFound, "nobody")
	in("send", "trial/2", "PAY", "--data", "7").wantError(t, exitUsage, "--data")
	in("spawn", "trial", "--input", "{").wantError(t, exitUsage, "--input")
	in("spawn", "trial", "--as", "system/x").wantError(t, exitUsage, "system")
	in("show", "trial/nobody").wantError(t, exitNotFound, "nobody")
	in("log", "trial/nobody").wantError(t, exitNotFound, "nobody")
	in("timers", "move", "trial/2", "x").wantError(t, exitUsage, "--to")
	in("list", "--status", "sleepy").wantError(t, exitUsage, "sleepy")
	in("register", "bad", chartFile(t, `{"id":"x","initial":"nowhere","states":{"a":{}}}`)).want(t, exitFailure, "machine.initial")
}
