package api

import (
	"context"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/store"
)

// Dead is a dead letter, or a group of dead letters with the same error.
type Dead struct {
	Kind        string   `json:"kind" enum:"instances,hooks,tasks,alarms,actors,consumers"`
	ID          string   `json:"id,omitempty"`
	Name        string   `json:"name" doc:"Definition, hook, task type, alarm type, actor type or consumer."`
	Status      string   `json:"status,omitempty"`
	Error       string   `json:"error" doc:"Fingerprint of a group."`
	Fingerprint string   `json:"fingerprint,omitempty" doc:"Error without numbers and ids."`
	Attempts    int      `json:"attempts,omitempty"`
	CreatedAt   Time     `json:"created_at,omitzero"`
	FailedAt    Time     `json:"failed_at,omitzero"`
	Example     string   `json:"example,omitempty" doc:"Newest error of a group, unchanged."`
	Count       int      `json:"count,omitempty" doc:"Number of dead letters in a group."`
	Capped      bool     `json:"capped,omitempty" doc:"True if older dead letters were not counted."`
	IDs         []string `json:"ids,omitempty" doc:"Ids of the newest five dead letters of a group."`
	FirstAt     Time     `json:"first_at,omitzero"`
	LastAt      Time     `json:"last_at,omitzero"`
}

func showDead(d store.Dead) Dead {
	return Dead{
		Kind: d.Kind, ID: d.ID, Name: d.Name, Status: d.Status, Error: d.Error, Fingerprint: inspect.Fingerprint(d.Error), Attempts: d.Attempts,
		CreatedAt: Time(d.Created), FailedAt: Time(d.Died),
	}
}

func showGroup(g inspect.DeadGroup) Dead {
	return Dead{
		Kind: g.Kind, Name: g.Name, Error: g.Fingerprint, Example: g.Example, Count: g.Count, Capped: g.Capped, IDs: g.IDs,
		FirstAt: Time(g.First), LastAt: Time(g.Latest),
	}
}

type deadFilter struct {
	Paging
	Kind    string `query:"kind" enum:"instances,hooks,tasks,alarms,actors,consumers"`
	Name    string `query:"name" maxLength:"256"`
	Error   string `query:"error" maxLength:"1024" doc:"Filter by fingerprint of the error."`
	GroupBy string `query:"group_by" enum:"error" doc:"Grouping of the newest 5,000 dead letters of each kind, the largest group first. There is one page."`
}

func (a *API) listDead(ctx context.Context, in *deadFilter) (*List[Dead], error) {
	f := inspect.Dead{Kind: in.Kind, Name: in.Name, Error: in.Error}
	if in.GroupBy != "" {
		groups, err := a.inspect.DeadGroups(ctx, f)
		if err != nil {
			return nil, err
		}
		return page(requestOf(ctx), groups[:min(in.Limit, len(groups))], "", showGroup), nil
	}
	rows, next, err := a.inspect.DeadLetters(ctx, f, in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), rows, next, showDead), nil
}

// DeadRetry requests a retry of dead letters of a kind: either the named ones or the ones
// with an error.
type DeadRetry struct {
	Kind   string   `json:"kind" enum:"instances,hooks,tasks,alarms,actors,consumers"`
	IDs    []string `json:"ids,omitempty" maxItems:"1000"`
	Error  string   `json:"error,omitempty" maxLength:"1024" doc:"Fingerprint of the error. It selects up to 1,000 dead letters. Repeat the request while the response is capped."`
	Name   string   `json:"name,omitempty" maxLength:"256" doc:"Filter by definition, hook, task type, alarm type, actor type or consumer."`
	DryRun bool     `json:"dry_run,omitempty" doc:"Counts the dead letters without retrying them."`
}

func (a *API) retryDead(ctx context.Context, in *Posted[DeadRetry]) (*Done[BulkResult], error) {
	b := in.Body
	if (len(b.IDs) == 0) == (b.Error == "") {
		return nil, fault.Invalidf("body", "must have either ids or an error")
	}
	retry, err := a.retrier(ctx, b.Kind)
	if err != nil {
		return nil, err
	}
	dead := chosen{ids: b.IDs, dryRun: b.DryRun}
	if b.Error != "" {
		dead.ids, dead.capped, err = a.findDead(ctx, b).all()
	}
	if err != nil {
		return nil, err
	}
	actOf(ctx).of(b.Kind)
	return a.onEach(ctx, in.Key, b, dead, retry)
}

// retrier returns a function that retries one dead letter of a kind.
func (a *API) retrier(ctx context.Context, kind string) (func(*perdure.Tx, string) error, error) {
	switch kind {
	case store.InstanceKind:
		return a.config.Machines.RetryIn, nil
	case store.HookKind:
		return a.hooks.RetryIn, nil
	case store.TaskKind:
		return a.tasks.RetryIn, nil
	case store.AlarmKind:
		return a.alarmRetrier(ctx)
	case store.ActorKind:
		return a.onActor(ctx, "resume")
	case store.ConsumerKind:
		return a.retryConsumer, nil
	}
	return nil, fault.Invalidf("body.kind", "must be one of instances, hooks, tasks, alarms, actors, got %q", kind)
}

// alarmRetrier returns a function that retries an alarm, or a timer of a quarantined actor.
func (a *API) alarmRetrier(ctx context.Context) (func(*perdure.Tx, string) error, error) {
	by, err := callerOf(ctx, "")
	if err != nil {
		return nil, err
	}
	return func(tx *perdure.Tx, id string) error {
		key := alarmKey(id)
		if key.ActorType == "" || a.config.Actors == nil {
			return a.alarms.RetryIn(tx, key)
		}
		ref := actor.Ref{Type: key.ActorType, ID: key.ActorID}
		quarantined, err := a.config.Actors.QuarantinedTimer(ctx, ref, key.ID)
		switch {
		case err != nil:
			return host.In(tx).Fail(err)
		case !quarantined:
			return a.alarms.RetryIn(tx, key)
		}
		return a.config.Actors.RetryTimerIn(tx, ref, by, key.ID)
	}, nil
}

// alarmKey parses the id of an alarm as it is shown.
func alarmKey(id string) alarm.Key {
	parts := strings.SplitN(id, "/", 3)
	if len(parts) < 3 {
		return alarm.ID(id)
	}
	return alarm.Of(parts[0], parts[1], parts[2])
}

// findDead returns the ids of a page of dead letters of a kind with an error.
func (a *API) findDead(ctx context.Context, b DeadRetry) finder {
	return func(cursor string, limit int) (ids []string, next string, err error) {
		rows, next, err := a.inspect.DeadLetters(ctx, inspect.Dead{Kind: b.Kind, Name: b.Name, Error: b.Error}, cursor, limit)
		for _, d := range rows {
			ids = append(ids, d.ID)
		}
		return ids, next, err
	}
}
