package cli

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/retry"
)

// door is a machine that waits for a key.
var door = fsm.Define("door", 2, &fsm.DefinitionOptions[string]{Retry: retry.None(), OnCancel: "lock"},
	fsm.Step("knock", func(_ context.Context, r *fsm.Run[string]) (fsm.Outcome, error) {
		return r.Await("key").Then("open"), nil
	}, nil),
	fsm.Step("open", func(_ context.Context, r *fsm.Run[string]) (fsm.Outcome, error) {
		if string(r.Awaited[0].Payload) != `"right"` {
			return fsm.Outcome{}, errors.New("wrong key")
		}
		return r.Done(r.State + " is in"), nil
	}, nil),
	fsm.Step("lock", func(_ context.Context, r *fsm.Run[string]) (fsm.Outcome, error) {
		return r.Await("locked").Then("open"), nil
	}, nil),
)

// serve runs the machines of the database once, as a service does all the time.
func serve(t *testing.T, dsn string) {
	t.Helper()
	eng, err := perdure.Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = eng.Close() }()
	m, err := fsm.New(eng, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Register(door); err != nil {
		t.Fatal(err)
	}
	if err := fsm.SetSchedule(t.Context(), eng, "nightly", "30 2 * * *", door, "night", &fsm.ScheduleOptions{Zone: "Europe/Berlin"}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Process(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestFSM(t *testing.T) {
	t.Parallel()
	for name, dsn := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkFSM(t, dsn(t))
		})
	}
}

func checkFSM(t *testing.T, dsn string) {
	t.Helper()
	serve(t, dsn)
	run(t, "fsm", "definitions", "--dsn", dsn).want(t, 0, "door", "knock, open, lock", "CANCEL STEP\n", "  lock\n")
	run(t, "fsm", "schedules", "--dsn", dsn).want(t, 0, "nightly", "door@2", "02:30")
	started := run(t, "fsm", "start", "door", "--state", `"ann"`, "--unique", "ann", "--dsn", dsn)
	started.want(t, 0)
	id := strings.TrimSpace(started.stdout)
	run(t, "fsm", "start", "door", "--unique", "ann", "--state", `"ann"`, "--dsn", dsn).want(t, 0, id+" already has the unique key")
	run(t, "fsm", "start", "window", "--dsn", dsn).wantError(t, exitNotFound, "window")
	run(t, "fsm", "start", "door", "--state", "{", "--dsn", dsn).wantError(t, exitUsage, "state")
	run(t, "fsm", "list", "--live", "--dsn", dsn).want(t, 0, id, "door@2", "ready", "knock")
	serve(t, dsn)
	run(t, "fsm", "signal", id, "key", "--payload", `"wrong"`, "--key", "1", "--dsn", dsn).want(t, 0, "delivered")
	run(t, "fsm", "signal", id, "key", "--payload", `"wrong"`, "--key", "1", "--dsn", dsn).want(t, 0, "duplicate")
	serve(t, dsn)
	run(t, "fsm", "show", id, "--dsn", dsn).want(t, 0, "failed", "wrong key", "door version 2", "attempts\n#  STEP")
	run(t, "fsm", "signal", id, "key", "--dsn", dsn).wantError(t, exitConflict, "is failed")
	run(t, "fsm", "wait", id, "--dsn", dsn).want(t, exitFailure, id+" is failed", "wrong key")
	history := run(t, "fsm", "history", id, "--dsn", dsn)
	history.want(t, 0, "created", "open", "failed", "wrong key")
	if !strings.HasPrefix(dsn, "mysql") { // whose history has no signals yet
		history.want(t, 0, "signal", "key")
	}
	run(t, "fsm", "retry", id, "--dsn", dsn).want(t, 0, "due now")
	run(t, "fsm", "wait", id, "--timeout", "1ms", "--dsn", dsn).wantError(t, exitTimeout, id, "ready")
	run(t, "fsm", "wait", id, "--timeout", "-1s", "--dsn", dsn).wantError(t, exitUsage, "--timeout")
	run(t, "fsm", "retry", id, "--dsn", dsn).wantError(t, exitConflict, "is not finished")
	run(t, "fsm", "cancel", id, "--reason", "too late", "--dsn", dsn).want(t, 0, "cancelled")
	serve(t, dsn)
	run(t, "fsm", "show", id, "--dsn", dsn).want(t, 0, "waiting for signal", "cancel step    lock", "cancel reason  too late")
	if shown := run(t, "fsm", "show", id, "--json", "--dsn", dsn).decode(t); shown["cancel_reason"] != "too late" || shown["on_cancel"] != "lock" {
		t.Errorf("shown: %v", shown)
	}
	run(t, "fsm", "terminate", id, "--reason", "enough", "--dsn", dsn).want(t, 0, "terminated")
	run(t, "fsm", "terminate", id, "--dsn", dsn).wantError(t, exitConflict, "is cancelled")
	page := run(t, "fsm", "list", "--finished", "cancelled", "--json", "--dsn", dsn).decode(t)
	if data := page["data"].([]any); len(data) != 1 || data[0].(map[string]any)["error"] != "enough" {
		t.Errorf("cancelled: %v", page)
	}
	run(t, "fsm", "show", "nobody", "--dsn", dsn).wantError(t, exitNotFound, "nobody")
}
