package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/task"
)

// Task is a task of the queue.
type Task struct {
	ID             string          `json:"id"`
	Type           string          `json:"type"`
	Status         task.Status     `json:"status" enum:"scheduled,ready,retrying,running,done,failed,quarantined,cancelled"`
	Payload        json.RawMessage `json:"payload,omitempty" doc:"Omitted from lists."`
	Attempts       int             `json:"attempts"`
	Crashes        int             `json:"crashes"`
	Error          string          `json:"error,omitempty" doc:"Last error."`
	Outcome        json.RawMessage `json:"outcome,omitempty" doc:"Outcome that its handler has not processed."`
	Worker         string          `json:"worker,omitempty"`
	EnqueuedAt     Time            `json:"enqueued_at"`
	ScheduledAt    Time            `json:"scheduled_at"`
	DequeuedAt     Time            `json:"dequeued_at,omitzero"`
	FinishedAt     Time            `json:"finished_at,omitzero"`
	LeaseExpiresAt Time            `json:"lease_expires_at,omitzero"`
	Errors         []TaskError     `json:"errors,omitempty" doc:"Newest 50 errors. Omitted from lists."`
	Timeline       []Attempt       `json:"timeline,omitempty" doc:"Attempts, oldest first: the newest 50 failed attempts and the running or successful attempt. Omitted from lists."`
	Facts          []Fact          `json:"facts,omitempty" doc:"Events of its business process, in order. Omitted from lists."`
}

// TaskError is an error that a worker recorded.
type TaskError struct {
	ID        string `json:"id"`
	Task      string `json:"task,omitempty" doc:"Task of the error. Omitted if the task was removed."`
	Message   string `json:"message"`
	CreatedAt Time   `json:"created_at"`
}

func showTask(t task.Record) Task {
	shown := Task{
		ID: t.ID, Type: t.Type, Status: t.Status, Payload: t.Payload, Attempts: t.Attempts, Crashes: t.Crashes, Worker: t.Worker,
		EnqueuedAt: Time(t.Enqueued), ScheduledAt: Time(t.Scheduled), DequeuedAt: Time(t.Dequeued), FinishedAt: Time(t.Finished), LeaseExpiresAt: Time(t.LeaseExpires),
	}
	if len(t.Outcome) > 0 {
		shown.Outcome = t.Outcome
	}
	return shown
}

// showTaskRow leaves out large fields.
func showTaskRow(t task.Record) Task {
	t.Payload, t.Outcome = nil, nil
	return showTask(t)
}

func showTaskError(e task.ErrorRecord) TaskError {
	return TaskError{ID: e.ID, Task: e.Task, Message: e.Message, CreatedAt: Time(e.Created)}
}

// TaskMatch filters a list of tasks.
type TaskMatch struct {
	Type   string        `query:"type" json:"type,omitempty" maxLength:"128"`
	Status []task.Status `query:"status" json:"status,omitempty" enum:"scheduled,ready,retrying,running,done,failed,quarantined,cancelled"`
}

func (m TaskMatch) narrows() bool { return m.Type != "" || len(m.Status) > 0 }

type taskFilter struct {
	Paging
	TaskMatch
}

