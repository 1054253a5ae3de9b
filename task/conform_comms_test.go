package task_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/task"
)

// dump returns rows as text, one a line, times as seconds after noon.
func (f *fixture) dump(t testing.TB, query string) string {
	t.Helper()
	rows, err := f.db.SQL(t).QueryContext(enginetest.Context(t), query)
	enginetest.NoError(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	enginetest.NoError(t, err)
	var lines []string
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		enginetest.NoError(t, rows.Scan(values...))
		var line []string
		for i, v := range values {
			line = append(line, cell(columns[i], *v.(*any)))
		}
		lines = append(lines, strings.Join(line, " "))
	}
	enginetest.NoError(t, rows.Err())
	return strings.Join(lines, "\n")
}

func cell(column string, v any) string {
	switch v := v.(type) {
	case time.Time:
		return fmt.Sprintf("+%ds", int(v.Sub(noon).Seconds()))
	case []byte:
		return string(v)
	case int64:
		if strings.HasSuffix(column, "_at") {
			return fmt.Sprintf("+%ds", int(time.UnixMicro(v).Sub(noon).Seconds()))
		}
	}
	return fmt.Sprint(v)
}

// The example flow of the seed: the first attempt fails, the second succeeds.
// Facts, errors and tasks are compared to the last row.
func (Conformance) Case63FailOnceThenSucceed(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.provider.answers = []error{errors.New("provider is down")}
	id := f.email(t)
	f.process(t, 2) // supervisor #1, e-mail attempt #1
	f.hasFacts(t, "email", id, 1, 1, 0)
	f.after(t, 5*time.Second-time.Microsecond, 0)
	f.after(t, time.Microsecond, 2) // supervisor #2, e-mail attempt #2
	f.hasFacts(t, "email", id, 2, 1, 1)
	f.after(t, 10*time.Second-time.Microsecond, 0)
	f.after(t, time.Microsecond, 1) // supervisor #3: terminal
	f.after(t, 24*time.Hour, 0)

	equal(t, "tasks that wait", len(f.pending(t)), 0)
	equal(t, "calls of the provider", f.provider.count(), 2)
	f.hasErrors(t, "provider is down")
	equal(t, "scheduled", f.dump(t, "select send_email_task_id, attempt, task_id, created_at from "+f.table("comms", "send_email_task_scheduled")+" order by attempt"),
		"1 1 2 +0s\n1 2 4 +5s")
	equal(t, "failed", f.dump(t, "select send_email_task_id, attempt, error_message, created_at from "+f.table("comms", "send_email_task_failed")),
		"1 1 provider is down +0s")
	equal(t, "succeeded", strings.ReplaceAll(f.dump(t, "select send_email_task_id, attempt, worker_payload, created_at from "+f.table("comms", "send_email_task_succeeded")), `": "`, `":"`),
		`1 2 {"id":"message-2"} +5s`)
	equal(t, "errors", f.dump(t, "select error_id, task_id, error_message, created_at from "+f.table("queues", "error")),
		"1 2 provider is down +0s")
	equal(t, "tasks", f.dump(t, "select task_id, task_type, status, scheduled_at, finished_at from "+f.table("queues", "task")+" order by task_id"), strings.Join([]string{
		"1 db_function completed +0s +0s", "2 email completed +0s +0s", "3 db_function completed +5s +5s",
		"4 email completed +5s +5s", "5 db_function completed +15s +15s",
	}, "\n"))
}

func (Conformance) Case64FailTwice(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.provider.answers = []error{errors.New("no"), errors.New("no again"), errors.New("never reached")}
	id := f.email(t)
	f.process(t, 2)
	f.after(t, 5*time.Second, 2)
	f.after(t, 10*time.Second, 1) // terminal
	f.after(t, 24*time.Hour, 0)
	f.hasFacts(t, "email", id, 2, 2, 0)
	f.hasErrors(t, "no", "no again")
	equal(t, "calls of the provider", f.provider.count(), 2)
}

func (Conformance) Case65ASupervisorThatRunsTwiceSchedulesOnce(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	id := f.email(t)
	supervise := func() {
		f.enqueue(t, "db_function", map[string]any{"task_type": "db_function", "db_function": "comms.send_email_supervisor", "send_email_task_id": id}, nil)
	}
	f.onlyFunctions(t)
	f.process(t, 1)
	supervise()
	supervise()
	f.process(t, 2)
	f.hasFacts(t, "email", id, 1, 0, 0)
	var emails, supervisors int
	for _, r := range f.pending(t) {
		switch r.Type {
		case "email":
			emails++
		default:
			supervisors++
		}
	}
	equal(t, "e-mail tasks", emails, 1)
	equal(t, "supervisors, one again for each run", supervisors, 3)
}

