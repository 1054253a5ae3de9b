package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/schema"
)

func TestOutboxListAndTail(t *testing.T) {
	t.Parallel()
	for name, dsn := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := dsn(t)
			filled(t, dsn)
			checkList(t, dsn)
			checkTail(t, dsn)
		})
	}
}

func checkList(t *testing.T, dsn string) {
	t.Helper()
	o := run(t, "outbox", "list", "--dsn", dsn)
	o.want(t, 0, stamp(1), "create app.users ann, create app.users bob", `"cy\x1b[31m"`, stamp(2), "update app.users ann", stamp(3), "delete app.users bob")
	if n := strings.Count(o.stdout, "\n"); n != 3 {
		t.Errorf("list has %d lines", n)
	}
	page := run(t, "outbox", "list", "--dsn", dsn, "--json", "--limit", "2").decode(t)
	if len(page["data"].([]any)) != 2 || page["next_cursor"] != stamp(2) {
		t.Errorf("first page: %v", page)
	}
	page = run(t, "outbox", "list", "--dsn", dsn, "--json", "--after", stamp(2)).decode(t)
	if len(page["data"].([]any)) != 1 || page["next_cursor"] != nil {
		t.Errorf("second page: %v", page)
	}
	page = run(t, "outbox", "list", "--dsn", dsn, "--json", "--after", stamp(3)).decode(t)
	if len(page["data"].([]any)) != 0 || page["next_cursor"] != nil {
		t.Errorf("last page: %v", page)
	}
	run(t, "outbox", "list", "--dsn", dsn, "--after", stamp(9)).wantError(t, exitConflict, "restored to an earlier time")
}

func checkTail(t *testing.T, dsn string) {
	t.Helper()
	o := run(t, "outbox", "tail", "--dsn", dsn, "--json", "--limit", "3")
	o.want(t, 0)
	lines := strings.Split(strings.TrimSpace(o.stdout), "\n")
	if len(lines) != 3 {
		t.Fatalf("tail has %d lines", len(lines))
	}
	for i, line := range lines {
		var e api.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		payload, err := outbox.Decode(e.Payload, nil)
		if err != nil || e.Stamp != stamp(uint64(i+1)) || len(e.Mutations) != len(payload.Mutations) || len(payload.Mutations) == 0 {
			t.Errorf("line %d: %+v, %v", i, e, err)
		}
	}
	run(t, "outbox", "tail", "--dsn", dsn, "--limit", "1", "--after", stamp(2)).want(t, 0, stamp(3)+" ")
}

// A tail shows what is committed while it runs, and ends with success when it
// is interrupted.
func TestOutboxTailFollowsUntilInterrupted(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	filled(t, dsn)
	ctx, cancel := context.WithCancelCause(t.Context())
	reader, writer := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- Run(ctx, []string{"outbox", "tail", "--dsn", dsn, "--after", stamp(2)}, strings.NewReader(""), writer, io.Discard, nil)
		writer.Close()
	}()
	lines := bufio.NewScanner(reader)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
			t.Fatalf("got %q, want %s", lines.Text(), want)
		}
	}
	next(stamp(3))
	commitOne(t, dsn)
	next(stamp(4))
	cancel(&Interrupted{Signal: syscall.SIGTERM})
	go func() { // what came in between must not block it
		for lines.Scan() {
		}
	}()
	if c := <-code; c != 0 {
		t.Errorf("exit code is %d", c)
	}
}

func TestOutboxTailNewSkipsTheOld(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	filled(t, dsn)
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		Run(ctx, []string{"outbox", "tail", "--dsn", dsn, "--new"}, strings.NewReader(""), writer, io.Discard, nil)
		writer.Close()
	}()
	// The tail may start late and then begin after some of these, but never
	// with one of the three that were there before.
	lines := bufio.NewScanner(reader)
	seen := make(chan string, 1)
	go func() {
		lines.Scan()
		seen <- lines.Text()
		for lines.Scan() {
		}
	}()
	for {
		commitOne(t, dsn)
		select {
		case line := <-seen:
			if line[:24] <= stamp(3) {
				t.Errorf("it begins with %s", line)
			}
			cancel()
			<-done
			return
		default:
		}
	}
}

func TestOutboxVerify(t *testing.T) {
	t.Parallel()
	for name, dsn := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := dsn(t)
			filled(t, dsn)
			run(t, "outbox", "verify", "--dsn", dsn).want(t, 0, "3 entries, 5 mutations", "2 rows compared", "ok")
			if v := run(t, "outbox", "verify", "--dsn", dsn, "--json", "--watch", "20ms").decode(t); v["ok"] != true || v["snapshots"] == 0.0 {
				t.Errorf("got %v", v)
			}
			spoil(t, dsn)
			o := run(t, "outbox", "verify", "--dsn", dsn)
			o.want(t, exitFailure, "problem:", "is in the outbox but not in the table")
			if o.stderr != "" {
				t.Errorf("the report is on stdout, but stderr has %s", o.stderr)
			}
			if v := run(t, "outbox", "verify", "--dsn", dsn, "--json").decode(t); v["ok"] != false || len(v["problems"].([]any)) != 1 {
				t.Errorf("got %v", v)
			}
		})
	}
}

