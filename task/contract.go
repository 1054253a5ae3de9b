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

// Envelope is what every function for tasks returns.
type Envelope struct {
	// Success says that the function did what it shall.
	Success bool `json:"success"`
	// Error is an operational failure: what the function did is rolled back,
	// and it is run again later.
	Error string `json:"error,omitempty"`
	// ValidationFailure says why running it again would be no better: the
	// input is invalid, or there is nothing left to do. What the function did
	// is kept.
	ValidationFailure string `json:"validation_failure_message,omitempty"`
	// Payload is what a before-handler hands to the sender.
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Function is a function of a business process, on SQLite. It has a transaction
// and no network: what it does is committed with the end of its task, or not at
// all. It may be run again, with nothing left of the run before.
type Function func(ctx context.Context, tx *perdure.Tx, payload json.RawMessage) (Envelope, error)

// OK returns the envelope of success, with a payload unless that is nil.
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

// Sender does what a task is for, outside of any transaction: it gets what the
// before-handler returned, or the task's own payload if there is none, and
// returns what the success handler shall know. See FromContext for more.
type Sender func(ctx context.Context, payload json.RawMessage) (result any, err error)

// Info is what a sender can know of the task that it works for.
type Info struct {
	ID   int64
	Type string
	// Key is the same for everything that is done for this task.
	Key string
	// Attempt counts the runs of the task from 1, Crashes those that lost
	// their worker: if there are any, its effect may have happened.
	Attempt, Crashes int
	// Enqueued is when the task was enqueued, Scheduled when it was due.
	Enqueued, Scheduled time.Time
}

type infoKey struct{}

// FromContext returns what is known of the task that a sender works for. It is
// the zero Info elsewhere.
func FromContext(ctx context.Context) Info {
	info, _ := ctx.Value(infoKey{}).(Info)
	return info
}

// refusedf returns an error after which a task is not run again.
func refusedf(format string, args ...any) error { return retry.Stop(fmt.Errorf(format, args...)) }

// contract is what the worker reads of a payload.
type contract struct {
	Function string `json:"db_function"`
	Before   string `json:"before_handler"`
	Success  string `json:"success_handler"`
	Error    string `json:"error_handler"`
}

func parseContract(payload string) (contract, error) {
	var c contract
	if !bytes.HasPrefix(bytes.TrimSpace([]byte(payload)), []byte("{")) {
		return c, refusedf("payload is not an object")
	}
	if err := json.Unmarshal([]byte(payload), &c); err != nil {
		return c, refusedf("payload is malformed: %w", err)
	}
	return c, nil
}

// parseEnvelope reads what a function returned. An error in it becomes one.
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
		return fmt.Errorf("function %s returned neither success nor a reason", function)
	}
	return nil
}

// outcome is what came of a send, as it is stored while its handler has yet to
// take note of it.
type outcome struct {
	Result json.RawMessage `json:"worker_payload,omitempty"`
	Error  string          `json:"error,omitempty"`
	// added are the functions that the sender has added to the transaction that
	// records its success. They cannot be stored.
	added []func(*perdure.Tx) error
	// contract has the handlers.
	contract contract
}

// unnotedError says that the work was done, or has failed, but that its handler
// could not take note of it.
type unnotedError struct {
	outcome outcome
	err     error
}

func (e *unnotedError) Error() string { return e.err.Error() }

func (e *unnotedError) Unwrap() error { return e.err }

// outcomeOf returns the outcome that an error leaves to be noted, as JSON.
func outcomeOf(err error) *string {
	var unnoted *unnotedError
	if !errors.As(err, &unnoted) {
		return nil
	}
	raw, _ := json.Marshal(unnoted.outcome) // it was JSON before
	text := string(raw)
	return &text
}
