package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/task"
)

// functions are those of the tests' own business process: on SQLite these Go
// functions, on PostgreSQL the database's own with the same answers.
type functions map[string]string // name → the envelope it returns, as JSON; "!" raises an error

// seen has the payloads that the functions were given.
const seenTable = "create table biz_seen (name text, payload text)"

func (fs functions) golang() map[string]task.Function {
	all := map[string]task.Function{}
	for name, answer := range fs {
		all[name] = func(_ context.Context, tx *perdure.Tx, payload json.RawMessage) (task.Envelope, error) {
			if _, err := tx.Exec("insert into biz_seen (name, payload) values (?, ?)", name, string(payload)); err != nil {
				return task.Envelope{}, err
			}
			var e task.Envelope
			if answer == "!" {
				return e, errors.New("raised by the function")
			}
			return e, json.Unmarshal([]byte(answer), &e)
		}
	}
	return all
}

// create makes the functions in PostgreSQL.
func (fs functions) create(t testing.TB, db enginetest.Database) {
	t.Helper()
	if db.Name == enginetest.SQLite {
		db.Exec(t, seenTable)
		return
	}
	db.Exec(t, "create schema biz authorization perdure_owner")
	db.Exec(t, "set role perdure_owner; "+strings.ReplaceAll(seenTable, "biz_seen", "biz.seen"))
	for name, answer := range fs {
		body := "return '" + answer + "';"
		if answer == "!" {
			body = "raise exception 'raised by the function';"
		}
		db.Exec(t, fmt.Sprintf(`set role perdure_owner;
			create or replace function %s(payload jsonb) returns jsonb language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
			begin insert into biz.seen (name, payload) values ('%s', payload::text); %s end $$;
			select internal.allow_function('%s')`, name, name, body, name))
	}
}

// withFunctions is a fixture whose worker can run functions of the test.
func withFunctions(t *testing.T, db enginetest.Database, fs functions, options task.Options) *fixture {
	t.Helper()
	options.Functions = fs.golang()
	f := newFixture(t, db, &options)
	fs.create(t, db)
	return f
}