// spoil deletes a row behind the outbox's back.
func spoil(t *testing.T, dsn string) {
	t.Helper()
	name := "app_users"
	if strings.HasPrefix(dsn, "postgres") {
		name = "app.users"
	}
	withEngine(t, dsn, func(eng *perdure.Engine) {
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_, err := tx.Exec("delete from " + name + " where id = 'ann'")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestOutboxStatusPruneAndRestart(t *testing.T) {
	t.Parallel()
	for name, dsn := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := dsn(t)
			filled(t, dsn)
			run(t, "outbox", "purge", "--dsn", dsn, "--older-than", "1d").want(t, 0, "removed 0 entries")
			if v := run(t, "outbox", "purge", "--dsn", dsn, "--older-than", "0s", "--json").decode(t); v["removed"] != 3.0 {
				t.Errorf("purged: %v", v)
			}
			run(t, "outbox", "list", "--dsn", dsn).want(t, 0) // begins where it can
			run(t, "outbox", "list", "--dsn", dsn, "--after", stamp(1)).wantError(t, exitConflict, "were removed up to "+stamp(3))
			run(t, "outbox", "verify", "--dsn", dsn).want(t, 0, "tables not compared")
			run(t, "outbox", "restart", "--dsn", dsn, "--reason", "restored", "--yes").want(t, 0, "incarnation 1 starts after "+stamp(3))
			run(t, "outbox", "status", "--dsn", dsn).want(t, 0, "incarnation 1 started after", "restored")
			v := run(t, "outbox", "status", "--dsn", dsn, "--json").decode(t)
			if v["purged_through"] != stamp(3) || len(v["incarnations"].([]any)) != 1 {
				t.Errorf("status: %v", v)
			}
		})
	}
}

func TestOutboxConsumers(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	filled(t, dsn)
	withEngine(t, dsn, func(eng *perdure.Engine) {
		if _, err := eng.Outbox().Register(t.Context(), "mailer", outbox.NewStamp(0, 2, 0)); err != nil {
			t.Fatal(err)
		}
	})
	run(t, "outbox", "consumers", "--dsn", dsn).want(t, 0, "CONSUMER", "mailer", stamp(2), "1")
	run(t, "outbox", "consumers", "list", "--dsn", dsn).want(t, 0, "mailer")
	run(t, "outbox", "status", "--dsn", dsn).want(t, 0, "mailer")
	run(t, "outbox", "purge", "--dsn", dsn, "--older-than", "0s").want(t, 0, "removed 2 entries")
	run(t, "outbox", "consumers", "reset", "mailer", "--to", stamp(3), "--dsn", dsn).want(t, 0, "moved mailer from "+stamp(2)+" to "+stamp(3))
	run(t, "outbox", "consumers", "reset", "mailer", "--to", stamp(1), "--dsn", dsn).wantError(t, exitConflict, "were removed")
	v := run(t, "outbox", "consumers", "--dsn", dsn, "--json").decode(t)
	if c := v["data"].([]any)[0].(map[string]any); c["name"] != "mailer" || c["lag"] != "0" {
		t.Errorf("consumer: %v", c)
	}
	o := run(t, "__complete", "outbox", "consumers", "delete", "--dsn", dsn, "")
	o.want(t, 0, "mailer\n")
	run(t, "outbox", "consumers", "delete", "mailer", "--dsn", dsn).want(t, 0, "deleted mailer at position "+stamp(3))
	if v := run(t, "outbox", "consumers", "--dsn", dsn, "--json").decode(t); len(v["data"].([]any)) != 0 {
		t.Errorf("consumers: %v", v)
	}
}

// commitOne commits a unit with an entry in the outbox.
func commitOne(t *testing.T, dsn string) {
	t.Helper()
	notes := schema.NewTable("notes", schema.String("text"))
	eng, err := perdure.Open(t.Context(), dsn, &perdure.Options{Schemas: []*schema.Schema{schema.New("other", notes)}, Outbox: true})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	err = eng.Update(t.Context(), func(tx *perdure.Tx) error {
		_, err := tx.Create(notes, schema.Values{"text": "x"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// indexed registers the consumer index, whose handler has refused the first entry.
func indexed(t *testing.T, dsn string) {
	t.Helper()
	withEngine(t, dsn, func(eng *perdure.Engine) {
		c, err := eng.Outbox().Register(t.Context(), "index", outbox.Stamp{})
		enginetest.NoError(t, err)
		p, err := c.Handle(func(context.Context, outbox.Entry) error { return retry.Stop(errors.New("no such index")) }, nil)
		enginetest.NoError(t, err)
		_, err = p.Process(t.Context())
		enginetest.NoError(t, err)
	})
}
