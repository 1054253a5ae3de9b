package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// An instance that ends while a command waits for it ends the command.
func TestWaitEndsWithTheInstance(t *testing.T) {
	t.Parallel()
	for name, dsn := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := dsn(t)
			serve(t, dsn)
			id := strings.TrimSpace(run(t, "schedule", "run", "nightly", "--dsn", dsn).stdout)
			serve(t, dsn)
			waited := make(chan outcome, 1)
			go func() { waited <- run(t, "fsm", "wait", id, "--dsn", dsn, "--json") }()
			run(t, "fsm", "signal", id, "key", "--payload", `"right"`, "--dsn", dsn).want(t, 0)
			serve(t, dsn)
			o := <-waited
			o.want(t, 0)
			if shown := o.decode(t); shown["status"] != "done" || shown["result"] != "night is in" {
				t.Errorf("the instance: %v", shown)
			}
		})
	}
}

// A paused schedule does not fire, and does after it was resumed. It can be run either
// way.
func TestSchedulesArePausedAndResumed(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	serve(t, dsn)
	paused := func() any {
		t.Helper()
		return run(t, "schedule", "list", "--json", "--dsn", dsn).decode(t)["data"].([]any)[0].(map[string]any)["paused"]
	}
	run(t, "schedule", "pause", "nightly", "--dsn", dsn).want(t, 0, "nightly is paused")
	if paused() != true {
		t.Error("it is not paused")
	}
	run(t, "schedule", "run", "nightly", "--dsn", dsn).want(t, 0)
	run(t, "schedule", "resume", "nightly", "--dsn", dsn).want(t, 0, "nightly is resumed")
	if paused() != false {
		t.Error("it is still paused")
	}
	run(t, "schedule", "pause", "daily", "nightly", "--dsn", dsn).want(t, exitNotFound, "daily", "nightly is paused")
	run(t, "schedule", "run", "daily", "--dsn", dsn).wantError(t, exitNotFound, "daily")
}

// status --watch shows the work as it changes, on the database and through a server, and
// ends with success when it is interrupted.
func TestStatusIsWatched(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/watch.db"
	serve(t, "sqlite:"+file)
	url, end := serveAPI(t, "sqlite:"+file)
	defer end()
	for _, flags := range [][]string{{"--dsn", "sqlite:" + file}, {"--server", url}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		reader, writer := io.Pipe()
		code := make(chan int, 1)
		go func() {
			args := append([]string{"status", "--watch", "--interval", "1ms", "--json"}, flags...)
			code <- Run(ctx, args, strings.NewReader(""), writer, io.Discard, nil)
			writer.Close()
		}()
		looks := bufio.NewScanner(reader)
		due := func() float64 {
			t.Helper()
			var all overview
			if !looks.Scan() {
				t.Fatal("the output has ended")
			}
			enginetest.NoError(t, json.Unmarshal(looks.Bytes(), &all))
			return all.Kinds[0]["due"].(float64)
		}
		before := due()
		run(t, "fsm", "start", "door", "--state", `"ann"`, "--dsn", "sqlite:"+file).want(t, 0)
		for due() != before+1 {
		}
		cancel(&Interrupted{Signal: syscall.SIGINT})
		go func() { // what comes in between must not block it
			for looks.Scan() {
			}
		}()
		if c := <-code; c != 0 {
			t.Errorf("exit code is %d", c)
		}
	}
	run(t, "status", "--watch", "--interval", "0s", "--dsn", "sqlite:"+file).wantError(t, exitUsage, "--interval")
}

// An error of the database has the cause as its text: there is no log to look into.
func TestErrorsOfTheDatabaseAreShown(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	withEngine(t, dsn, func(eng *perdure.Engine) {
		enginetest.NoError(t, eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_, err := tx.Exec("drop table perdure_outbox_consumers")
			return err
		}))
	})
	run(t, "outbox", "consumers", "--dsn", dsn).wantError(t, exitFailure, "no such table")
}