func (a *API) listTasks(ctx context.Context, in *taskFilter) (*List[Task], error) {
	ids, next, err := a.inspect.Tasks(ctx, task.Filter{Type: in.Type, Statuses: in.Status}, in.Cursor, in.Limit)
	if err != nil || len(ids) == 0 {
		return page(requestOf(ctx), nil, next, showTaskRow), err
	}
	rows, _, err := a.tasks.List(ctx, task.Filter{IDs: ids}, "", len(ids))
	slices.SortFunc(rows, func(a, b task.Record) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	if err != nil {
		return nil, err
	}
	last, err := a.inspect.TaskErrors(ctx, ids)
	list := page(requestOf(ctx), rows, next, showTaskRow)
	for i := range list.Body.Data {
		list.Body.Data[i].Error = last[list.Body.Data[i].ID]
	}
	return list, err
}

// shownErrors is the maximum number of errors that are shown with a task.
const shownErrors = 50

func (a *API) getTask(ctx context.Context, in *ByID) (*One[Task], error) {
	t, err := a.tasks.Get(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	shown := showTask(t)
	errs, _, err := a.tasks.Errors(ctx, in.ID, "", shownErrors)
	if err != nil {
		return nil, err
	}
	for _, e := range errs {
		shown.Errors = append(shown.Errors, showTaskError(e))
	}
	if len(shown.Errors) > 0 {
		shown.Error = shown.Errors[0].Message
	}
	attempts, err := a.tasks.Attempts(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	facts, err := a.tasks.Facts(ctx, in.ID)
	shown.Timeline, shown.Facts = showAttempts(attempts), showFacts(facts)
	return one(shown), err
}

type taskErrorFilter struct {
	Paging
	Task string `query:"task" maxLength:"20" doc:"Filter by task."`
}

func (a *API) listTaskErrors(ctx context.Context, in *taskErrorFilter) (*List[TaskError], error) {
	rows, next, err := a.tasks.Errors(ctx, in.Task, in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), rows, next, showTaskError), nil
}

// TaskBulk requests an action on many tasks.
type TaskBulk struct {
	Action string `json:"action" enum:"cancel,retry,run,delete" doc:"Action. run makes tasks due now that wait for their due time or for another attempt."`
	Many[TaskMatch]
}

func (a *API) actOnTasks(ctx context.Context, in *Posted[TaskBulk]) (*Done[BulkResult], error) {
	tasks, err := choose(in.Body.Many, func(m TaskMatch) finder {
		return func(cursor string, limit int) ([]string, string, error) {
			return a.inspect.Tasks(ctx, task.Filter{Type: m.Type, Statuses: m.Status}, cursor, limit)
		}
	})
	if err != nil {
		return nil, err
	}
	act := map[string]func(*perdure.Tx, string) error{"cancel": a.tasks.CancelIn, "retry": a.tasks.RetryIn, "run": a.tasks.RunNowIn, "delete": a.tasks.DeleteIn}
	return a.onEach(ctx, in.Key, in.Body, tasks, act[in.Body.Action])
}

// TaskInput is a task to be enqueued.
type TaskInput struct {
	Type    string          `json:"type" maxLength:"128"`
	Payload json.RawMessage `json:"payload" doc:"JSON object."`
	At      Time            `json:"at,omitzero" doc:"Due time. Default: now."`
	Delay   Duration        `json:"delay,omitempty" doc:"Delay until it is due, instead of at."`
}

func (a *API) enqueueTask(ctx context.Context, in *Posted[TaskInput]) (*Done[Acted], error) {
	b := in.Body
	return effect(ctx, a, in.Key, b, func(tx *perdure.Tx) (func() Acted, error) {
		ticket, err := task.EnqueueIn(tx, b.Type, b.Payload, &task.EnqueueOptions{At: timeOf(b.At), Delay: time.Duration(b.Delay)})
		return func() Acted { return Acted{ticket.ID} }, err
	})
}

// ProcessInput starts a business process.
type ProcessInput struct {
	Keyed
	Name string `path:"name" maxLength:"128" doc:"Name of the business process. email and sms send a message; any other name is a task type."`
	Body struct {
		Payload json.RawMessage `json:"payload" doc:"Fields of an email: from, to, subject, text, html. Fields of an SMS: from, to, body."`
		At      Time            `json:"at,omitzero" doc:"Due time. Default: now."`
	}
}

// startProcess records the first task of a business process.
func (a *API) startProcess(ctx context.Context, in *ProcessInput) (*Done[Acted], error) {
	o := &task.EnqueueOptions{At: timeOf(in.Body.At)}
	return effect(ctx, a, in.Key, in.Body, func(tx *perdure.Tx) (func() Acted, error) {
		ticket, err := start(tx, in.Name, in.Body.Payload, o)
		return func() Acted { return Acted{ticket.ID} }, err
	})
}

func start(tx *perdure.Tx, name string, payload json.RawMessage, o *task.EnqueueOptions) (*task.Ticket, error) {
	switch name {
	case "email":
		var m struct{ From, To, Subject, Text, HTML string }
		if err := json.Unmarshal(payload, &m); err != nil {
			return nil, badPayload(err)
		}
		return task.SendEmailIn(tx, task.Email(m), o)
	case "sms":
		var m struct{ From, To, Body string }
		if err := json.Unmarshal(payload, &m); err != nil {
			return nil, badPayload(err)
		}
		return task.SendSMSIn(tx, task.SMS(m), o)
	}
	return task.EnqueueIn(tx, name, payload, o)
}

func badPayload(err error) error {
	return NewProblem(http.StatusUnprocessableEntity, codeInvalid, fmt.Sprintf("the payload does not match the business process: %v", err))
}