// seen returns the payloads that a function was given, oldest first.
func (f *fixture) seen(t testing.TB, name string) []string {
	t.Helper()
	text := f.dump(t, fmt.Sprintf("select payload from %s where name = '%s'", f.table("biz", "seen"), name))
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func (Conformance) Case69WhatAFunctionSaysOfItself(t *testing.T, db enginetest.Database) {
	f := withFunctions(t, db, functions{
		"biz.fine": `{"success": true}`, "biz.invalid": `{"success": false, "validation_failure_message": "no such order"}`,
		"biz.broken": `{"success": false, "error": "disk is full"}`, "biz.raises": "!", "biz.mute": `{}`,
	}, task.Options{})
	call := func(name string) int64 {
		return f.enqueue(t, "db_function", map[string]any{"db_function": name, "extra": []int{1}}, nil)
	}
	fine, invalid := call("biz.fine"), call("biz.invalid")
	f.process(t, 2)
	f.is(t, fine, task.Done)
	f.is(t, invalid, task.Done)
	f.hasErrors(t, "biz.invalid: no such order")
	equal(t, "runs of what is invalid, kept", len(f.seen(t, "biz.invalid")), 1)

	var failing []int64
	for _, name := range []string{"biz.broken", "biz.raises", "biz.mute"} {
		failing = append(failing, call(name))
	}
	f.process(t, 3)
	f.hasErrors(t, "no such order", "biz.broken: disk is full", "raised by the function", "must return success or a reason")
	equal(t, "what a failed run leaves behind", len(f.seen(t, "biz.broken"))+len(f.seen(t, "biz.mute")), 0)
	for _, id := range failing {
		r := f.is(t, id, task.Retrying)
		equal(t, "attempts", r.Attempts, 1)
		equal(t, "again", r.Scheduled, noon.Add(time.Second))
	}
	call("biz.fine")
	f.process(t, 1) // the worker goes on
	for failed := 1; ; failed++ {
		wait, _ := task.DefaultRetry.Next(failed, 0)
		f.clock.Advance(wait)
		n, err := f.worker.Process(enginetest.Context(t))
		enginetest.NoError(t, err)
		if n == 0 {
			break
		}
	}
	for _, id := range failing {
		equal(t, "attempts in the end", f.is(t, id, task.Failed).Attempts, task.DefaultRetry.MaxAttempts)
	}
}

// Case 70: what was sent is not sent again because its handler fails.
func (Conformance) Case70AHandlerThatFailsIsCalledAgainWithoutSending(t *testing.T, db enginetest.Database) {
	f := withFunctions(t, db, functions{"biz.sent": "!", "biz.failed": "!"}, task.Options{})
	ok := f.enqueue(t, "email", map[string]any{"success_handler": "biz.sent", "n": 1}, nil)
	f.process(t, 1)
	f.provider.answers = []error{errors.New("provider is down")}
	bad := f.enqueue(t, "email", map[string]any{"error_handler": "biz.failed", "n": 2}, nil)
	f.process(t, 1)
	f.hasErrors(t, "raised by the function", "raised by the function")
	sameJSON(t, "outcome", f.is(t, ok, task.Retrying).Outcome, `{"worker_payload": {"id": "message-1"}}`)
	sameJSON(t, "outcome", f.is(t, bad, task.Retrying).Outcome, `{"error": "provider is down"}`)

	mended := functions{"biz.sent": `{"success": true}`, "biz.failed": `{"success": true}`}
	if db.Name == enginetest.Postgres {
		db.Exec(t, "drop schema biz cascade")
		mended.create(t, db)
	}
	f.worker = f.newWorker(t, &task.Options{Functions: mended.golang()})
	f.after(t, time.Second, 2)
	f.is(t, ok, task.Done)
	f.is(t, bad, task.Done)
	equal(t, "calls of the provider", f.provider.count(), 2)
	f.hasErrors(t, "raised", "raised", "provider is down")
	sameJSON(t, "what the handler saw", []byte(f.seen(t, "biz.sent")[0]), `{"original_payload": {"success_handler": "biz.sent", "n": 1}, "worker_payload": {"id": "message-1"}}`)
	sameJSON(t, "what the handler saw", []byte(f.seen(t, "biz.failed")[0]), `{"original_payload": {"error_handler": "biz.failed", "n": 2}, "error": "provider is down"}`)
}

// Case 71: bad input is a row in queues.error, and the worker goes on.
func (Conformance) Case71BadInputIsRecordedAndTheWorkerGoesOn(t *testing.T, db enginetest.Database) {
	f := withFunctions(t, db, functions{"biz.fine": `{"success": true}`}, task.Options{})
	insert := func(taskType, payload string) int64 {
		id := f.enqueue(t, taskType, map[string]any{}, &task.EnqueueOptions{Delay: time.Hour})
		cast := ""
		if db.Name == enginetest.Postgres {
			cast = "::jsonb"
		}
		db.Exec(t, "update "+f.table("queues", "task")+" set payload = ?"+cast+", scheduled_at = enqueued_at where task_id = ?", payload, id)
		return id
	}
	for _, bad := range []struct{ taskType, payload, message string }{
		{"db_function", `[]`, "must be an object"},
		{"db_function", `"text"`, "must be an object"},
		{"db_function", `null`, "must be an object"},
		{"db_function", `{}`, "must have db_function"},
		{"db_function", `{"db_function": 7}`, "malformed"},
		{"db_function", `{"db_function": "biz.missing"}`, "biz.missing"},
		{"db_function", `{"db_function": "fine"}`, "malformed function name"},
		{"db_function", `{"db_function": "biz.fine(); drop table x"}`, "malformed function name"},
		{"db_function", `{"db_function": "BIZ.FINE"}`, "malformed function name"},
		{"email", `{"before_handler": ["x"]}`, "malformed"},
		{"email", `{"before_handler": "x; y"}`, "malformed function name"},
		{"db_function", `{"db_function": "comms.send_email_supervisor", "send_email_task_id": "many"}`, "missing_send_email_task_id"},
		{"db_function", `{"db_function": "comms.send_email_supervisor", "send_email_task_id": -1}`, "missing_send_email_task_id"},
		{"db_function", `{"db_function": "comms.send_sms_supervisor", "send_sms_task_id": 4711}`, "send_sms_task_not_found"},
		{"db_function", `{"db_function": "comms.send_sms_supervisor"}`, "missing_send_sms_task_id"},
		{"email", `{"before_handler": "comms.get_email_payload", "send_email_task_id": {}}`, "missing_send_email_task_id"},
		{"email", `{"before_handler": "comms.get_email_payload", "send_email_task_id": 9}`, "send_email_task_not_found"},
	} {
		before := len(f.errors(t))
		id := insert(bad.taskType, bad.payload)
		f.process(t, 1)
		all := f.errors(t)
		if len(all) != before+1 || !strings.Contains(all[before], bad.message) {
			t.Errorf("%s: errors are %q, want one more with %q", bad.payload, all[before:], bad.message)
		}
		if r := f.get(t, id); r.Status != task.Failed && r.Status != task.Done {
			t.Errorf("%s: the task is %s", bad.payload, r.Status)
		}
		fine := f.enqueue(t, "db_function", map[string]any{"db_function": "biz.fine"}, nil)
		f.process(t, 1)
		f.is(t, fine, task.Done)
	}
	equal(t, "calls of the provider", f.provider.count(), 0)
}

// A type that no worker knows is recorded and waits: a later deployment may
// know it.
func (Conformance) Case71AnUnknownTypeIsRecordedAndWaits(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	first := f.enqueue(t, "teleport", map[string]any{}, nil)
	f.enqueue(t, "teleport", map[string]any{}, nil)
	f.enqueue(t, "brew", map[string]any{}, nil)
	f.process(t, 0)
	f.hasErrors(t)
	f.after(t, time.Minute, 0)
	f.hasErrors(t, "no worker knows task type teleport", "no worker knows task type brew")
	for range 3 {
		f.after(t, time.Hour, 0)
	}
	f.hasErrors(t, "teleport", "brew") // told once
	f.is(t, first, task.Ready)
	f.worker = f.newWorker(t, &task.Options{Senders: map[string]task.Sender{"teleport": f.provider.send}})
	f.process(t, 2)
	f.is(t, first, task.Done)
}

func (Conformance) Case73HandlersGetTheWholePayload(t *testing.T, db enginetest.Database) {
	f := withFunctions(t, db, functions{
		"biz.prepare": `{"success": true, "payload": {"to": "ada", "big": 12345678901234567890}}`,
		"biz.sent":    `{"success": true}`, "biz.failed": `{"success": true}`, "biz.run": `{"success": true}`,
	}, task.Options{})
	payload := func(n int) string {
		return fmt.Sprintf(`{"task_type": "email", "send_email_task_id": 123, "before_handler": "biz.prepare", "success_handler": "biz.sent", "error_handler": "biz.failed", "extra": {"deep": [1, null, "é"], "n": %d}}`, n)
	}
	f.enqueue(t, "email", json.RawMessage(payload(1)), nil)
	f.process(t, 1)
	f.provider.answers = []error{errors.New("no")}
	f.enqueue(t, "email", json.RawMessage(payload(2)), nil)
	f.process(t, 1)
	f.enqueue(t, "db_function", json.RawMessage(`{"db_function": "biz.run", "id": 7}`), nil)
	f.process(t, 1)
	sameJSON(t, "before", []byte(f.seen(t, "biz.prepare")[0]), payload(1))
	sameJSON(t, "success", []byte(f.seen(t, "biz.sent")[0]), `{"original_payload": `+payload(1)+`, "worker_payload": {"id": "message-1"}}`)
	sameJSON(t, "error", []byte(f.seen(t, "biz.failed")[0]), `{"original_payload": `+payload(2)+`, "error": "no"}`)
	sameJSON(t, "function", []byte(f.seen(t, "biz.run")[0]), `{"db_function": "biz.run", "id": 7}`)
	if !strings.Contains(string(f.provider.sent[0]), "12345678901234567890") {
		t.Fatalf("the provider got %s", f.provider.sent[0])
	}
}

// Case 74: a stop lets a send end, and its handler; nothing new is taken.
func (Conformance) Case74AStopFinishesASendAndItsHandler(t *testing.T, db enginetest.Database) {
	f := withFunctions(t, db, functions{"biz.sent": `{"success": true}`}, task.Options{})
	f.provider.hold, f.provider.entered = make(chan struct{}), make(chan struct{}, 1)
	id := f.enqueue(t, "email", map[string]any{"success_handler": "biz.sent"}, nil)
	_, err := f.worker.Start(enginetest.Context(t))
	enginetest.NoError(t, err)
	<-f.provider.entered
	stopped := make(chan error, 1)
	go func() { stopped <- f.worker.Drain(enginetest.Context(t)) }()
	other := f.enqueue(t, "email", map[string]any{}, nil)
	enginetest.Eventually(t, "the worker takes nothing new", func() bool {
		at, err := f.worker.NextWakeAt(enginetest.Context(t))
		return err == nil && at.IsZero()
	})
	close(f.provider.hold)
	enginetest.NoError(t, <-stopped)
	f.is(t, id, task.Done)
	f.is(t, other, task.Ready)
	equal(t, "calls of the handler", len(f.seen(t, "biz.sent")), 1)
}

// A send that does not end within the grace period is given back at no cost.
func (Conformance) Case74WhatDoesNotEndIsGivenBack(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.provider.hold, f.provider.entered = make(chan struct{}), make(chan struct{}, 1)
	id := f.enqueue(t, "email", map[string]any{}, nil)
	_, err := f.worker.Start(enginetest.Context(t))
	enginetest.NoError(t, err)
	<-f.provider.entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	enginetest.NoError(t, f.worker.Drain(ctx))
	r := f.is(t, id, task.Ready)
	equal(t, "attempts and crashes", r.Attempts+r.Crashes, 0)
	f.hasErrors(t)
}

func (Conformance) AProviderThatAsksToWaitIsAskedAgainThen(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	wait := retry.After(90*time.Second, errors.New("too many requests"))
	f.provider.answers = []error{wait, fmt.Errorf("wrapped: %w", wait)}
	id := f.email(t)
	f.process(t, 2)
	f.hasErrors(t, "too many requests")
	f.hasFacts(t, "email", id, 1, 0, 0) // the supervisor does not see it
	for _, at := range []time.Duration{5, 15, 35, 75} {
		f.clock.Set(noon.Add(at * time.Second))
		f.process(t, 1) // the supervisor looks
	}
	f.clock.Set(noon.Add(90*time.Second - time.Microsecond))
	f.process(t, 0)
	f.after(t, time.Microsecond, 1)
	f.clock.Set(noon.Add(180 * time.Second))
	f.process(t, 2)
	f.hasFacts(t, "email", id, 1, 0, 1)
	equal(t, "calls of the provider", f.provider.count(), 3)
}

func (Conformance) ASenderThatPanicsOrHangsHasFailed(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.worker = f.newWorker(t, &task.Options{Timeout: time.Millisecond, Senders: map[string]task.Sender{
		"email": func(context.Context, json.RawMessage) (any, error) { panic("boom") },
		"sms":   func(ctx context.Context, _ json.RawMessage) (any, error) { <-ctx.Done(); return nil, ctx.Err() },
		"odd":   func(context.Context, json.RawMessage) (any, error) { return make(chan int), nil },
	}})
	email, sms := f.email(t), f.sms(t)
	f.process(t, 4)
	f.hasFacts(t, "email", email, 1, 1, 0)
	f.hasFacts(t, "sms", sms, 1, 1, 0)
	f.hasErrors(t, "panic: boom", "deadline exceeded")
	odd := f.enqueue(t, "odd", map[string]any{}, nil)
	f.process(t, 1)
	f.is(t, odd, task.Done) // it was done, whatever it answered
}

func (Conformance) TheDefaultSinkWritesFiles(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	dir := filepath.Join(t.TempDir(), "sent")
	f.worker = f.newWorker(t, &task.Options{SinkDir: dir, Senders: map[string]task.Sender{}})
	f.email(t)
	f.sms(t)
	f.process(t, 4)
	f.hasErrors(t)
	files, err := os.ReadDir(dir)
	enginetest.NoError(t, err)
	equal(t, "files", len(files), 2)
	content, err := os.ReadFile(filepath.Join(dir, files[0].Name()))
	enginetest.NoError(t, err)
	if !strings.HasPrefix(files[0].Name(), "email-task-") || !strings.Contains(string(content), "ada@example.com") {
		t.Fatalf("%s has %s", files[0].Name(), content)
	}
}

func (Conformance) BadInputIsRefusedAtTheEdge(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	good := task.Email{From: "a@example.com", To: "b@example.com", Subject: "s", Text: "t"}
	with := func(change func(*task.Email)) task.Email { m := good; change(&m); return m }
	refuse := func(what string, fn func(tx *perdure.Tx) error) {
		t.Helper()
		db.Unchanged(t, func() {
			err := f.eng.Update(enginetest.Context(t), fn)
			var invalid *fault.Invalid
			if !errors.As(err, &invalid) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	for what, m := range map[string]task.Email{
		"no recipient": with(func(m *task.Email) { m.To = "" }),
		"two lines":    with(func(m *task.Email) { m.To = "b@example.com\r\nBcc: c@example.com" }),
		"subject":      with(func(m *task.Email) { m.Subject = "a\nb" }),
		"no address":   with(func(m *task.Email) { m.From = "nobody" }),
		"no body":      with(func(m *task.Email) { m.Text = "" }),
		"NUL":          with(func(m *task.Email) { m.HTML = "a\x00b" }),
		"smuggled":     with(func(m *task.Email) { m.To = `"b@example.com> ORCPT=x" <b@` }),
	} {
		refuse(what, func(tx *perdure.Tx) error { _, err := task.SendEmailIn(tx, m, nil); return err })
	}
	for what, m := range map[string]task.SMS{
		"no number": {To: "0170", Body: "x"}, "no body": {To: "+4917012345"}, "long": {To: "+4917012345", Body: strings.Repeat("x", 1601)},
	} {
		refuse(what, func(tx *perdure.Tx) error { _, err := task.SendSMSIn(tx, m, nil); return err })
	}
	for what, c := range map[string]struct {
		taskType string
		payload  any
		options  *task.EnqueueOptions
	}{
		"type": {"E-Mail", map[string]any{}, nil}, "no object": {"email", []int{1}, nil}, "no JSON": {"email", make(chan int), nil},
		"negative": {"email", map[string]any{}, &task.EnqueueOptions{Delay: -1}},
		"both":     {"email", map[string]any{}, &task.EnqueueOptions{Delay: 1, At: noon}},
	} {
		refuse(what, func(tx *perdure.Tx) error { _, err := task.EnqueueIn(tx, c.taskType, c.payload, c.options); return err })
	}
	for what, o := range map[string]task.Options{
		"concurrency": {Concurrency: -1}, "lease": {Lease: time.Millisecond}, "crashes": {MaxCrashes: 1}, "timeout": {Timeout: -1},
		"function type": {Senders: map[string]task.Sender{"db_function": f.provider.send}}, "no sender": {Senders: map[string]task.Sender{"x": nil}},
		"function name": {Functions: map[string]task.Function{"x": nil}},
	} {
		_, err := task.NewWorker(f.eng, &o)
		var invalid *fault.Invalid
		if !errors.As(err, &invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
