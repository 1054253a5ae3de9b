package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/retry"
)

// functionType is the type of tasks that run a function of the database.
const functionType = "db_function"

// Envelope is the result of every function of a business process.
type Envelope struct {
	// Success is true if the function succeeded.
	Success bool `json:"success"`
	// Error is an operational failure: the function's changes are rolled back, and the
	// function is retried later.
	Error string `json:"error,omitempty"`
	// ValidationFailure is the reason why a retry would not help: the input is invalid,
	// or there is nothing left to do. The function's changes are kept.
	ValidationFailure string `json:"validation_failure_message,omitempty"`
	// Payload is the input that a before-handler returns for the sender.
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Function is a function of a business process, on SQLite. It has a transaction and no
// network: its changes are committed together with the end of its task, or not at all.
// It may run again; no changes of the earlier run are left then.
type Function func(ctx context.Context, tx *perdure.Tx, payload json.RawMessage) (Envelope, error)

// OK returns the envelope of success. It has a payload unless payload is nil.
func OK(payload any) (Envelope, error) {
	if payload == nil {
		return Envelope{Success: true}, nil
	}
	raw, err := json.Marshal(payload)
	return Envelope{Success: true, Payload: raw}, err
}

// Refuse returns the envelope of a validation failure.
func Refuse(format string, args ...any) (Envelope, error) {
	return Envelope{ValidationFailure: fmt.Sprintf(format, args...)}, nil
}

// Sender does the work of a task, outside any transaction. Its payload is the result of
// the before-handler, or the task's own payload if there is none. Its result is passed
// to the success handler. FromContext returns more about the task.
type Sender func(ctx context.Context, payload json.RawMessage) (result any, err error)

// Info describes the task for which a sender works.
type Info struct {
	ID   string
	Type string
	// Key is the same for every attempt of this task.
	Key string
	// Attempt counts the runs of the task from 1, Crashes the runs that crashed. If
	// there are crashes, the side effect may have happened already.
	Attempt, Crashes int
	// Enqueued is the time at which the task was enqueued, Scheduled its due time.
	Enqueued, Scheduled time.Time
}

type infoKey struct{}

// FromContext returns the Info of the task for which a sender works. Outside a sender
// it returns the zero Info.
func FromContext(ctx context.Context) Info {
	info, _ := ctx.Value(infoKey{}).(Info)
	return info
}

// refusedf returns an error after which a task is not retried.
func refusedf(format string, args ...any) error { return retry.Stop(fmt.Errorf(format, args...)) }

// contract has the fields of a payload that the worker reads.
type contract struct {
	Function string `json:"db_function"`
	Before   string `json:"before_handler"`
	Success  string `json:"success_handler"`
	Error    string `json:"error_handler"`
}

func parseContract(payload string) (contract, error) {
	var c contract
	if !bytes.HasPrefix(bytes.TrimSpace([]byte(payload)), []byte("{")) {
		return c, refusedf("payload must be an object")
	}
	if err := json.Unmarshal([]byte(payload), &c); err != nil {
		return c, refusedf("payload is malformed: %w", err)
	}
	return c, nil
}

// parseEnvelope decodes the result of a function. It returns the envelope's error as an
// error.
func parseEnvelope(function string, raw []byte) (Envelope, error) {
	var e Envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, fmt.Errorf("function %s returned no envelope: %w", function, err)
	}
	return e, e.check(function)
}

func (e Envelope) check(function string) error {
	switch {
	case e.Error != "":
		return fmt.Errorf("function %s: %s", function, e.Error)
	case !e.Success && e.ValidationFailure == "":
		return fmt.Errorf("function %s must return success or a reason", function)
	}
	return nil
}

// outcome is the result of a send. It is stored until its handler has recorded it.
type outcome struct {
	Result json.RawMessage `json:"worker_payload,omitempty"`
	Error  string          `json:"error,omitempty"`
	// added are the functions that the sender has added to the transaction that records
	// its success. They cannot be stored.
	added []func(*perdure.Tx) error
	// contract has the handlers.
	contract contract
}

// unnotedError reports that the send succeeded or failed, but that its handler could
// not record the result.
type unnotedError struct {
	outcome outcome
	err     error
}

func (e *unnotedError) Error() string { return e.err.Error() }

func (e *unnotedError) Unwrap() error { return e.err }

// outcomeOf returns, as JSON, the outcome in an error that is still to be recorded.
func outcomeOf(err error) *string {
	var unnoted *unnotedError
	if !errors.As(err, &unnoted) {
		return nil
	}
	raw, _ := json.Marshal(unnoted.outcome) // it was decoded from JSON
	text := string(raw)
	return &text
}
