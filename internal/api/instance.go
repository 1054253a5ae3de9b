package api

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// Instance is an instance of a state machine.
type Instance struct {
	ID          string          `json:"id"`
	Definition  string          `json:"definition"`
	Version     int             `json:"version"`
	Step        string          `json:"step"`
	Status      fsm.Status      `json:"status" enum:"scheduled,ready,running,retrying,waiting,no_worker,done,stopped,failed,cancelled,quarantined"`
	WaitsFor    fsm.Reason      `json:"waits_for,omitempty" enum:"signal,children,turn" doc:"Reason for waiting: a signal, its children, or its turn in its partition."`
	State       json.RawMessage `json:"state,omitempty" doc:"Omitted from lists."`
	Queue       string          `json:"queue"`
	Priority    Priority        `json:"priority"`
	Attempt     int             `json:"attempt" doc:"Number of the running or next attempt of the current step, counted from 1. Failed attempts and replays count."`
	Failures    int             `json:"failures" doc:"Number of failed attempts of the current step. The retry policy counts only these."`
	MaxAttempts int             `json:"max_attempts,omitempty" doc:"Number of attempts that the retry policy of the step allows. Set if an attempt has failed and the policy is known."`
	Crashes     int             `json:"crashes" doc:"Number of processes that crashed while they ran the step."`
	Parent      string          `json:"parent,omitempty"`
	Partition   string          `json:"partition_key,omitempty"`
	UniqueKey   string          `json:"unique_key,omitempty"`
	Result      json.RawMessage `json:"result,omitempty" doc:"Result of an instance that is done. Omitted from lists."`
	Error       string          `json:"error,omitempty" doc:"Last error."`
	CreatedAt   Time            `json:"created_at"`
	DueAt       Time            `json:"due_at"`
	DeadlineAt  Time            `json:"deadline_at,omitzero"`
	FinishedAt  Time            `json:"finished_at,omitzero"`
	Unreceived  int             `json:"unreceived_signals" doc:"Number of signals in its inbox that no step has received."`
	// CancelReason and OnCancel describe a cancellation.
	CancelReason string `json:"cancel_reason,omitempty" doc:"Reason of the cancellation, if the instance continued with its cancel step. Without a cancel step, the reason is the error."`
	OnCancel     string `json:"on_cancel,omitempty" doc:"Cancel step of its definition. Default: none; a cancelled instance finishes immediately."`

	Awaits      []string       `json:"awaits,omitempty" doc:"Signals that it waits for. Omitted from lists."`
	AwaitsUntil Time           `json:"awaits_until,omitzero" doc:"End of the wait. Omitted from lists."`
	Children    *ChildrenCount `json:"children,omitempty" doc:"Children that it waits for. Omitted from lists."`
	Timeline    []Attempt      `json:"timeline,omitempty" doc:"Attempts of its steps, oldest first: the newest 50 failed attempts and the running attempt, or the attempt that finished the instance. Omitted from lists."`
}

// ChildrenCount is the number of children that a parent waits for.
type ChildrenCount struct {
	Total   int `json:"total"`
	Pending int `json:"pending" doc:"Number of children that must finish before it continues."`
}

func showInstance(i fsm.Instance) Instance {
	return Instance{
		ID: i.ID, Definition: i.Definition, Version: i.Version, Step: i.Step, Status: i.Status, WaitsFor: i.WaitsFor, State: i.State, Queue: i.Queue, Priority: Priority(i.Priority),
		Attempt: i.Attempt, Failures: i.Failures, Crashes: i.Crashes, Parent: i.Parent, Partition: i.Partition, UniqueKey: i.Unique, Result: i.Result, Error: i.Error,
		CreatedAt: Time(i.Created), DueAt: Time(i.Due), DeadlineAt: Time(i.Deadline), FinishedAt: Time(i.Finished), Unreceived: i.Unreceived,
		CancelReason: i.CancelReason, OnCancel: i.OnCancel,
	}
}

// showRow leaves out large fields.
func showRow(i fsm.Instance) Instance {
	i.State, i.Result = nil, nil
	return showInstance(i)
}

// InstanceMatch filters a list of instances.
type InstanceMatch struct {
	Definition string       `query:"definition" json:"definition,omitempty" maxLength:"128"`
	Status     []fsm.Status `query:"status" json:"status,omitempty" enum:"live,finished,scheduled,ready,running,retrying,waiting,no_worker,done,stopped,failed,cancelled,quarantined" doc:"Filter by status. live and finished represent all unfinished and all finished statuses."`
	WaitsFor   fsm.Reason   `query:"waits_for" json:"waits_for,omitempty" enum:"signal,children,turn" doc:"Filter by reason for waiting."`
	Step       string       `query:"step" json:"step,omitempty" maxLength:"128"`
	Queue      string       `query:"queue" json:"queue,omitempty" maxLength:"128"`
	Parent     string       `query:"parent" json:"parent,omitempty" maxLength:"36"`
	UniqueKey  string       `query:"unique_key" json:"unique_key,omitempty" maxLength:"512" doc:"Filter by unique key."`
}

