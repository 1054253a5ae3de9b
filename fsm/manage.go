package fsm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
)

// Instance is an instance as it is stored.
type Instance struct {
	ID         string
	Definition string
	Version    int
	Step       string
	State      json.RawMessage
	Status     Status
	// WaitsFor is set if the status is Waiting.
	WaitsFor Reason
	Queue    string
	Priority perdure.Priority
	// Attempt counts the runs of the current step from 1, including the run that is in
	// progress or comes next. Failures is the number of runs that failed, Crashes the
	// number of crashes.
	Attempt, Failures int
	Crashes           int
	Parent            string
	Partition, Unique string
	// Result is set if it is Done. Error is the last error.
	Result             json.RawMessage
	Error              string
	Created, Due       time.Time
	Deadline, Finished time.Time
	// Unreceived is the number of signals in its inbox that no step has received. A
	// finished instance keeps them until it is removed.
	Unreceived int
	// CancelReason is set if the instance was cancelled, or passed its deadline, and
	// continued with its cancel step. An instance that was finished without a cancel step
	// has the reason in Error.
	CancelReason string
	// OnCancel is the cancel step of its definition. Empty: Cancel finishes the instance.
	OnCancel string
}

// Decode decodes the result into to.
func (i Instance) Decode(to any) error { return json.Unmarshal(i.Result, to) }

// Filter selects the instances of a List. Zero fields select all.
type Filter struct {
	Definition, Queue, Parent, Step string
	// IDs selects instances by id. Default: all.
	IDs []string
	// Finished selects instances with one of these final statuses.
	Finished []Status
	// Live selects unfinished instances.
	Live bool
}

const (
	// DefaultLimit is the number of instances that List returns by default.
	DefaultLimit = 50
	// MaxLimit is the maximum number of instances that List returns.
	MaxLimit = 1000
)

// Get returns one instance, or a *fault.NotFound.
func (a *Admin) Get(ctx context.Context, id string) (Instance, error) {
	if !validID(id) {
		return Instance{}, unknown(id)
	}
	var found []Instance
	err := a.read(ctx, a.rt.Store.ShowInstances(store.InstanceFilter{ID: id, Limit: 1}, a.rt.Now(), func(v store.InstanceView) { found = append(found, view(v)) }))
	if err != nil {
		return Instance{}, fmt.Errorf("get instance: %w", err)
	}
	if len(found) == 0 {
		return Instance{}, unknown(id)
	}
	return found[0], nil
}

// List returns instances, newest first, and the cursor of the next page, which is
// empty after the last one.
func (a *Admin) List(ctx context.Context, f Filter, cursor string, limit int) ([]Instance, string, error) {
	limit, err := edge.Limit("limit", limit, DefaultLimit, MaxLimit)
	if err != nil {
		return nil, "", err
	}
	if cursor != "" && !validID(cursor) {
		return nil, "", fault.Invalidf("cursor", "is malformed")
	}
	ids := slices.DeleteFunc(slices.Clone(f.IDs), func(id string) bool { return !validID(id) })
	if f.Parent != "" && !validID(f.Parent) {
		return nil, "", fault.Invalidf("parent", "must be a UUID in lower case")
	}
	if len(f.IDs) > 0 && len(ids) == 0 { // no instance can have one of the ids
		return nil, "", nil
	}
	filter := store.InstanceFilter{FSM: f.Definition, Queue: f.Queue, Parent: f.Parent, Step: f.Step, IDs: ids, Live: f.Live, Before: cursor, Limit: limit + 1}
	for _, s := range f.Finished {
		if !s.Finished() {
			return nil, "", fault.Invalidf("status", "must be a final status, got %q", s)
		}
		filter.Ended = append(filter.Ended, string(s))
	}
	var found []Instance
	if err := a.read(ctx, a.rt.Store.ShowInstances(filter, a.rt.Now(), func(v store.InstanceView) { found = append(found, view(v)) })); err != nil {
		return nil, "", fmt.Errorf("list instances: %w", err)
	}
	if len(found) <= limit {
		return found, "", nil
	}
	return found[:limit], found[limit-1].ID, nil
}

// Wait returns the instance when it is finished, or the error of ctx.
func (m *Machines) Wait(ctx context.Context, id string) (Instance, error) {
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		instance, err := m.Get(ctx, id)
		if err != nil || instance.Status.Finished() {
			return instance, err
		}
		timer := m.rt.Clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return instance, ctx.Err()
		}
	}
}

func view(v store.InstanceView) Instance {
	i := Instance{
		ID: v.ID, Definition: v.FSM, Version: v.Version, Step: v.Step, State: json.RawMessage(v.State), Status: Status(v.Status), WaitsFor: Reason(v.WaitsFor), Queue: v.Queue,
		Priority: perdure.Priority(v.Priority), Attempt: v.Attempt + 1, Failures: v.Failures, Crashes: v.Crashes, Parent: edge.Value(v.Parent), Partition: edge.Value(v.Partition),
		Unique: edge.Value(v.UniqueKey), Error: edge.Value(v.Error), Created: v.Created.UTC(), Due: v.Due.UTC(), Deadline: edge.UTC(v.Deadline), Finished: edge.UTC(v.Finished),
		Unreceived: v.Unreceived, CancelReason: edge.Value(v.CancelReason), OnCancel: edge.Value(v.CancelStep),
	}
	if v.Result != nil {
		i.Result = json.RawMessage(*v.Result)
	}
	return i
}