// onlyFunctions keeps the worker from sending: e-mails are far in the future.
func (f *fixture) onlyFunctions(t testing.TB) {
	t.Helper()
	if f.db.Name == enginetest.SQLite {
		f.db.Exec(t, "create trigger later after insert on queues_task when new.task_type in ('email', 'sms') begin update queues_task set scheduled_at = 9e15 where task_id = new.task_id; end")
		return
	}
	f.db.Exec(t, "create function public.later() returns trigger language plpgsql as 'begin new.scheduled_at := ''2200-01-01''; return new; end'")
	f.db.Exec(t, "create trigger later before insert on queues.task for each row when (new.task_type in ('email', 'sms')) execute function public.later()")
}

func (Conformance) Case67AHandlerThatIsCalledTwiceCountsOnce(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.onlyFunctions(t)
	failing, fine := f.email(t), f.email(t)
	f.process(t, 2)
	handle := func(handler string, id int64, more map[string]any) {
		original := map[string]any{"send_email_task_id": id, "attempt": 1}
		payload := map[string]any{"db_function": handler, "original_payload": original}
		for k, v := range more {
			payload[k] = v
		}
		f.enqueue(t, "db_function", payload, nil)
	}
	for range 2 {
		handle("comms.record_email_failure", failing, map[string]any{"error": "no"})
		handle("comms.record_email_success", fine, map[string]any{"worker_payload": map[string]any{"id": "x"}})
	}
	f.process(t, 4)
	f.hasErrors(t)
	f.hasFacts(t, "email", failing, 1, 1, 0)
	f.hasFacts(t, "email", fine, 1, 0, 1)

	// An attempt has one outcome: the other one is refused, whichever came first.
	handle("comms.record_email_success", failing, nil)
	handle("comms.record_email_failure", fine, map[string]any{"error": "no"})
	handle("comms.record_email_failure", 4711, map[string]any{"error": "no"})
	f.process(t, 3)
	f.hasErrors(t, "attempt_has_failed", "attempt_has_succeeded", "attempt_not_found")
	f.hasFacts(t, "email", failing, 1, 1, 0)
	f.hasFacts(t, "email", fine, 1, 0, 1)
}

func (Conformance) Case68WhatTheBeforeHandlerRefusesIsNeverSent(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	id := f.email(t)
	f.db.Exec(t, "update "+f.table("comms", "email_message")+" set text_body = ''")
	f.process(t, 2)
	f.hasErrors(t, "comms.get_email_payload: message_has_no_body")
	f.hasFacts(t, "email", id, 1, 1, 0)
	f.after(t, 5*time.Second, 1) // the supervisor: terminal
	f.after(t, 24*time.Hour, 0)
	f.hasErrors(t, "message_has_no_body")
	f.hasFacts(t, "email", id, 1, 1, 0)
	equal(t, "calls of the provider", f.provider.count(), 0)
}

// Case 75, and correction 9: a supervisor whose attempt never ends looks again
// ever more rarely, and not for ever.
func (Conformance) Case75TheBackoffDoublesAndTheRunCapEndsIt(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.onlyFunctions(t)
	id := f.email(t)
	f.process(t, 1)
	var waits []time.Duration
	runs := 1
	for {
		next := f.nextFunction(t)
		if next.IsZero() {
			break
		}
		waits = append(waits, next.Sub(f.clock.Now()))
		f.after(t, next.Sub(f.clock.Now()), 1)
		if runs++; runs > 100 {
			t.Fatal("the supervisor does not end")
		}
	}
	equal(t, "first waits", fmt.Sprint(waits[:9]), "[5s 10s 20s 40s 1m20s 2m40s 5m20s 10m0s 10m0s]")
	equal(t, "runs", runs, 51)
	f.hasErrors(t, fmt.Sprintf("comms.send_email_supervisor: run_cap_reached for send_email_task %d", id))
	f.hasFacts(t, "email", id, 1, 1, 0)
	equal(t, "tasks that wait", len(f.pending(t)), 0)
	equal(t, "reason", f.db.Text(t, "select error_message from "+f.table("comms", "send_email_task_failed")), "run cap reached")
}

// nextFunction returns when the next function is due; zero: never.
func (f *fixture) nextFunction(t testing.TB) time.Time {
	t.Helper()
	for _, r := range f.pending(t) {
		if r.Type == "db_function" {
			return r.Scheduled
		}
	}
	return time.Time{}
}