func (m InstanceMatch) narrows() bool {
	return m.Definition+m.Step+m.Queue+m.Parent+m.UniqueKey+string(m.WaitsFor) != "" || len(m.Status) > 0
}

func (m InstanceMatch) filter() inspect.Instances {
	return inspect.Instances{FSM: m.Definition, Statuses: m.Status, WaitsFor: m.WaitsFor, Step: m.Step, Queue: m.Queue, Parent: m.Parent, UniqueKey: m.UniqueKey}
}

type instanceFilter struct {
	Paging
	InstanceMatch
	Count bool `query:"count" doc:"Also counts the instances, up to 1,000."`
}

func (a *API) listInstances(ctx context.Context, in *instanceFilter) (*List[Instance], error) {
	rows, next, err := a.findInstances(ctx, in.filter(), in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	list := page(requestOf(ctx), rows, next, showRow)
	for n, i := range rows {
		if list.Body.Data[n].MaxAttempts, err = a.maxAttempts(ctx, i); err != nil {
			return nil, err
		}
	}
	if in.Count {
		n, capped, err := a.inspect.CountInstances(ctx, in.filter())
		if err != nil {
			return nil, err
		}
		list.Body.Count = &Count{Count: n, Capped: capped}
	}
	return list, nil
}

// maxAttempts returns the number of attempts that the retry policy of the step of an
// instance allows, if an attempt has failed.
func (a *API) maxAttempts(ctx context.Context, i fsm.Instance) (int, error) {
	if i.Failures == 0 {
		return 0, nil
	}
	return a.config.Machines.MaxAttempts(ctx, i)
}

// findInstances returns a page of instances.
func (a *API) findInstances(ctx context.Context, f inspect.Instances, cursor string, limit int) ([]fsm.Instance, string, error) {
	if a.rt.Store.Inspects() {
		return a.inspect.Instances(ctx, f, cursor, limit)
	}
	stored := fsm.Filter{Definition: f.FSM, Queue: f.Queue, Parent: f.Parent, Step: f.Step}
	for _, s := range f.Statuses {
		switch {
		case s == "live":
			stored.Live = true
		case s.Finished():
			stored.Finished = append(stored.Finished, s)
		default:
			return nil, "", fault.Invalidf("status", "must be live or a final status on this database, got %q", s)
		}
	}
	if f.UniqueKey != "" {
		return nil, "", fault.Invalidf("unique_key", "must be empty: this database does not support this filter")
	}
	return a.config.Machines.List(ctx, stored, cursor, limit)
}

func (a *API) getInstance(ctx context.Context, in *ByID) (*One[Instance], error) {
	i, err := a.config.Machines.Get(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	shown := showInstance(i)
	if (i.WaitsFor == fsm.ForSignal || i.WaitsFor == fsm.ForChildren) && a.rt.Store.Inspects() {
		w, err := a.inspect.Wait(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		shown.waits(w)
	}
	if shown.MaxAttempts, err = a.maxAttempts(ctx, i); err != nil {
		return nil, err
	}
	attempts, err := a.config.Machines.Attempts(ctx, in.ID)
	shown.Timeline = showAttempts(attempts)
	return one(shown), err
}

// waits shows what an instance waits for, unless it has just continued.
func (i *Instance) waits(w *store.Wait) {
	if w == nil {
		return
	}
	if w.Deadline != nil {
		i.AwaitsUntil = Time(*w.Deadline)
	}
	if w.Names != nil {
		_ = json.Unmarshal([]byte(*w.Names), &i.Awaits) // values that cannot be decoded are left out
		return
	}
	i.Children = &ChildrenCount{Total: w.Children, Pending: w.Pending}
}

// pageOf is the input of a list that belongs to one resource.
type pageOf struct {
	ByID
	Paging
}

func (a *API) listChildren(ctx context.Context, in *pageOf) (*List[Instance], error) {
	rows, next, err := a.findInstances(ctx, inspect.Instances{Parent: in.ID}, in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), rows, next, showRow), nil
}

// Signal is a message in the inbox of an instance.
type Signal struct {
	Seq       string          `json:"seq"`
	Name      string          `json:"name"`
	Payload   json.RawMessage `json:"payload"`
	CreatedAt Time            `json:"created_at"`
	Received  bool            `json:"received" doc:"True if a step has received the signal."`
}

func (a *API) listSignals(ctx context.Context, in *pageOf) (*List[Signal], error) {
	rows, next, err := a.inspect.Signals(ctx, in.ID, in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), rows, next, func(s store.SignalView) Signal {
		return Signal{Seq: strconv.FormatInt(s.Seq, 10), Name: s.Name, Payload: json.RawMessage(s.Payload), CreatedAt: Time(s.Created), Received: s.Received}
	}), nil
}

// Event is a recorded or a future event of an instance.
type Event struct {
	Seq     int    `json:"seq"`
	At      Time   `json:"at"`
	Outcome string `json:"outcome" enum:"created,signal,child,next,replay,await,spawn,done,stop,fail,rerun,cancel,error,crash,running,due,deadline,stopped,failed,cancelled,quarantined"`
	Step    string `json:"step,omitempty"`
	Next    string `json:"next,omitempty" doc:"Next step."`
	Attempt int    `json:"attempt,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Error   string `json:"error,omitempty"`
	ID      string `json:"id,omitempty" doc:"Child or signal of the event."`
	// Duration and Worker are set for steps.
	Duration *float64 `json:"duration_ms,omitempty" doc:"Duration of the step in milliseconds."`
	Worker   string   `json:"worker,omitempty" doc:"Process that ran the step."`
}

// History is the list of the known events of an instance, in order.
type History struct {
	Data []Event `json:"data" nullable:"false"`
}

// historyLimit is the maximum number of signals, children and steps that a history shows.
const historyLimit = 200

// getHistory returns the history of an instance from stored data. Successful steps leave
// only their effect on the state, unless the definition keeps its history.
func (a *API) getHistory(ctx context.Context, in *ByID) (*One[History], error) {
	i, err := a.config.Machines.Get(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	events := []Event{{At: Time(i.Created), Outcome: "created", Detail: i.Definition}}
	if a.rt.Store.Inspects() {
		signals, _, err := a.inspect.Signals(ctx, in.ID, "", historyLimit)
		if err != nil {
			return nil, err
		}
		for _, s := range signals {
			events = append(events, Event{At: Time(s.Created), Outcome: "signal", Detail: s.Name, ID: strconv.FormatInt(s.Seq, 10)})
		}
	}
	children, _, err := a.findInstances(ctx, inspect.Instances{Parent: in.ID}, "", historyLimit)
	if err != nil {
		return nil, err
	}
	for _, c := range children {
		events = append(events, Event{At: Time(c.Created), Outcome: "child", Detail: c.Definition + ": " + string(c.Status), ID: c.ID})
	}
	steps, _, err := a.config.Machines.History(ctx, in.ID, "", historyLimit)
	if err != nil {
		return nil, err
	}
	for _, t := range steps {
		events = append(events, stepEvent(t))
	}
	attempts, err := a.config.Machines.Attempts(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	events = append(events, attemptEvents(attempts, steps)...)
	events = append(events, lastEvents(i)...)
	slices.SortStableFunc(events, func(a, b Event) int { return time.Time(a.At).Compare(time.Time(b.At)) })
	for n := range events {
		events[n].Seq = n + 1
	}
	return one(History{Data: events}), nil
}

func stepEvent(t fsm.Transition) Event {
	took := float64(t.Ended.Sub(t.Began).Microseconds()) / 1000
	return Event{
		At: Time(t.Began), Outcome: t.Outcome, Step: t.Step, Next: t.Next, Attempt: t.Attempt, Error: t.Error, Duration: &took, Worker: t.Worker,
	}
}

// attemptEvents returns events for the attempts that steps does not contain: failed
// attempts where no history is kept, crashed attempts, and the running attempt.
func attemptEvents(attempts []retry.Attempt, steps []fsm.Transition) []Event {
	type end struct {
		step string
		at   time.Time
	}
	recorded := map[end]bool{}
	for _, t := range steps {
		recorded[end{t.Step, t.Ended}] = true
	}
	outcomes := map[retry.Outcome]string{retry.Failed: "error", retry.Lost: "crash", retry.Running: "running"}
	var events []Event
	for i, shown := range showAttempts(attempts) {
		outcome, known := outcomes[shown.Outcome]
		if !known || recorded[end{shown.Step, attempts[i].Ended}] {
			continue // the event of its step describes it
		}
		at := shown.BeganAt
		if attempts[i].Began.IsZero() {
			at = shown.EndedAt
		}
		events = append(events, Event{
			At: at, Outcome: outcome, Step: shown.Step, Attempt: shown.Number, Error: shown.Error, Duration: shown.Duration, Worker: shown.Worker,
		})
	}
	return events
}

// lastEvents returns the events for the current status of an instance.
func lastEvents(i fsm.Instance) []Event {
	now := Event{At: Time(i.Due), Outcome: "due", Step: i.Step, Attempt: i.Attempt, Detail: string(i.Status), Error: i.Error}
	switch {
	case i.Status.Finished():
		now.At, now.Outcome, now.Detail = Time(i.Finished), string(i.Status), ""
		return []Event{now}
	case i.WaitsFor == fsm.ForSignal || i.WaitsFor == fsm.ForChildren:
		now.Outcome = "await"
	}
	events := []Event{now}
	if !i.Deadline.IsZero() {
		events = append(events, Event{At: Time(i.Deadline), Outcome: "deadline"})
	}
	return events
}
