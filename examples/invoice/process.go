package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/task"
)

// Functions are the functions of the business process for SQLite, by their names in
// process.sql.
var Functions = map[string]task.Function{
	"billing.invoice_supervisor":     supervise,
	"billing.get_invoice_payload":    prepare,
	"billing.record_invoice_success": recordSuccess,
	"billing.record_invoice_failure": recordFailure,
}

// payload has the fields that the functions read. Handlers find the payload of their task
// in Original.
type payload struct {
	ID       int64           `json:"invoice_task_id"`
	Attempt  int64           `json:"attempt,omitempty"`
	Runs     int64           `json:"run_count,omitempty"`
	Result   json.RawMessage `json:"worker_payload,omitempty"`
	Error    string          `json:"error,omitempty"`
	Original *payload        `json:"original_payload,omitempty"`
}

func read(raw json.RawMessage) (p payload, err error) {
	err = json.Unmarshal(raw, &p)
	return p, err
}

// number reads a number, such as a count.
func number(tx *perdure.Tx, query string, args ...any) (n int64, err error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := rows.Scan(&n); err != nil {
			return 0, err
		}
	}
	return n, rows.Err()
}

const (
	maxAttempts = 3
	maxRuns     = 50
)

// supervise reads the facts and decides whether to start an attempt. It runs again later,
// unless the business process is finished.
func supervise(_ context.Context, tx *perdure.Tx, raw json.RawMessage) (task.Envelope, error) {
	p, err := read(raw)
	if err != nil {
		return task.Refuse("malformed payload: %v", err)
	}
	if p.Runs++; p.Runs > maxRuns {
		return task.Refuse("run_cap_reached for invoice_task %d", p.ID)
	}
	f, err := readFacts(tx, p.ID)
	if err != nil {
		return task.Envelope{}, err
	}
	if f.ended() {
		return task.OK(nil)
	}
	if f.scheduled <= f.failures {
		if err := schedule(tx, p.ID, f.failures+1); err != nil {
			return task.Envelope{}, err
		}
	}
	again := map[string]any{"task_type": "db_function", "db_function": "billing.invoice_supervisor", "invoice_task_id": p.ID, "run_count": p.Runs}
	delay := 50 * time.Millisecond << min(p.Runs-1, 10)
	if _, err := task.EnqueueIn(tx, "db_function", again, &task.EnqueueOptions{Delay: delay}); err != nil {
		return task.Envelope{}, err
	}
	return task.OK(nil)
}

// facts are the recorded facts of an invoice.
type facts struct{ succeeded, refused, failures, scheduled int64 }

func (f facts) ended() bool { return f.succeeded > 0 || f.refused > 0 || f.failures >= maxAttempts }

// readFacts reads the facts. An attempt whose task finished without an outcome, for example
// after a crash, counts as failed.
func readFacts(tx *perdure.Tx, id int64) (f facts, err error) {
	_, err = tx.Exec(`insert into billing_invoice_task_failed (invoice_task_id, attempt, error_message)
		select s.invoice_task_id, s.attempt, 'attempt ended without an outcome' from billing_invoice_task_scheduled s
		where s.invoice_task_id = ? and not exists (select 1 from queues_task t where t.task_id = s.task_id and t.status in ('pending', 'processing'))
			and not exists (select 1 from billing_invoice_task_succeeded d where d.invoice_task_id = s.invoice_task_id)
		on conflict do nothing`, id)
	if err != nil {
		return f, err
	}
	for query, n := range map[string]*int64{
		"select count(*) from billing_invoice_task_succeeded where invoice_task_id = ?":            &f.succeeded,
		"select count(*) from billing_invoice_task_failed where invoice_task_id = ? and permanent": &f.refused,
		"select count(*) from billing_invoice_task_failed where invoice_task_id = ?":               &f.failures,
		"select count(*) from billing_invoice_task_scheduled where invoice_task_id = ?":            &f.scheduled,
	} {
		if *n, err = number(tx, query, id); err != nil {
			return f, err
		}
	}
	return f, nil
}

// schedule starts an attempt: it records a task for the renderer, with its handlers, and
// the fact.
func schedule(tx *perdure.Tx, id, attempt int64) error {
	ticket, err := task.EnqueueIn(tx, "render", map[string]any{
		"task_type": "render", "invoice_task_id": id, "attempt": attempt, "before_handler": "billing.get_invoice_payload",
		"success_handler": "billing.record_invoice_success", "error_handler": "billing.record_invoice_failure",
	}, nil)
	if err != nil {
		return err
	}
	if _, err := number(tx, "select 1"); err != nil { // a read sets the ID of the ticket
		return err
	}
	_, err = tx.Exec("insert into billing_invoice_task_scheduled (invoice_task_id, attempt, task_id) values (?, ?, ?)", id, attempt, ticket.ID)
	return err
}

// prepare returns the input of the renderer, or fails permanently.
func prepare(_ context.Context, tx *perdure.Tx, raw json.RawMessage) (task.Envelope, error) {
	p, err := read(raw)
	if err != nil {
		return task.Refuse("malformed payload: %v", err)
	}
	rows, err := tx.Query("select customer, cents, idempotency_key from billing_invoice_task where invoice_task_id = ?", p.ID)
	if err != nil {
		return task.Envelope{}, err
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() {
		return task.Refuse("invoice_task_not_found")
	}
	var invoice Invoice
	if err := rows.Scan(&invoice.Customer, &invoice.Cents, &invoice.Key); err != nil {
		return task.Envelope{}, err
	}
	if err := rows.Close(); err != nil {
		return task.Envelope{}, err
	}
	if invoice.Customer == "" {
		_, err := tx.Exec("insert into billing_invoice_task_failed values (?, ?, 'the invoice has no recipient', 1) on conflict do nothing", p.ID, p.Attempt)
		if err != nil {
			return task.Envelope{}, err
		}
		return task.Refuse("no_customer")
	}
	return task.OK(invoice)
}

func recordSuccess(_ context.Context, tx *perdure.Tx, raw json.RawMessage) (task.Envelope, error) {
	p, err := read(raw)
	if err != nil || p.Original == nil {
		return task.Refuse("malformed payload: %v", err)
	}
	_, err = tx.Exec("insert into billing_invoice_task_succeeded (invoice_task_id, attempt, result) values (?, ?, ?) on conflict do nothing",
		p.Original.ID, p.Original.Attempt, string(p.Result))
	if err != nil {
		return task.Envelope{}, fmt.Errorf("record success: %w", err)
	}
	return task.OK(nil)
}

func recordFailure(_ context.Context, tx *perdure.Tx, raw json.RawMessage) (task.Envelope, error) {
	p, err := read(raw)
	if err != nil || p.Original == nil {
		return task.Refuse("malformed payload: %v", err)
	}
	_, err = tx.Exec("insert into billing_invoice_task_failed (invoice_task_id, attempt, error_message) values (?, ?, ?) on conflict do nothing",
		p.Original.ID, p.Original.Attempt, p.Error)
	if err != nil {
		return task.Envelope{}, fmt.Errorf("record failure: %w", err)
	}
	return task.OK(nil)
}
