package api

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure/fsm"
)

// Instance is an instance of a state machine.
type Instance struct {
	ID         string          `json:"id"`
	FSM        string          `json:"fsm"`
	Version    int             `json:"version"`
	Step       string          `json:"step"`
	Status     fsm.Status      `json:"status" enum:"scheduled,runnable,executing,awaiting_signal,awaiting_children,queued,unrouted,done,failed,cancelled,quarantined"`
	State      json.RawMessage `json:"state"`
	Queue      string          `json:"queue"`
	Priority   Priority        `json:"priority"`
	Attempt    int             `json:"attempt" doc:"The earlier attempts of the current step."`
	Crashes    int             `json:"crashes" doc:"How often a process was lost while it ran the step."`
	Parent     string          `json:"parent,omitempty"`
	Partition  string          `json:"partition,omitempty"`
	UniqueKey  string          `json:"unique_key,omitempty"`
	Result     json.RawMessage `json:"result,omitempty" doc:"Only of an instance that is done."`
	Error      string          `json:"error,omitempty" doc:"The last one."`
	CreatedAt  Time            `json:"created_at"`
	DueAt      Time            `json:"due_at"`
	DeadlineAt Time            `json:"deadline_at,omitzero"`
	FinishedAt Time            `json:"finished_at,omitzero"`
}

func showInstance(i fsm.Instance) Instance {
	return Instance{
		ID: i.ID, FSM: i.FSM, Version: i.Version, Step: i.Step, Status: i.Status, State: i.State, Queue: i.Queue, Priority: Priority(i.Priority),
		Attempt: i.Attempt, Crashes: i.Crashes, Parent: i.Parent, Partition: i.Partition, UniqueKey: i.Unique, Result: i.Result, Error: i.Error,
		CreatedAt: Time(i.Created), DueAt: Time(i.Due), DeadlineAt: Time(i.Deadline), FinishedAt: Time(i.Finished),
	}
}

func (a *API) registerInstances() {
	handle(a, "list-instances", a.listInstances)
	handle(a, "get-instance", a.getInstance)
}

// instanceFilter narrows a list of instances.
type instanceFilter struct {
	Paging
	FSM    string `query:"fsm" maxLength:"128"`
	Queue  string `query:"queue" maxLength:"128"`
	Parent string `query:"parent" maxLength:"36"`
}

func (a *API) listInstances(ctx context.Context, in *instanceFilter) (*List[Instance], error) {
	rows, next, err := a.config.Machines.List(ctx, fsm.Filter{FSM: in.FSM, Queue: in.Queue, Parent: in.Parent}, in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), rows, next, showInstance), nil
}

func (a *API) getInstance(ctx context.Context, in *ByID) (*One[Instance], error) {
	i, err := a.config.Machines.Get(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return one(showInstance(i)), nil
}
