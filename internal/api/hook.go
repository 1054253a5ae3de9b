package api

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/hook"
)

// Hook is a call that runs after a commit.
type Hook struct {
	ID             string          `json:"id"`
	Namespace      string          `json:"namespace"`
	Name           string          `json:"name"`
	Status         hook.Status     `json:"status" enum:"scheduled,ready,retrying,running,done,failed,quarantined,cancelled"`
	Payload        json.RawMessage `json:"payload,omitempty" doc:"Omitted from lists."`
	Priority       Priority        `json:"priority"`
	Retry          Retry           `json:"retry,omitzero"`
	Attempts       int             `json:"attempts"`
	MaxAttempts    int             `json:"max_attempts"`
	Crashes        int             `json:"crashes"`
	Error          string          `json:"error,omitempty" doc:"Last error."`
	Unit           string          `json:"unit_id" doc:"Unit of work that triggered it."`
	Worker         string          `json:"worker,omitempty"`
	CreatedAt      Time            `json:"created_at"`
	DueAt          Time            `json:"due_at"`
	LastAttemptAt  Time            `json:"last_attempt_at,omitzero"`
	FinishedAt     Time            `json:"finished_at,omitzero"`
	LeaseExpiresAt Time            `json:"lease_expires_at,omitzero"`
	Timeline       []Attempt       `json:"timeline,omitempty" doc:"Attempts, oldest first: the newest 50 failed attempts and the running or successful attempt. Omitted from lists."`
}

func showHook(h hook.Record) Hook {
	return Hook{
		ID: h.ID, Namespace: h.Namespace, Name: h.Name, Status: h.Status, Payload: h.Payload, Priority: Priority(h.Priority), Retry: ShowRetry(h.Retry),
		Attempts: h.Attempts, MaxAttempts: h.MaxAttempts, Crashes: h.Crashes, Error: h.Error, Unit: h.Unit, Worker: h.Worker,
		CreatedAt: Time(h.Created), DueAt: Time(h.Due), LastAttemptAt: Time(h.LastAttempt), FinishedAt: Time(h.Finished), LeaseExpiresAt: Time(h.LeaseExpires),
	}
}

// showHookRow leaves out large fields.
func showHookRow(h hook.Record) Hook {
	shown := showHook(h)
	shown.Payload, shown.Retry = nil, Retry{}
	return shown
}

// HookInput describes a hook to be triggered.
type HookInput struct {
	Namespace string          `json:"namespace" maxLength:"128"`
	Name      string          `json:"name" maxLength:"128"`
	Payload   json.RawMessage `json:"payload,omitempty" doc:"Default: null."`
	ID        string          `json:"id,omitempty" maxLength:"128" doc:"Default: a new id."`
	At        Time            `json:"at,omitzero" doc:"Due time of the first attempt. Default: now."`
	Delay     Duration        `json:"delay,omitempty" doc:"Delay before the first attempt, instead of at."`
	Priority  Priority        `json:"priority,omitempty"`
	Retry     *Retry          `json:"retry,omitempty" doc:"Default: the retry policy of the namespace."`
}

func (a *API) triggerHook(ctx context.Context, in *Posted[HookInput]) (*Done[Acted], error) {
	b := in.Body
	return lookup(ctx, a, in.Key, b, func() (func(*perdure.Tx) (func() Acted, error), error) {
		return a.trigger(b.Namespace, b.Name, b.Payload, &hook.TriggerOptions{
			ID: b.ID, At: time.Time(b.At), Delay: time.Duration(b.Delay), Priority: perdure.Priority(b.Priority), Retry: b.Retry.policy(),
		})
	})
}

// HookMatch filters a list of hooks.
type HookMatch struct {
	Namespace string        `query:"namespace" json:"namespace,omitempty" maxLength:"128"`
	Name      string        `query:"name" json:"name,omitempty" maxLength:"128"`
	Status    []hook.Status `query:"status" json:"status,omitempty" enum:"scheduled,ready,retrying,running,done,failed,quarantined,cancelled"`
	Unit      string        `query:"unit" json:"unit,omitempty" maxLength:"128" doc:"Filter by unit of work."`
}

func (m HookMatch) narrows() bool { return m.Namespace+m.Name+m.Unit != "" || len(m.Status) > 0 }

// findHooks returns the ids of a page of hooks.
func (a *API) findHooks(ctx context.Context, m HookMatch) finder {
	filter := hook.Filter{Namespace: m.Namespace, Name: m.Name, Statuses: m.Status, Unit: m.Unit}
	if m.Unit == "" && a.rt.Store.Inspects() {
		return func(cursor string, limit int) ([]string, string, error) {
			return a.inspect.Hooks(ctx, filter, cursor, limit)
		}
	}
	return func(cursor string, limit int) (ids []string, next string, err error) { // there are few
		rows, next, err := a.hooks.List(ctx, filter, cursor, limit)
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		return ids, next, err
	}
}

type hookFilter struct {
	Paging
	HookMatch
}

func (a *API) listHooks(ctx context.Context, in *hookFilter) (*List[Hook], error) {
	ids, next, err := a.findHooks(ctx, in.HookMatch)(in.Cursor, in.Limit)
	if err != nil || len(ids) == 0 {
		return page(requestOf(ctx), nil, next, showHookRow), err
	}
	rows, _, err := a.hooks.List(ctx, hook.Filter{IDs: ids}, "", len(ids))
	slices.SortFunc(rows, func(a, b hook.Record) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return page(requestOf(ctx), rows, next, showHookRow), err
}

func (a *API) getHook(ctx context.Context, in *ByID) (*One[Hook], error) {
	h, err := a.hooks.Get(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	shown := showHook(h)
	attempts, err := a.hooks.Attempts(ctx, in.ID)
	shown.Timeline = showAttempts(attempts)
	return one(shown), err
}
