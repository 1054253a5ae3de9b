package task

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// The prefixes of the errors that the queue itself writes.
const (
	lostMessage     = "worker was lost while the task ran"
	unroutedMessage = "no worker knows task type "
)

// Attempts returns the attempts of a task, oldest first: the newest retry.MaxRecorded
// that left an error, and the attempt that is running or has succeeded. For an attempt
// that left an error, the worker is not known. Its start and number are known only if
// it is the last one. Attempts returns a *fault.NotFound if there is no such task.
func (a *Admin) Attempts(ctx context.Context, id string) ([]retry.Attempt, error) {
	t, err := a.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	failures, _, err := a.Errors(ctx, id, "", retry.MaxRecorded)
	if err != nil {
		return nil, err
	}
	var attempts []retry.Attempt
	for _, e := range slices.Backward(failures) {
		if !strings.HasPrefix(e.Message, unroutedMessage) { // it was not an attempt
			attempts = append(attempts, attemptOf(e))
		}
	}
	last := retry.Attempt{Number: t.Attempts + t.Crashes, Worker: t.Worker, Began: t.Dequeued, Ended: t.Finished}
	if n := len(attempts); n > 0 && t.Status != Running && !t.Dequeued.After(attempts[n-1].Ended) {
		attempts[n-1].Number, attempts[n-1].Began = last.Number, last.Began
		if attempts[n-1].Ended.Equal(last.Ended) { // it ended with an error, which its handler may have recorded
			return attempts, nil
		}
	}
	switch t.Status {
	case Running:
		last.Number++
		last.Outcome = retry.Running
	case Done:
		last.Outcome = retry.Succeeded
	default:
		return attempts, nil
	}
	return append(attempts, last), nil
}

func attemptOf(e ErrorRecord) retry.Attempt {
	attempt := retry.Attempt{Outcome: retry.Failed, Error: e.Message, Ended: e.Created}
	if strings.HasPrefix(e.Message, lostMessage) {
		attempt.Outcome = retry.Lost
	}
	return attempt
}

// Fact is an event in a business process.
type Fact struct {
	// Kind is scheduled, failed or succeeded.
	Kind string
	// Attempt is the attempt of the business process, from 1.
	Attempt int
	// Task is the task that was scheduled, or empty.
	Task  string
	Error string
	At    time.Time
}

// Facts returns the facts of the comms process to which a task belongs, in order. It is
// empty for other tasks.
func (a *Admin) Facts(ctx context.Context, id string) ([]Fact, error) {
	t, err := a.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	var facts []Fact
	channel, send := process(t.Payload)
	if channel == "" {
		return nil, nil
	}
	list := a.rt.Store.ListSendFacts(channel, send, func(f store.SendFact) {
		fact := Fact{Kind: f.Kind, Attempt: f.Attempt, Error: f.Error, At: f.At.UTC()}
		if f.Task != 0 {
			fact.Task = text(f.Task)
		}
		facts = append(facts, fact)
	})
	if err := a.read(ctx, list); err != nil {
		return nil, fmt.Errorf("read facts of task %s: %w", id, err)
	}
	return facts, nil
}

// process returns the comms process that a payload names, if any.
func process(payload json.RawMessage) (channel string, send int64) {
	var ids struct {
		Email int64 `json:"send_email_task_id"`
		SMS   int64 `json:"send_sms_task_id"`
	}
	if json.Unmarshal(payload, &ids) != nil { // the payload of a user's task
		return "", 0
	}
	switch {
	case ids.Email != 0:
		return "email", ids.Email
	case ids.SMS != 0:
		return "sms", ids.SMS
	}
	return "", 0
}