// An SMS has the same process.
func (Conformance) AnSMSFailsOnceAndSucceeds(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.provider.answers = []error{errors.New("no")}
	id := f.sms(t)
	f.process(t, 2)
	f.after(t, 5*time.Second, 2)
	f.after(t, 10*time.Second, 1)
	f.after(t, time.Hour, 0)
	f.hasFacts(t, "sms", id, 2, 1, 1)
	f.hasErrors(t, "no")
	var sent struct {
		To, Body, IdempotencyKey string
		Attempt                  int
		Since                    time.Time
	}
	for i, raw := range f.provider.sent {
		enginetest.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(raw), "idempotency_key", "idempotencyKey")), &sent))
		equal(t, "to", sent.To, "+491701234567")
		equal(t, "attempt", sent.Attempt, i+1)
		equal(t, "since", sent.Since.UTC(), noon)
	}
}

func (Conformance) TheKeyOfAllAttemptsIsTheSame(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.provider.answers = []error{errors.New("no")}
	f.email(t)
	f.email(t)
	f.process(t, 4)
	f.after(t, 5*time.Second, 3)
	keys := map[string]int{}
	for _, raw := range f.provider.sent {
		var sent struct {
			Key string `json:"idempotency_key"`
		}
		enginetest.NoError(t, json.Unmarshal(raw, &sent))
		keys[sent.Key]++
	}
	if len(keys) != 2 || len(f.provider.sent) != 3 {
		t.Fatalf("keys of 2 sends with 3 attempts: %v", keys)
	}
}

func (Conformance) FactsCannotBeChanged(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.provider.answers = []error{errors.New("no")}
	f.email(t)
	f.process(t, 2)
	f.after(t, 5*time.Second, 2)
	raw := db.SQL(t)
	for _, suffix := range []string{"scheduled", "failed", "succeeded"} {
		name := f.table("comms", "send_email_task_"+suffix)
		for _, statement := range []string{"update " + name + " set attempt = 7", "delete from " + name} {
			if _, err := raw.ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "append-only") {
				t.Errorf("%s: %v", statement, err)
			}
		}
	}
}

// A task that waits for a worker is not over, however late it is: its supervisor
// waits too, and the message is sent by the attempt that was begun.
func (Conformance) ATaskThatIsLateIsSentByItsAttempt(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	sends := map[string]int64{"email": f.email(t), "sms": f.sms(t)}
	f.supervise(t, sends)
	for range 3 { // workers that drain give back what they have not started
		claimed := f.claim(t, 2, time.Minute, "email", "sms")
		equal(t, "claimed", len(claimed), 2)
		for _, c := range claimed {
			f.release(t, c)
			if r := f.is(t, c.ID, task.Ready); !r.Dequeued.IsZero() {
				t.Errorf("task %d was dequeued at %v", c.ID, r.Dequeued)
			}
		}
		f.clock.Advance(time.Hour)
		f.supervise(t, sends)
	}
	// A worker crashes, and no other worker has time for its tasks.
	equal(t, "claimed", len(f.claim(t, 2, time.Minute, "email", "sms")), 2)
	f.clock.Advance(time.Minute)
	f.claim(t, 0, time.Minute, "nothing") // returns what has expired
	f.clock.Advance(time.Hour)
	f.supervise(t, sends)
	for channel, id := range sends {
		f.hasFacts(t, channel, id, 1, 0, 0)
	}
	for range 2 {
		_, err := f.worker.Process(enginetest.Context(t))
		enginetest.NoError(t, err)
		for channel, id := range sends {
			f.hasFacts(t, channel, id, 1, 0, 1)
		}
		f.clock.Advance(time.Hour)
	}
	equal(t, "calls of the provider", f.provider.count(), 2)
}

// supervise runs a supervisor of each send, and no other task.
func (f *fixture) supervise(t testing.TB, sends map[string]int64) {
	t.Helper()
	for channel, send := range sends {
		id := f.enqueue(t, "db_function", map[string]any{
			"task_type": "db_function", "db_function": "comms.send_" + channel + "_supervisor", "send_" + channel + "_task_id": send,
		}, &task.EnqueueOptions{At: noon.Add(-time.Hour)}) // the first to be claimed
		_, err := f.newWorker(t, &task.Options{Concurrency: 1}).Start(enginetest.Context(t))
		enginetest.NoError(t, err)
		enginetest.Eventually(t, "the supervisor ends", func() bool { return f.get(t, id).Status == task.Done })
	}
}

// release gives a claim back.
func (f *fixture) release(t testing.TB, c store.Task) {
	t.Helper()
	rt := host.Of(f.eng)
	enginetest.NoError(t, unit.Transact(enginetest.Context(t), rt.DB, sqldb.Write, func(tx sqldb.Tx) error {
		return tx.Run(enginetest.Context(t), rt.Store.ReleaseTasks([]store.Held{{ID: strconv.FormatInt(c.ID, 10), Token: c.Token}}))
	}))
}
