package api

import (
	"context"
	"time"
)

// Old is the minimum age of removed work.
type Old struct {
	OlderThan Duration `json:"older_than" doc:"Minimum age of the removed rows."`
}

type oldInput struct{ Body Old }

// Purge selects the finished work to remove.
type Purge struct {
	Old
	Dead bool `json:"dead,omitempty" doc:"Removes failed and quarantined work instead of done and cancelled work."`
}

// purgeInput is the input of a purge. It takes no Idempotency-Key: a purge is many
// transactions, and a repeated purge removes only work that has since become old enough.
type purgeInput struct{ Body Purge }

// Removed is the number of removed items.
type Removed struct {
	Removed int64  `json:"removed"`
	Errors  *int64 `json:"errors,omitempty" doc:"Number of removed errors of tasks."`
}

// purge removes finished work or dead letters with one of two functions.
func purge(ctx context.Context, in *purgeInput, finished, dead func(context.Context, time.Duration) (int64, error)) (*One[Removed], error) {
	actOf(ctx).through("purge")
	remove := finished
	if in.Body.Dead {
		remove = dead
	}
	n, err := remove(ctx, time.Duration(in.Body.OlderThan))
	return one(Removed{Removed: n}), err
}

func (a *API) purgeInstances(ctx context.Context, in *purgeInput) (*One[Removed], error) {
	return purge(ctx, in, a.config.Machines.Purge, a.config.Machines.PurgeDead)
}

func (a *API) purgeHooks(ctx context.Context, in *purgeInput) (*One[Removed], error) {
	return purge(ctx, in, a.hooks.Purge, a.hooks.PurgeDead)
}

func (a *API) purgeTasks(ctx context.Context, in *purgeInput) (*One[Removed], error) {
	var errors *int64
	removed, err := purge(ctx, in, func(ctx context.Context, age time.Duration) (int64, error) {
		n, failures, err := a.tasks.Purge(ctx, age)
		errors = &failures
		return n, err
	}, a.tasks.PurgeDead)
	removed.Body.Errors = errors
	return removed, err
}

func (a *API) trimAudit(ctx context.Context, in *oldInput) (*One[Removed], error) {
	n, err := a.inspect.TrimAudit(ctx, time.Duration(in.Body.OlderThan))
	return one(Removed{Removed: n}), err
}
